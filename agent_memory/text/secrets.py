"""Finds keys, tokens and passwords in a text. Nothing here keeps or shows one.

They are recognised by the formats of well-known services (``FORMATS``), or by their names:
``password: …``, ``API_KEY=…``, ``{"client_secret": "…"}``. A value found by name must look made up:
ordinary words, placeholders and names of variables do not count. So a password that is a plain
word, or that is not labelled, is not noticed.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from agent_memory.text.made_up import (
    is_made_up_in_pair,
    is_made_up_key,
    is_made_up_password,
    is_placeholder,
)


class Format(NamedTuple):
    """One kind of secret. It contains one of ``hints``, and ``pattern`` matches all of it.

    If the pattern has a group, the group is the secret and the rest is context. A placeholder in
    the group is not a secret, unless the group is named ``whole``. A match without ``needs``, a
    pattern, is not a secret either.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    needs: str = ""


# Before a token, and after one without a clear end: `risk-` is not `sk-`.
_FROM: Final = r"(?<![A-Za-z0-9])"
_TO: Final = r"(?![A-Za-z0-9])"
_A_DIGIT: Final = r"\d"
# Starts at the beginning of a run of a token's characters, so that each run is scanned once.
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
"""Patterns of well-known services. If two overlap, the first, more specific one names the kind.

A pattern is tried only if a text contains one of its hints, so that a text without any costs only
the search for hints. Lengths are the minimum that a service issues, and have no upper bound: a
format that grows is still found in full.

Every pattern takes time linear in the length of the text: none looks ahead, or backtracks, over
characters at which another match may begin. A look-ahead for a digit took 11 s for 100,000
characters of ``sk-sk-sk-``: what a match must contain is checked in the match (``needs``).
"""


_PASSWORD: Final = "password"  # noqa: S105 - the name of the kind
_KEY: Final = "API key or token"
MASK: Final = "[masked: "
"""The beginning of the text that replaces a secret."""


class SecretSpan(NamedTuple):
    """The position of a secret in a text, from ``start`` to before ``end``, and its kind."""

    start: int
    end: int
    kind: str


def find_secrets(text: str, *, any_case: bool = False) -> list[SecretSpan]:
    """Return the positions of secrets in a text, in order and without overlaps.

    ``any_case`` also finds secrets whose case was changed.
    """
    spans = _by_format(text, any_case=any_case)
    spans += _by_name(text)
    return merge_spans(spans) if len(spans) > 1 else spans


def may_hold_secrets(text: str, *others: object) -> bool:
    """Return whether a text, or the texts and keys in ``others``, must be searched for secrets.

    ``others`` are data or JSON. Most contain nothing that every secret has, which is quick to tell
    for all of them together.
    """
    whole = "\n".join([text, *map(str, others)]).replace('"', " ")
    # Escapes hide characters, so nothing can be ruled out.
    if "\\" in whole or "://" in whole or _long_word().match(whole) is not None:
        return True
    folded = whole.lower()
    names = _SHORTEST_ASCII_NAMES if folded.isascii() else _SHORTEST_NAMES
    return "curl" in folded or any(map(folded.__contains__, (*names, *_LOGINS)))


def mask_secrets(text: str) -> str:
    """Return a text with secrets replaced by ``[masked: GitHub token]`` and the like."""
    return replace_spans(text, find_secrets(text), mask_of)


def replace_spans(text: str, spans: Iterable[SecretSpan], mask: Callable[[str], str]) -> str:
    """Return a text with spans, in order, replaced by the mask for their kind."""
    pieces = []
    end = 0
    for span in spans:
        pieces += [text[end : span.start], mask(span.kind)]
        end = span.end
    return "".join([*pieces, text[end:]])


def mask_of(kind: str) -> str:
    """Return the replacement for a secret; no scanner of this library takes it for a secret."""
    return f"{MASK}{kind}]"


def merge_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort spans and join those that overlap, keeping the kind that was given first."""
    ranked = sorted((span.start, rank, span) for rank, span in enumerate(spans))
    merged: list[tuple[int, SecretSpan]] = []
    for _, rank, span in ranked:
        if merged and span.start < merged[-1][1].end:
            other_rank, other = merged[-1]
            kind = other.kind if other_rank < rank else span.kind
            joint = SecretSpan(other.start, max(other.end, span.end), kind)
            merged[-1] = min(other_rank, rank), joint
        elif span.start < span.end:
            merged.append((rank, span))
    return [span for _, span in merged]


# By format ----------------------------------------------------------------------------------

_HINTS: Final = tuple((hint, number) for number, form in enumerate(FORMATS) for hint in form.hints)
_SHORTEST: Final = 20
"""The fewest characters, without white space, of every format except an address."""


@cache
def _long_word() -> re.Pattern[str]:
    """Compile what fits, from the beginning on, a text in which a word is as long as that.

    Each word is gone through once. To split a text and compare lengths takes twice as long.
    """
    return re.compile(rf"(?:\S{{0,{_SHORTEST - 1}}}+\s)*+\S{{{_SHORTEST}}}")


def _by_format(text: str, *, any_case: bool) -> list[SecretSpan]:
    if "://" not in text and _long_word().match(text) is None:
        return []  # as most texts do: searching for 80 hints takes four times as long
    hints = _folded_hints() if any_case else _HINTS
    numbers = {number for hint, number in hints if hint in text}
    return [
        span for number in sorted(numbers) for span in _of_format(number, text, any_case=any_case)
    ]


@cache
def _folded_hints() -> tuple[tuple[str, int], ...]:
    return tuple((hint.lower(), number) for hint, number in _HINTS)


@cache
def _compiled(pattern: str, *, any_case: bool) -> re.Pattern[str]:
    """Compile a pattern when a text first has its hint."""
    return re.compile(pattern, re.ASCII | (re.IGNORECASE if any_case else 0))


def _of_format(number: int, text: str, *, any_case: bool) -> Iterator[SecretSpan]:
    form = FORMATS[number]
    needed = _compiled(form.needs, any_case=any_case) if form.needs else None
    for match in _compiled(form.pattern, any_case=any_case).finditer(text):
        if needed is not None and needed.search(match[0]) is None:
            continue
        group = match.lastindex or 0
        if not group or match.lastgroup is not None or not is_placeholder(match[group]):
            yield SecretSpan(*match.span(group), form.kind)


# By name ------------------------------------------------------------------------------------

_PASSWORDS: Final = (
    "password", "passwd", "passphrase", "passcode", "passwort", "mot de passe", "kennwort",
    "paßwort", "contraseña", "contrasena", "senha", "密码", "密碼", "口令", "пароль", "パスワード",
    "비밀번호",
)  # fmt: skip
_KEYS: Final = ("secret", "token", "credentials", "credential")
_WHOLE_WORDS: Final = ("pass", "pwd", "pw")
"""These name a password only without a letter before them."""
_OF_KEYS: Final = (
    "api", "access", "secret", "private", "encryption", "signing", "master", "account", "auth",
    "service", "shared", "client", "deploy", "license", "app",
)  # fmt: skip
"""Words before "key" that make it the name of a secret."""
_BARE: Final = ("bearer", "basic")
_NAMES: Final = (*_PASSWORDS, *_WHOLE_WORDS, *_KEYS, "key", *_BARE)
"""A longer name comes before its own prefixes: the first match is taken."""
_SHORTEST_NAMES: Final = tuple(
    name for name in _NAMES if not any(other in name for other in _NAMES if other != name)
)
"""If none of these occurs, none of the others does."""
_SHORTEST_ASCII_NAMES: Final = tuple(filter(str.isascii, _SHORTEST_NAMES))
_LOGINS: Final = ("login", "log-in", "credential", "zugangsdaten", "identifiants")
"""These name a user and a password on one line."""
_HEAD: Final = 40
"""Characters before a name that show what it names."""


@cache
def _any_name() -> re.Pattern[str]:
    return re.compile("|".join(_NAMES))


def _is_telling(word: str, head: str) -> bool:
    """Return whether a word names a secret, given what stands before it."""
    if word == "key":
        head = head.rstrip(" _.-")
        return head.endswith(_OF_KEYS) and not _is_type(head)
    if word == "basic":
        return head.rstrip(" \"':=").endswith("authorization")
    if word in _KEYS:
        return not head.rstrip(" _.-").endswith(("public", "publickey")) and not _is_type(head)
    return word not in _WHOLE_WORDS or not head[-1:].isalpha()


def _is_type(head: str) -> bool:
    """Return whether what stands before a word makes it part of a type's or a resource's name.

    Neither ``AWS::IAM::AccessKey`` nor ``arn:aws:secretsmanager:*:*:secret:…`` names a value.
    """
    if ":" not in head:
        return False
    start = max(map(head.rfind, " \n\"'"))
    return "::" in head[start + 1 :] or head.startswith("arn:", start + 1)


# A suffix of the name: PASSWORD_1, api_key_prod.
_SUFFIX: Final = r"(?:_?\d{1,2}|[_-](?:prod|production|dev|test|stage|staging|live|value))?"
# Up to six words about the owner may come between a name and its value, or a note in brackets.
_WHOSE: Final = (
    r"(?:\s\([^()\n]{1,40}\)|\s(?:for|of|on|in|at|für|fürs|von|vom|beim?|im|zum|zu|du|de|del|para"
    r"|pour|do|da)(?:\s[^\s:=]{1,30}){1,6}?)?"
)
_IS: Final = (
    r"(?:(?:has been|is|was|lautet|ist|heißt|heisst|bleibt|est|c['\u2019]est|reste|es|sigue siendo"
    r"|é)(?:\s(?:now|still|jetzt|nun|maintenant|toujours|ahora|agora))?"
    r"(?:\s(?:(?:changed|reset|set)\s)?to)?|(?:(?:changed|reset|set)\s)?to)"
)
# Chinese and Japanese put no blank before a value. In Japanese the verb follows it, and tells:
# "パスワードはbcrypt2でハッシュ化" names no password.
_IS_IN_CHINESE: Final = (
    r"(?=[\u3400-\u9fff])(?:现在|現在|目前|已经?|已經|还|還|仍然?|就|都|一直|被){0,3}"
    r"(?:是(?:什么|什麼|多少)[?\uff1f]|是|为|為|叫|[改换換变變設设重更][置定新]?(?:成|为|為)了?)"
    r"[:\uff1a]?\s{0,3}"
)
_IS_IN_JAPANESE: Final = (
    r"[はがを](?:何ですか[?\uff1f]|(?=\s{0,3}[「『]?[!-~]{6,400}[」』]?\s?"
    r"(?:です|だ|でし|で、|に(?:変|設定|し|なり|更新)|[。、！\s]|$)))\s{0,3}"  # noqa: RUF001
)
_ANSWERED: Final = r"[?\uff1f]\s{1,3}(?:(?:it['\u2019]s|it is|es ist|c['\u2019]est|es)\s)?"
_SIGN: Final = (
    r"(?:[\"'`]?\]?\s{0,3}(?::=|=>|->|==?|[:：])\s{0,3}"  # noqa: RUF001 - the Chinese colon
    rf"|\s(?:{_ANSWERED}|{_IS}(?:\s?:)?\s"
    r"|(?:wurde\s)?auf\s(?=\S{6,400}\s(?:geändert|gesetzt|zurückgesetzt)))"
    rf"|{_ANSWERED}|['\u2019]s\s|,\sc['\u2019]est\s"
    rf"|(?:{_IS_IN_CHINESE}|{_IS_IN_JAPANESE})(?=[\"'`「『“]?[!-~]{{6}}))"
)
_VALUE: Final = (
    r"(?:\"([^\"\n]{4,400})\"|'([^'\n]{4,400})'|`([^`\n]{4,400})`"
    r"|[\"'`「『“]?([^\s\"'`;]{6,4000}))"
)


@cache
def _tail() -> re.Pattern[str]:
    """Compile what follows a name: a sign, and the value."""
    return re.compile(_SUFFIX + _WHOSE + _SIGN + _VALUE, re.IGNORECASE)


@cache
def _bare_tail() -> re.Pattern[str]:
    """Compile what follows a name that its value follows at once, or after white space."""
    return re.compile(r"\s{0,3}" + _VALUE)


@cache
def _unquoted_value() -> re.Pattern[str]:
    return re.compile(r"[^\s\"'`;]{6,4000}")


@cache
def _login() -> re.Pattern[str]:
    """Compile a user and a password, as in ``Login: ann / …``; the group is the password."""
    return re.compile(
        rf"(?:{'|'.join(_LOGINS)})s?{_WHOSE}(?:\s?[:=]|\s{_IS})\s{{1,3}}[^\s/|]{{1,80}}"
        r"\s[/|]\s([^\s\"'`;]{6,400})",
        re.IGNORECASE,
    )


@cache
def _curl_user() -> re.Pattern[str]:
    return re.compile(r"\s(?:-u|--user)[\s=][\"']?[^\s:'\"]{1,80}:")


def _by_name(text: str) -> list[SecretSpan]:
    """Return the values of telling names that look like secrets."""
    folded = _folded(text)
    spans: list[SecretSpan] = []
    names = _SHORTEST_ASCII_NAMES if folded.isascii() else _SHORTEST_NAMES
    if any(map(folded.__contains__, names)):  # few texts have one
        spans += _after(text, folded, _any_name().finditer(folded))
    if "curl" in folded:
        spans += _after(text, folded, _curl_user().finditer(text))
    if any(map(folded.__contains__, _LOGINS)):
        for pair in _login().finditer(text):
            value = _unquoted(pair[1])
            if is_made_up_in_pair(value):
                spans.append(SecretSpan(pair.start(1), pair.start(1) + len(value), _PASSWORD))
    return spans


def _folded(text: str) -> str:
    """Return a text in small letters, each where it was."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


_TAIL: Final = 650
"""Characters after a name that contain its value, and more than the patterns look at."""
_MOST_JUDGED: Final = 1_000


def _after(text: str, folded: str, names: Iterable[re.Match[str]]) -> list[SecretSpan]:
    """Return what looks like a secret after some names.

    Inside a secret no other is looked for, and what stands around a name is judged once: so a text
    takes linear time that is nothing but names.
    """
    judged: dict[tuple[str, str, int], SecretSpan | None] = {}
    spans: list[SecretSpan] = []
    done_to = 0
    for name in names:
        start, end = name.span()
        if start < done_to:
            continue
        low = max(0, start - _HEAD)
        key = name[0], text[low : end + _TAIL], start - low
        if key not in judged:
            if len(judged) == _MOST_JUDGED:
                judged.clear()
            judged[key] = _value_of(key[1], folded[low:start], name[0])
        span = judged[key]
        if span is not None:
            is_cut = span.end == len(key[1])
            done_to = _end_of_unquoted(text, low + span.start) if is_cut else low + span.end
            spans.append(SecretSpan(low + span.start, done_to, span.kind))
    return spans


def _value_of(around: str, head: str, name: str) -> SecretSpan | None:
    """Return where the value of a name stands, if it looks like a secret.

    ``around`` is what stands around the name: ``head`` before it, in small letters. A value without
    quotes that reaches to the end of it may go on.
    """
    is_user = name not in _NAMES  # curl's option for a user
    if not is_user and not _is_telling(name, head):
        return None
    end = len(head) + len(name)
    is_bare = is_user or name in _BARE or head.endswith("authorization: ")
    tail = None if is_bare else _tail().match(around, end)
    if tail is None and (is_bare or _is_option(head)):
        tail = _bare_tail().match(around, end)
    if tail is None:
        return None
    group = tail.lastindex or 0
    value = tail[group] if group != 4 else _unquoted(tail[group])  # the fourth is unquoted
    is_password = is_user or name in _PASSWORDS or name in _WHOLE_WORDS
    kind = _kind_of(value, is_password=is_password)
    if kind is None:
        return None
    start, end = tail.span(group)
    return SecretSpan(start, end if end == len(around) else start + len(value), kind)


def _end_of_unquoted(text: str, start: int) -> int:
    """Return where a value without quotes ends."""
    match = _unquoted_value().match(text, start)
    return start + (len(_unquoted(match[0])) if match else 0)


def _is_option(head: str) -> bool:
    """Return whether what stands before a name makes it an option: ``--db-password VALUE``."""
    return head[head.rfind(" ") + 1 :].startswith("-")


_NEXT: Final = (
    r"[&,][A-Za-z_][\w.-]*=|&(?:quot|amp|lt|gt|apos|#\d+)\b|,\"|\\n"
    # Chinese and Japanese go on without a blank: "abc123!xyzです".
    r"|[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef”](?<=[!-~]{6}.)"
)


def _unquoted(value: str) -> str:
    """Cut off what follows a value that stands without quotes."""
    following = re.search(_NEXT, value)
    if following is not None:
        value = value[: following.start()]
    return value.rstrip(".,:)]}>\\")


def kind_of(name: str, value: str) -> str | None:
    """Return the kind of secret of a named value in data, or ``None`` if it is not one."""
    folded = _folded(name[-2 * _HEAD :])
    for match in _any_name().finditer(folded):
        word, head = match[0], folded[: match.start()]
        if match.end() == len(folded) and word not in _BARE and _is_telling(word, head):
            is_password = word in _PASSWORDS or word in _WHOLE_WORDS
            return _kind_of(value, is_password=is_password)
    return None


def _kind_of(value: str, *, is_password: bool) -> str | None:
    """Return what the value of a telling name is, ``None`` if it is no secret."""
    if is_password:
        return _PASSWORD if is_made_up_password(value) else None
    return _KEY if is_made_up_key(value) else None
