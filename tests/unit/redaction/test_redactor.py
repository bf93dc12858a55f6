from __future__ import annotations

import hashlib
import random
import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.redaction.formats import FORMATS, Format
from agora.redaction.redactor import Redactor

LETTERS = string.ascii_letters + string.digits
RANDOM = random.Random(7)  # noqa: S311 - made-up secrets


def made(length: int, alphabet: str = LETTERS) -> str:
    """Random characters, a digit and letters of both cases among them where the alphabet has them."""
    return "".join(RANDOM.choices(alphabet, k=length - 3)) + alphabet[0] + alphabet[-1] + alphabet[len(alphabet) // 2]


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.prefix)
def test_a_token_of_a_known_format_is_replaced_whole(row: Format) -> None:
    secret = row.prefix + made(row.most or row.least, "ABCDEF0123456789")
    clean, counts = Redactor().text(f"use {secret} now")
    assert secret[len(row.prefix) :] not in clean
    assert clean.startswith("use ")
    assert clean.endswith(" now")
    assert sum(counts.values()) == 1


def test_the_password_alone_goes_from_an_address() -> None:
    secret = made(12) + "@" + made(3)
    clean, _ = Redactor().text(f"postgresql://shop:{secret}@db.local:5432/main?ssl=1")
    assert clean == "postgresql://shop:[REDACTED:password]@db.local:5432/main?ssl=1"


def test_a_private_key_goes_also_where_its_end_is_missing() -> None:
    head, body = "-----BEGIN RSA PRIVATE " + "KEY-----", "\n".join(made(64) for _ in range(5))
    tail = "-----END RSA PRIVATE " + "KEY-----"
    assert Redactor().text(f"a\n{head}\n{body}\n{tail}\nz")[0] == "a\n[REDACTED:private-key]\nz"
    assert body[:20] not in Redactor().text(f"a\n{head}\n{body}")[0]


@pytest.mark.parametrize(
    "line", ["password = '{}'", "API_KEY={}", '"client_secret": "{}"', "Authorization: Bearer {}", "curl -u me:{} x"]
)
def test_what_is_called_a_secret_is_replaced_and_its_name_stays(line: str) -> None:
    secret = made(20)
    clean, counts = Redactor().text(line.format(secret))
    assert secret not in clean
    assert clean.split("[")[0] == line.split("{", maxsplit=1)[0]
    assert sum(counts.values()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "The password is {}.",
        "the password for root: {}",
        "La password del server è {}",
        "set the password to {}",
        "password `{}`",
        "**Password:** {}",
        "**API key**: `{}`",
        "| token | {} |",
        "API key: {}",
        "the token is {}",
        "machine h login me password {}",
        "deploy --token {}",
        "deploy --db-password '{}'",
        'db_password          = "{}"',
        "password: |\n        {}\n",
        'password = b"{}"',
        '"\\"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}\\""',
        "sshpass -p {} ssh h",
        "mysql -u root -p{} shop",
        "docker login -u me -p {}",
        "密码：{}",
        "log: \\nghp_{}abcdefgh",
        "redirect=%3Fcode%3Dghp_{}abcdefgh",
        "\x1b[32mghp_{}abcdefgh\x1b[0m",
        "postgres://me:a/{}#1@db/main",
        "https://{}aB3@github.com/acme/shop",
    ],
)
def test_a_secret_in_a_sentence_in_markdown_or_on_a_command_line_is_replaced(line: str) -> None:
    secret = "x7Kq2mZ9" + "pL4vT8wB3nR6sD1f"
    clean, counts = Redactor().text(line.format(secret))
    assert secret not in clean
    assert sum(counts.values()) == 1


def test_a_backslash_in_a_password_does_not_end_it() -> None:
    # As Go writes `&`.
    assert Redactor().text('{"password": "Tr0ub4dor\\u00263xK9"}')[0] == '{"password": "[REDACTED:password]"}'


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha1(b"a").hexdigest(),  # noqa: S324 - as git names a commit
        f"fixed in commit {hashlib.sha1(b'b').hexdigest()}, see abc1234",  # noqa: S324 - as above
        f"sha256:{hashlib.sha256(b'c').hexdigest()}",
        f"id {uuid.UUID(int=5)}",
        '"integrity": "sha512-' + "aB3/" * 20 + 'aBcDeQ=="',
        "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" * 40,
        "token = os.environ['TOKEN']",
        "password = getpass.getpass()",
        "password: ${DB_PASSWORD}",
        "DB_PASSWORD=\nDB_USER_1=\nDB_TOKEN=\nDB_HOST=db1.example\n",
        "password:\n  min_length: 8\n  rule_2: x1!",
        "connect(password=, user=bob_1)",
        "connect(password= user=bob_1)",
        "class APDescriptor: pass",
        "boto3 for aws, sha256=3n-dlsUP35U4CLBTmx28P7Tsdc4rxNnaURZi9xIFzr8,416",
        "PWD: '/srv/ann/project-7', OLDPWD=/data/node/x1",
        "APCConnectionError and AKCollectionView",
        "token = b64encode(user)",
        'PASSWORD_SAFE = "".join(chr(c))',
        "a URL is scheme://[user[:password]@]host",
        "def token_count(tokens: list[str]) -> int:",
        "existingSecret: postgres-auth-v2, service_key: svc-frontend-2",
        'password = r"^(?=.*[A-Z])(?=.*\\d).{8,}$"',
        '"token": "C:\\\\Users\\\\x1\\\\tok", "password": "C:\\\\data\\\\pw2\\\\db"',
        'token: "\\u001b[31m2"',
        "password: argon2id",
        "with: { token: process.env.GITHUB_TOKEN_V2 }",
        "tokenizer: bert-base-uncased-v2",
        "password_encryption = scram-sha-256",
        "AWS: see packages/infra/lib/stacks/Ec2StackConst.ts and class V1PodFailurePolicyOnExitCodesRequirement",
        "get the secret db-credentials-2, the token gpt-4o-mini-2024-07-18 and the license key 2024-01-15T10:30:00Z",
        "the password is 8-16 characters, the token is RS256-signed, the api key v1.2.3-beta4 is set to null1",
        'def __init__(self, username, password):\n        """Constructor."""',
        "'password',\n            'curle_ftp_weird_227_format',",
        "redis://cache:6379/0?x=1 and a@b.example",
        "max_tokens=4000, password_hash=5f4dcc3b5aa765d61d8327deb882cf99",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().text(text)[0] == text


def test_keys_and_values_of_nested_data_are_replaced_and_no_field_is_lost() -> None:
    one, two = "ghp_" + made(36), "ghp_" + made(36)
    found = Redactor().data({one: 1, two: [{"password": "x9!kd82jd"}], "n": 3})
    assert found.value == {
        "[REDACTED:github-token]": 1,
        "[REDACTED:github-token] (2)": [{"password": "[REDACTED:password]"}],
        "n": 3,
    }
    assert found.counts == {"github-token": 2, "password": 1}
    assert found.places["[REDACTED:github-token] (2)[0].password"] == ["password"]


def test_a_text_without_case_is_searched_in_any_case() -> None:
    secret = ("AKIA" + made(16, string.ascii_uppercase)).lower()
    assert Redactor().text(secret)[0] == secret
    assert Redactor().text(secret, folded=True)[0] == "[REDACTED:aws-access-key]"


def test_an_allowed_secret_stays() -> None:
    secret = "ghp_" + "x" * 36
    assert Redactor([r"ghp_x+"]).text(secret)[0] == secret
    assert Redactor([r"ghp_"]).text(secret)[0] == "[REDACTED:github-token]"


def test_a_secret_in_what_looks_like_a_label_is_replaced() -> None:
    secret = "ghp_" + made(36)
    assert secret not in Redactor().text(f"[REDACTED:{secret}]")[0]


PIECES = ["password=", "token: ", '"', "'", " ", "\n", "://u:", "@", "ghp_", "sk-", "aB3dE5gH7jK9mN1pQ3", "[REDACTED:"]
PIECES += [
    "password is ",
    "api key ",
    "**",
    "`",
    "\\",
    "\\n",
    "%3D",
    " -p",
    "mysql",
    "|\n",
    "postgres://u:p/",
    "--token ",
]
PIECES += ["-----BEGIN PRIVATE " + "KEY-----", "curl -u ", "Bearer ", "=", ":", "]", "A" * 41, "İ"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_was_redacted_is_left_as_it_is(text: str) -> None:
    clean, _ = Redactor().text(text)
    assert Redactor().text(clean) == (clean, {})
