"""What keys and tokens of well-known services look like: a table of prefixes and patterns.

A pattern is tried only where one of its hints stands in a text, so that a text without any costs
but the looking for those. Lengths are the least that a service gives out, and have no upper bound:
a format that grows is still found whole.

Every pattern takes time linear in the length of the text: none looks ahead, or goes back, over
characters from which another match may begin. A look-ahead for a digit took 11 s for 100,000
characters of ``sk-sk-sk-``: what a match must hold is looked for in the match (``needs``).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Format(NamedTuple):
    """One kind of secret: one of ``hints`` stands in it, and ``pattern`` finds all of it.

    If the pattern has a group, that is the secret, and what is around it is not; a placeholder in
    it is none, unless the group is named ``whole``. ``needs`` is a pattern without which what was
    matched is no secret.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    needs: str = ""


# In front of a token, and behind one whose end is not plain: `risk-` is no `sk-`.
_FROM: Final = r"(?<![A-Za-z0-9])"
_TO: Final = r"(?![A-Za-z0-9])"
_A_DIGIT: Final = r"\d"
# From where a run of a token's characters begins, so that each run is gone through once.
_JWT: Final = (
    r"(?<![\w-])(?>[\w-]*?(?<![A-Za-z0-9])(?=eyJ))"
    r"(?P<whole>eyJ[\w-]{10,}+\.eyJ[\w-]{10,}+(?:\.[\w-]++)+)"
)
_KEY_BODY: Final = r"(?:(?:\s|\\[nrt])*[A-Za-z0-9+/=]{20,})+"

FORMATS: Final = (
    Format("AWS access key", ("AKIA", "ASIA"), _FROM + r"A[KS]IA[A-Z2-7]{16}(?<!EXAMPLE)" + _TO),
    Format(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}",
    ),
    Format("GitLab token", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glagent-"),
           _FROM + r"gl(?:pat|dt|rt|ptt|cbt|agent)-[\w.-]{19,}\w", _A_DIGIT),
    Format("Slack token", ("xox", "xapp-"),
           r"xox[a-z](?:\.xox[a-z])?-\d[\w-]{14,}|xapp-\d-[\w-]{40,}"),
    Format("webhook address", ("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/"),
           r"(?:hooks\.slack\.com/\w+/|discord(?:app)?\.com/api/webhooks/"
           r"|webhook\.office\.com/)([\w@/-]{24,})"),
    Format("Stripe key", ("k_live_", "k_test_", "whsec_"),
           _FROM + r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})"),
    Format("Anthropic key", ("sk-ant-",), _FROM + r"sk-ant-[\w-]{20,}", _A_DIGIT),
    Format("OpenRouter key", ("sk-or-",), _FROM + r"sk-or-(?:v\d-)?[0-9a-f]{32,}"),
    Format("OpenAI key", ("sk-proj-", "sk-svcacct-", "sk-admin-"),
           _FROM + r"sk-(?:proj|svcacct|admin)-[\w-]{20,}", _A_DIGIT),
    Format("OpenAI key", ("T3BlbkFJ",), _FROM + r"sk-[\w-]{28,}",
           r"T3BlbkFJ(?<=[\w-]{21})[\w-]{10}"),
    Format("API key", ("sk-",), _FROM + r"sk-[A-Za-z0-9]{32,}", _A_DIGIT),
    Format("Google key", ("AIza",), _FROM + r"AIza[\w-]{35,}"),
    Format("Google token", ("GOCSPX-", "ya29.", "1//0"),
           _FROM + r"(?:GOCSPX-[\w-]{24,}|ya29\.[\w.-]{24,}\w|1//0[\w-]{40,})"),
    Format("Azure key", ("AccountKey=", "SharedAccessKey=", "AccessKey="),
           r"AccessKey=([A-Za-z0-9+/]{40,}={0,2})|AccountKey=([A-Za-z0-9+/]{40,}={0,2})"),
    Format("Azure token", ("sig=",), r"(?<=[?&;]sig=)[A-Za-z0-9+/%]{40,}={0,2}"),
    Format("Azure client secret", ("Q~",), r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{30,}[\w~]"),
    Format("npm token", ("npm_",), _FROM + r"npm_[A-Za-z0-9]{36,}"),
    Format("PyPI token", ("pypi-AgE",), _FROM + r"pypi-AgE[\w-]{50,}"),
    Format("SendGrid key", ("SG.",), _FROM + r"SG\.[\w-]{16,}\.[\w-]{30,}"),
    Format("Twilio key", ("SK",), _FROM + r"SK[0-9a-f]{32}" + _TO),
    Format("Hugging Face token", ("hf_", "api_org_"),
           _FROM + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    Format("Telegram token", (":AA",), r"(?<!\w)\d{8,11}:AA[\w-]{32,}"),
    Format("Discord token", (".",),
           r"(?<![\w.-])[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{27,}",
           r"\A[^.]*\d.*\.[^.]*\d[^.]*\Z"),
    Format("JSON web token", ("eyJ",), _JWT),
    Format("private key", ("PRIVATE KEY",),
           r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
           r"(?:(?:[^-]|-(?!----BEGIN)){1,8000}?"
           r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|" + _KEY_BODY + ")"),
    Format("age key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    Format("password in an address", ("://",),
           r"://[^\s:/@'\"<>]{0,200}:([^\s/'\"<>]{3,400})@"),
    Format("DigitalOcean token", ("_v1_",), _FROM + r"do[opr]_v1_[0-9a-f]{40,}"),
    Format("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"),
           _FROM + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    Format("Databricks token", ("dapi",), _FROM + r"dapi[0-9a-f]{32}(?:-\d)?" + _TO),
    Format("Mailgun key", ("key-",), _FROM + r"key-[0-9a-f]{32}" + _TO),
    Format("Mailchimp key", ("-us",), _FROM + r"[0-9a-f]{32}-us\d{1,2}" + _TO),
    Format("Vault token", ("hvs.", "hvb.", "hvr."), _FROM + r"hv[sbr]\.[\w-]{24,}"),
    Format("Docker token", ("dckr_",), _FROM + r"dckr_[po]at_[\w-]{20,}"),
    Format("Groq key", ("gsk_",), _FROM + r"gsk_[A-Za-z0-9]{40,}"),
    Format("xAI key", ("xai-",), _FROM + r"xai-[A-Za-z0-9]{40,}"),
    Format("Perplexity key", ("pplx-",), _FROM + r"pplx-[A-Za-z0-9]{40,}"),
    Format("Replicate token", ("r8_",), _FROM + r"r8_[A-Za-z0-9]{30,}"),
    Format("Pinecone key", ("pcsk_",), _FROM + r"pcsk_\w{40,}"),
    Format("LangSmith key", ("lsv2_",), _FROM + r"lsv2_[ps][tk]_[0-9a-f_]{32,}"),
    Format("Notion token", ("ntn_", "secret_"),
           _FROM + r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{40,})"),
    Format("Linear key", ("lin_",), _FROM + r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Format("Grafana token", ("glsa_", "glc_"), _FROM + r"gl(?:sa|c)_[A-Za-z0-9+/=]{30,}(?:_\w+)?"),
    Format("Sentry token", ("sntry",), _FROM + r"sntry[su]_[\w+/=-]{40,}"),
    Format("Figma token", ("figd_", "figo_", "figu_"), _FROM + r"fig[dou]_[\w-]{36,}"),
    Format("Postman key", ("PMAK-",), _FROM + r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    Format("Atlassian token", ("ATATT3", "ATCTT3"), _FROM + r"AT[AC]TT3[\w=-]{50,}"),
    Format("Airtable token", ("pat",), _FROM + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Format("Supabase token", ("sbp_",), _FROM + r"sbp_[0-9a-f]{40,}"),
    Format("Fly.io token", ("fm1_", "fm2_"), _FROM + r"fm[12]_[\w+/=-]{50,}"),
    Format("1Password token", ("ops_eyJ",), _FROM + r"ops_eyJ[\w+/=-]{80,}"),
    Format("Terraform token", (".atlasv1.",), _FROM + r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"),
    Format("New Relic key", ("NRAK-",), _FROM + r"NRAK-[A-Z0-9]{27,}"),
    Format("RubyGems key", ("rubygems_",), _FROM + r"rubygems_[0-9a-f]{48,}"),
    Format("Square token", ("sq0",), _FROM + r"sq0[a-z]{3}-[\w-]{22,}"),
    Format("Alibaba key", ("LTAI",), _FROM + r"LTAI[A-Za-z0-9]{16,26}" + _TO, _A_DIGIT),
    Format("Doppler token", ("dp.",), _FROM + r"dp\.[a-z]{2,6}\.(?:\w+\.)?[A-Za-z0-9]{40,}"),
)  # fmt: skip
"""Most telling first: where two overlap, the first names the kind."""
