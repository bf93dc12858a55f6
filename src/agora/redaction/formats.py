"""The formats of keys and tokens that begin with a word of their own.

After the rule files of gitleaks (https://github.com/gitleaks/gitleaks, MIT, commit b58d3f1 of 2026-07-22) and the
plugins of detect-secrets (https://github.com/Yelp/detect-secrets, Apache-2.0, commit 5e14193 of 2026-04-02), written
anew: a prefix, the characters that follow it, and how many of them at least. Lengths are lower bounds, a little under
the documented ones where those have grown before: a longer or a mistyped key is hidden as well.
"""

from __future__ import annotations

from dataclasses import dataclass

HEX = "0-9a-fA-F"
ALNUM = "0-9A-Za-z"
UPPER = "0-9A-Z"
WORD = "0-9A-Za-z_"
URL = "0-9A-Za-z_-"
DOTTED = "0-9A-Za-z_.-"
BASE64 = "0-9A-Za-z+/=_"
SEALED = "0-9A-Za-z+/=_.-"


@dataclass(frozen=True, slots=True)
class Format:
    """A secret that is `prefix` and at least `least` of the characters `of` (a class of a regular expression)."""

    kind: str
    prefix: str
    of: str
    least: int
    most: int | None = None
    """With a bound the secret ends there, and is one only if no letter or digit follows."""


def _rows(kind: str, of: str, least: int, *prefixes: str, most: int | None = None) -> tuple[Format, ...]:
    return tuple(Format(kind, prefix, of, least, most) for prefix in prefixes)


FORMATS: tuple[Format, ...] = (
    *_rows("aws-access-key", UPPER, 16, "AKIA", "ASIA", "ABIA", "ACCA", most=16),
    *_rows("aws-access-key", UPPER, 17, "A3T", most=17),
    *_rows("aws-bedrock-key", BASE64, 100, "ABSK"),
    *_rows("aws-bedrock-key", BASE64, 28, "bedrock-api-key-"),
    *_rows("alibaba-key", ALNUM, 20, "LTAI"),
    *_rows("google-api-key", URL, 33, "AIza"),
    *_rows("google-oauth-token", DOTTED, 20, "ya29."),
    *_rows("google-oauth-secret", URL, 24, "GOCSPX-"),
    *_rows("yandex-key", URL, 35, "AQVN"),
    *_rows("digitalocean-token", HEX, 60, "dop_v1_", "doo_v1_", "dor_v1_"),
    *_rows("github-token", WORD, 30, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_rows("github-token", WORD, 40, "github_pat_"),
    *_rows("gitlab-token", DOTTED, 18, "glpat-", "gldt-", "glft-", "glffct-", "glcbt-", "glimt-", "glptt-", "glrt-"),
    *_rows("gitlab-token", DOTTED, 18, "glsoat-", "glagent-", "gloas-", "glrtr-", "glwt-", "GR1348941"),
    *_rows("gitlab-token", ALNUM, 32, "_gitlab_session="),
    *_rows("slack-token", URL, 12, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxo-", "xoxs-", "xoxe-", "xoxc-", "xoxd-"),
    *_rows("slack-token", URL, 40, "xoxe.xoxb-", "xoxe.xoxp-"),
    *_rows("slack-token", URL, 20, "xapp-"),
    *_rows("anthropic-key", URL, 30, "sk-ant-"),
    *_rows("openrouter-key", URL, 32, "sk-or-"),
    *_rows("openai-key", URL, 32, "sk-proj-", "sk-svcacct-", "sk-admin-"),
    *_rows("openai-key", ALNUM, 32, "sk-"),
    *_rows("huggingface-token", ALNUM, 30, "hf_", "api_org_"),
    *_rows("groq-key", ALNUM, 40, "gsk_"),
    *_rows("xai-key", ALNUM, 40, "xai-"),
    *_rows("perplexity-key", ALNUM, 40, "pplx-"),
    *_rows("replicate-token", ALNUM, 36, "r8_"),
    *_rows("nvidia-key", URL, 40, "nvapi-"),
    *_rows("tavily-key", URL, 24, "tvly-"),
    *_rows("stripe-key", ALNUM, 10, "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
    *_rows("stripe-key", ALNUM, 28, "whsec_"),
    *_rows("square-token", URL, 22, "sq0atp-", "sq0csp-"),
    *_rows("sendgrid-key", DOTTED, 40, "SG."),
    *_rows("sendinblue-key", URL, 60, "xkeysib-", "xsmtpsib-"),
    *_rows("mailgun-key", HEX, 32, "key-", "pubkey-"),
    *_rows("shopify-token", HEX, 32, "shpat_", "shpca_", "shppa_", "shpss_"),
    *_rows("shippo-token", HEX, 36, "shippo_live_", "shippo_test_"),
    *_rows("easypost-key", ALNUM, 54, "EZAK", "EZTK"),
    *_rows("flutterwave-key", ALNUM, 12, "FLWSECK_TEST-", "FLWSECK-"),
    *_rows("facebook-token", ALNUM, 80, "EAAM", "EAAC", "EAAB", "EAAG"),
    *_rows("npm-token", ALNUM, 34, "npm_"),
    *_rows("npm-token", URL, 10, "_authToken="),
    *_rows("pypi-token", URL, 40, "pypi-AgE"),
    *_rows("rubygems-key", HEX, 40, "rubygems_"),
    *_rows("clojars-token", ALNUM, 50, "CLOJARS_"),
    *_rows("nuget-key", ALNUM, 43, "oy2", most=43),
    *_rows("artifactory-key", ALNUM, 60, "AKCp"),
    *_rows("artifactory-token", ALNUM, 59, "cmVmd", most=59),
    *_rows("docker-token", URL, 24, "dckr_pat_", "dckr_oat_"),
    *_rows("hashicorp-vault-token", URL, 60, "hvs.", "hvb.", "hvr."),
    *_rows("databricks-token", HEX, 32, "dapi"),
    *_rows("doppler-token", ALNUM, 40, "dp.pt.", "dp.st.", "dp.sa.", "dp.ct."),
    *_rows("pulumi-token", HEX, 40, "pul-"),
    *_rows("planetscale-token", DOTTED, 32, "pscale_tkn_", "pscale_oauth_", "pscale_pw_"),
    *_rows("supabase-key", URL, 20, "sb_secret_"),
    *_rows("supabase-key", HEX, 40, "sbp_"),
    *_rows("flyio-token", URL, 43, "fo1_"),
    *_rows("flyio-token", BASE64, 100, "fm1a_", "fm1r_", "fm2_"),
    *_rows("heroku-key", URL, 50, "HRKU-AA"),
    *_rows("scalingo-token", URL, 48, "tk-us-"),
    *_rows("octopus-key", UPPER, 26, "API-", most=26),
    *_rows("grafana-token", BASE64, 32, "glc_"),
    *_rows("grafana-token", WORD, 36, "glsa_"),
    *_rows("grafana-key", BASE64, 70, "eyJrIjoi"),
    *_rows("newrelic-key", URL, 19, "NRAK-", "NRJS-", "NRII-"),
    *_rows("dynatrace-token", DOTTED, 60, "dt0c01."),
    *_rows("sentry-token", BASE64, 40, "sntrys_", "sntryu_"),
    *_rows("postman-key", URL, 50, "PMAK-"),
    *_rows("prefect-token", ALNUM, 36, "pnu_", "pnb_"),
    *_rows("readme-key", ALNUM, 60, "rdme_"),
    *_rows("linear-key", ALNUM, 36, "lin_api_", "lin_oauth_"),
    *_rows("notion-token", ALNUM, 43, "ntn_", most=46),
    *_rows("figma-token", URL, 36, "figd_", "figr_"),
    *_rows("atlassian-token", SEALED, 80, "ATATT3", "ATCTT3", "ATBB"),
    *_rows("dropbox-token", URL, 100, "sl."),
    *_rows("typeform-token", DOTTED, 50, "tfp_"),
    *_rows("frameio-token", SEALED, 60, "fio-u-"),
    *_rows("duffel-token", SEALED, 43, "duffel_test_", "duffel_live_"),
    *_rows("infracost-key", ALNUM, 32, "ico-", most=32),
    *_rows("settlemint-token", ALNUM, 16, "sm_aat_", "sm_pat_", "sm_sat_"),
    *_rows("sourcegraph-token", WORD, 40, "sgp_", "slk_"),
    *_rows("intra42-secret", HEX, 60, "s-s4t2ud-", "s-s4t2af-"),
    *_rows("adobe-secret", ALNUM, 32, "p8e-"),
    *_rows("1password-token", BASE64, 100, "ops_eyJ"),
    *_rows("age-key", UPPER, 50, "AGE-SECRET-KEY-1"),
    *_rows("defined-networking-key", SEALED, 60, "dnkey-"),
    *_rows("openshift-token", URL, 43, "sha256~"),
    *_rows("jwt-base64", BASE64, 80, "ZXlK"),
)
"""Every format, in the order in which they are tried."""
