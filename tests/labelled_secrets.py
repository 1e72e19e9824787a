"""Texts that hold a secret, put together from pieces at run time, and texts that hold none.

No whole token stands in this file: what scans a repository for leaked keys would take it for one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
from dataclasses import dataclass
from typing import Final

UPPER: Final = string.ascii_uppercase
HEX: Final = "0123456789abcdef"
ALNUM: Final = string.ascii_letters + string.digits
URL_SAFE: Final = ALNUM + "-_"
BASE64: Final = ALNUM + "+/"


@dataclass(frozen=True)
class Labelled:
    """A text, and the secrets in it: none, if it is an ordinary one."""

    text: str
    secrets: tuple[str, ...] = ()


def chars(seed: str, alphabet: str, count: int) -> str:
    """Return random characters, the same for a seed, that look like a key: letters and digits."""
    made = random.Random(seed)
    while True:
        text = "".join(made.choices(alphabet, k=count))
        has_letter = any(it.isalpha() for it in text) or not any(it.isalpha() for it in alphabet)
        if has_letter and text[0].isalnum() and text[-1].isalnum():
            return text


def _jwt(seed: str) -> str:
    def part(data: dict[str, object]) -> str:
        text = json.dumps(data, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(text).decode().rstrip("=")

    head = part({"alg": "HS256", "typ": "JWT"})
    body = part({"sub": seed, "iat": 1_700_000_000, "admin": True})
    return ".".join((head, body, chars(seed, URL_SAFE, 43)))


def _pem(kind: str, seed: str) -> str:
    dashes = "-" * 5
    lines = [chars(f"{seed}{n}", BASE64, 64) for n in range(6)]
    label = f"{kind}PRIVATE KEY"
    return "\n".join([f"{dashes}BEGIN {label}{dashes}", *lines, f"{dashes}END {label}{dashes}"])


def tokens(seed: str) -> dict[str, str]:
    """Return one token of each well-known format, by what it is."""

    def some(alphabet: str, count: int, *, more: str = "") -> str:
        return chars(f"{seed}/{count}/{more}/{alphabet}", alphabet, count)

    aws = UPPER + "234567"
    return {
        "aws id": "AK" + "IA" + some(aws, 16),
        "aws session id": "AS" + "IA" + some(aws, 16, more="s"),
        "github classic": "gh" + "p_" + some(ALNUM, 36),
        "github oauth": "gh" + "o_" + some(ALNUM, 36, more="o"),
        "github server": "gh" + "s_" + some(ALNUM, 36, more="s"),
        "github fine-grained": "github" + "_pat_" + some(ALNUM, 22) + "_" + some(ALNUM, 59),
        "gitlab": "gl" + "pat-" + some(URL_SAFE, 20),
        "slack bot": f"xoxb-{some('123456789', 12)}-{some('123456789', 13)}-" + some(ALNUM, 24),
        "slack user": "xo"
        "xp-"
        f"{some('123456789', 12, more='u')}-"
        f"{some('123456789', 12, more='v')}-{some('123456789', 12, more='w')}-{some(HEX, 32)}",
        "slack app": "xa"
        "pp-1-A0" + some(UPPER, 9) + "-" + some("123456789", 13) + "-" + some(HEX, 64),
        "slack webhook": "https://hooks.slack"
        ".com/services/T0"
        + some(UPPER, 9)
        + "/B0"
        + some(UPPER, 9, more="b")
        + "/"
        + some(ALNUM, 24),
        "stripe live": "sk" + "_live_" + some(ALNUM, 24),
        "stripe restricted": "rk" + "_live_" + some(ALNUM, 24, more="r"),
        "openai": "sk" + "-" + some(ALNUM, 20) + "T3Blbk" + "FJ" + some(ALNUM, 20, more="2"),
        "openai project": "sk"
        "-proj-" + some(URL_SAFE, 74) + "T3Blbk" + "FJ" + some(URL_SAFE, 74, more="2"),
        "anthropic": "sk" + "-ant-" + "api03-" + some(URL_SAFE, 93) + "AA",
        "openrouter": "sk" + "-or-v1-" + some(HEX, 64),
        "deepseek": "sk" + "-" + some(HEX, 32, more="d"),
        "google": "AI" + "za" + "Sy" + some(URL_SAFE, 33),
        "google oauth": "GO" + "CSPX-" + some(URL_SAFE, 28),
        "google access": "ya" + "29." + some(URL_SAFE, 120),
        "azure storage": "Account" + "Key=" + some(BASE64, 86) + "==",
        "azure client": some(ALNUM, 3) + "8Q" + "~" + some(ALNUM, 34),
        "npm": "np" + "m_" + some(ALNUM, 36),
        "pypi": "py" + "pi-" + "AgEIcHlwaS5vcmc" + some(URL_SAFE, 80),
        "sendgrid": "S" + "G." + some(URL_SAFE, 22) + "." + some(URL_SAFE, 43),
        "twilio": "S" + "K" + some(HEX, 32, more="t"),
        "hugging face": "h" + "f_" + some(string.ascii_letters, 34),
        "telegram": some("123456789", 10) + ":A" + "A" + some(URL_SAFE, 33),
        "jwt": _jwt(seed),
        "rsa": _pem("RSA ", seed),
        "openssh": _pem("OPENSSH ", seed),
        "pkcs8": _pem("", seed),
        "digitalocean": "do" + "p_v1_" + some(HEX, 64, more="do"),
        "shopify": "shp" + "at_" + some(HEX, 32, more="sh"),
        "discord": "M" + some(ALNUM, 23) + "." + some(ALNUM, 6) + "." + some(URL_SAFE, 38),
        "databricks": "da" + "pi" + some(HEX, 32, more="db"),
        "mailgun": "ke" + "y-" + some(HEX, 32, more="mg"),
        "mailchimp": some(HEX, 32, more="mc") + "-us" + "12",
        "vault": "hv" + "s." + some(URL_SAFE, 95),
        "docker": "dckr" + "_pat_" + some(URL_SAFE, 27),
        "groq": "gs" + "k_" + some(ALNUM, 52),
        "replicate": "r" + "8_" + some(ALNUM, 37),
        "notion": "nt" + "n_" + some(ALNUM, 46),
        "linear": "lin" + "_api_" + some(ALNUM, 40),
        "grafana": "gl" + "sa_" + some(ALNUM, 32) + "_" + some(HEX, 8),
        "sentry": "sntry" + "s_" + some(BASE64, 100),
        "figma": "fi" + "gd_" + some(URL_SAFE, 40),
        "postman": "PM" + "AK-" + some(HEX, 24) + "-" + some(HEX, 34),
        "atlassian": "ATA" + "TT3" + some(URL_SAFE, 186),
        "age": "AGE-SECRET-" + "KEY-1" + some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    }


def _assigned(seed: str) -> list[Labelled]:
    """Return values that are secrets by what they are called."""
    word = chars(f"{seed}w", ALNUM, 9) + "!7x"
    key = chars(f"{seed}k", ALNUM, 32)
    hexed = chars(f"{seed}h", HEX, 40)
    aws = chars(f"{seed}a", BASE64, 40)
    guid = str(uuid.UUID(bytes=hashlib.md5(seed.encode()).digest(), version=4))
    return [
        Labelled(f"aws_secret_access_key = {aws}", (aws,)),
        Labelled(f"the staging database: password={word} on port 5432", (word,)),
        Labelled(f'config.yaml has `api_key: "{key}"` in it', (key,)),
        Labelled(f'{{"user": "svc", "password": "{word}", "host": "db1"}}', (word,)),
        Labelled(f"export DATADOG_API_KEY={hexed[:32]}", (hexed[:32],)),
        Labelled(f"CLOUDFLARE_API_TOKEN='{hexed}' works for the zone", (hexed,)),
        Labelled(f"The wifi password is {word}, ask Ben if it changed", (word,)),
        Labelled(f"client_secret={key}&grant_type=client_credentials", (key,)),
        Labelled(f"curl -H 'Authorization: Bearer {key}' https://api.example.org/v1", (key,)),
        Labelled(f"curl -u admin:{word} https://nexus.example.org", (word,)),
        Labelled(f"Server=db1;Database=crm;User Id=sa;Password={word};", (word,)),
        Labelled(f"HEROKU_API_KEY={guid}", (guid,)),
        Labelled(f"use postgres://app:{word}@db.internal:5432/crm for reports", (word,)),
        Labelled(f"redis://:{key}@cache.internal:6379/0", (key,)),
        Labelled(f"clone https://ci:{hexed}@git.example.org/team/repo.git", (hexed,)),
        Labelled("mongodb+" + f"srv://root:{word}@cluster0.example.net", (word,)),
        Labelled(f"mysql --user root --password {word} crm", (word,)),
        Labelled(f"TWILIO_AUTH_TOKEN: {hexed[:32]}", (hexed[:32],)),
        Labelled(f"Das Passwort für den Router lautet: {word}", (word,)),
        Labelled(f"SECRET_KEY = '{key}'  # settings.py", (key,)),
        Labelled(f"the admin's pwd: {word}", (word,)),
        Labelled(f"I changed the root password to {word} yesterday", (word,)),
        Labelled(f"What is the wifi password? {word}", (word,)),
        Labelled(f"My password is now {word}, was something else", (word,)),
        Labelled(f"The password of the NAS has been changed to {word}.", (word,)),
        Labelled(f"Das WLAN-Passwort ist jetzt {word}", (word,)),
    ]


_AROUND: Final = (
    "{}",
    "The deploy key for staging is {} and it expires in May.",
    "User pasted this: {}",
    "export TOKEN={}; ./run.sh",
    'Found "{}" in the old config, should be rotated',
    "(see {})",
    "first line\n{}\nlast line",
    "remember: {}.",
)


def with_secrets() -> list[Labelled]:
    """Return texts with a secret: each format in some surroundings, and values by their names."""
    made = [
        Labelled(_AROUND[(number + turn) % len(_AROUND)].format(token), (token,))
        for turn in range(2)
        for number, token in enumerate(tokens(f"labelled{turn}").values())
    ]
    return [*made, *_assigned("first"), *_assigned("second")]


_PROSE: Final = """
The password policy requires 12 characters and one digit
token budget: 800
Prefer PostgreSQL for new projects
Password rotation happens every 90 days
The secret to good coffee is fresh beans
User asked how to reset the password: told them to use the portal
api_key: see 1Password, vault "Platform"
password: required
password=
The API key is stored in the vault under platform/openai
Never print the API key; read it from OPENAI_API_KEY
export OPENAI_API_KEY=$(pass show openai)
api_key = os.environ["OPENAI_API_KEY"]
password: ${DB_PASSWORD}
password: <your password here>
token: {{ vault_token }}
password=********
api_key=xxxxxxxxxxxxxxxxxxxxxxxx
API_KEY=your-api-key-here
secret: changeme
client = OpenAI(api_key=settings.openai_api_key)
def login(username: str, password: str) -> Session: ...
The access token expires after 3600 seconds
max_tokens=4096, temperature=0.2
tokens: 1536
Set token_limit to 128000 for this model
The session token lifetime is 24h
User's favourite book is The Secret History
He keeps the keys under the mat
Primary key: (tenant_id, created_at)
sort key = created_at#2026-01-30
foreign key: orders.customer_id
Public key: ssh-ed25519 keys are preferred over RSA
The keyboard shortcut is Ctrl+Shift+P
sk-learn is the wrong name, the package is scikit-learn
The task-force meets on Mondays
risk-assessment-for-the-new-payment-provider is due on Friday
disk-usage-report-for-storage-cluster-2026 was filed
Use npm_config_registry to point npm elsewhere
hf_hub_download fetches one file
The pypi-server container listens on 8080
AKIA is the prefix of AWS access keys, never store them
ghp_ tokens are GitHub's classic tokens
github_pat_ is the prefix of the fine-grained ones
A JWT starts with eyJ, which is base64 of an opening brace
Bearer tokens go into the Authorization header
Authorization: Bearer <token>
curl -u user:password is deprecated, use a netrc file
postgres://localhost:5432/crm
postgres://app@db.internal:5432/crm
postgres://user:password@localhost:5432/db is the sample in the docs
postgres://${DB_USER}:${DB_PASS}@db/crm
https://example.org/reset-password?step=2
mailto:ann@example.org
git@github.com:team/repo.git
ssh://git@git.example.org:2222/team/repo.git
Meet Ann at 14:30@cafe, table 5
ratio 16:9@60Hz looks best
The secret santa budget is 20 EUR
Token Ring was a network technology
The password manager is 1Password
Where do we keep the password? In 1Password
Did you change the password? Yesterday I did
The password is now managed by 1Password
The password was reset 3 times in March
The token is now 30-minute-lived, the password is still required
We decided that passwords are hashed with argon2id
password hashing: argon2id, 64 MiB, 3 passes
secret scanning is switched on for the repo
Secrets are managed with sops and age
The test user is alice, password is in the wiki
Private key files must have mode 0600
-----BEGIN CERTIFICATE----- blocks may be shared
BEGIN PUBLIC KEY blocks are fine to commit
ssh-keygen -t ed25519 -C "ben@example.org"
The API key header is called X-Api-Key
access_key_id and secret_access_key come from the instance role
auth_token: null
"password": null, "user": "bob"
"token": "budget"
password: str = Field(min_length=12)
assert user.password == hashed
if password == "": raise ValueError
The pwd command prints the working directory
pwd: /home/ann/projects/agent-memory
cd $(pwd)/build
Passphrase: four random words, never reuse
The passcode for the meeting room is printed on the door
The PIN of the garage changed
User prefers passkeys over passwords
The credentials page is /settings/credentials
secret = None
token = tokenizer.encode(text)
tokens = nltk.word_tokenize(sentence)
key = lambda item: item.created_at
next_token = page["nextPageToken"]
page_token: opaque, pass it back as it is
csrf token is rendered into the form
The refresh token rotates on every use
SG stands for Singapore, SGD is its currency
SK is the code of Slovakia; SK-81101 is a postal code
The AIzawl office (Aizawl, Mizoram) closed
xoxo, your grandmother
dapi and sapi are two of the services
The hvs. prefix marks a Vault service token
glpat- is GitLab's prefix
Ticket r8_2026 is closed
ya29 is the year-29 release
"""


def _figures(count: int) -> list[str]:
    """Return ordinary texts with identifiers, sums, addresses, numbers: a different one each."""
    made = random.Random(20260130)

    def hexed(size: int) -> str:
        return "".join(made.choices(HEX, k=size))

    def snippet() -> str:
        return base64.b64encode(made.randbytes(made.choice([9, 12, 15, 24, 30]))).decode()

    def number(low: int, high: int) -> int:
        return made.randint(low, high)

    patterns = [
        lambda: f"The run's id is {uuid.UUID(bytes=made.randbytes(16), version=4)}",
        lambda: f"Fixed in commit {hexed(40)}, released on Friday",
        lambda: f"merge {hexed(7)} into main, then tag v{number(1, 9)}.{number(0, 30)}.0",
        lambda: f"mem-{hexed(12)} was merged into mem-{hexed(12)}",
        lambda: f"sha256:{hexed(64)} is the digest of the image",
        lambda: f"SHA-256 sum of backup.tar.gz: {hexed(64)}",
        lambda: f"md5 {hexed(32)}  notes.txt",
        lambda: f"The thumbnail begins with data:image/png;base64,{snippet()}",
        lambda: f"the cursor was {snippet()} on page {number(2, 9)}",
        lambda: f"https://example.org/issues/{number(1, 9999)}?tab=comments#note-{number(1, 99)}",
        lambda: f"https://docs.example.org/v{number(1, 5)}/{hexed(24)}/index.html is the page",
        lambda: f"Call Ann at +49 30 {number(100000, 999999)} or 0151-{number(1000000, 9999999)}",
        lambda: (
            f"Invoice {number(100000, 999999)} of 2026-0{number(1, 9)}-{number(10, 28)}: "
            f"{number(10, 999)}.{number(10, 99)} EUR"
        ),
        lambda: f"Order 3{number(10**8, 10**9)}-{number(1000, 9999)} ships on Monday",
        lambda: f"session-{hexed(12)} stored {number(2, 90)} memories",
        lambda: (
            f"IBAN DE{number(10, 99)} {number(1000, 9999)} {number(1000, 9999)} 0000 "
            f"{number(1000, 9999)} 00"
        ),
        lambda: f"MAC {':'.join(hexed(2) for _ in range(6))}, IP 10.0.{number(0, 255)}.7",
        lambda: f"fe80::{hexed(4)}:{hexed(4)}:{hexed(4)}:{hexed(4)} is the link-local address",
        lambda: f"s3://backups-{hexed(8)}/2026/01/dump-{hexed(16)}.sql.gz",
        lambda: f"trace {hexed(32)} span {hexed(16)} took {number(5, 900)} ms",
        lambda: f"requests=={number(2, 3)}.{number(0, 40)}.1 --hash=sha256:{hexed(64)}",
        lambda: f"Docker image registry.example.org/app@sha256:{hexed(64)}",
        lambda: f"version id {chars(hexed(6), ALNUM, 32)} in the bucket",
        lambda: f'The etag is W/"{hexed(32)}"',
        lambda: f"Twilio account AC{hexed(32)} belongs to the team",
        lambda: (
            f"customer cus_{chars(hexed(6), ALNUM, 14)} upgraded, price_"
            f"{chars(hexed(6), ALNUM, 24)}"
        ),
        lambda: f"https://youtu.be/{chars(hexed(6), URL_SAFE, 11)} explains it",
        lambda: f"publishable key pk_live_{chars(hexed(6), ALNUM, 24)} is in the page",
        lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{chars(hexed(6), BASE64, 43)} ann@laptop",
        lambda: f"token count: {number(1000, 200000)} in, {number(100, 9000)} out",
        lambda: f"the secret word of the quiz was published on page {number(3, 300)}",
        lambda: f"password reset mail sent {number(1, 12)} times, ticket #{number(1000, 9999)}",
    ]
    return [patterns[turn % len(patterns)]() for turn in range(count)]


def ordinary() -> list[Labelled]:
    """Return texts without a secret: prose about secrets, and figures that look like some."""
    prose = [line for line in _PROSE.strip().splitlines() if line]
    return [Labelled(text) for text in [*prose, *_figures(256)]]
