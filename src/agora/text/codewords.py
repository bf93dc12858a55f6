"""Lists by which `agora.text.anchors` tells names in code from prose. Closed on purpose: a wrong anchor joins notes."""

from __future__ import annotations

from typing import Final


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


EXTENSIONS: Final = tuple(
    _words(
        "py pyi ipynb js mjs cjs jsx ts tsx vue svelte css scss html htm md rst txt toml yaml yml json jsonl",
        "ini cfg conf env lock sql sh bash zsh ps1 bat cmd c h cc cpp hpp cs go rs rb php java kt kts swift",
        "scala clj ex exs erl hs lua pl r jl dart m mm tf proto graphql xml csv tsv log db sqlite onnx gradle",
        "properties service plist",
    )
)
"""Of files that are named without a folder."""

FOLDERS: Final = frozenset(
    _words(
        "src lib libs app apps pkg packages cmd internal bin scripts script tools test tests spec docs doc",
        "examples config configs public static assets templates migrations etc usr var opt home tmp dist",
        "build .github .vscode .git .claude .cursor node_modules server client frontend backend services",
    )
)
"""First folders by which a path without an extension is told from "and/or"."""

ERRNO: Final = tuple(
    _words(
        "EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EBADF EBUSY ECONNABORTED ECONNREFUSED ECONNRESET EEXIST",
        "EHOSTUNREACH EINTR EINVAL EIO EISDIR EMFILE ENETUNREACH ENOENT ENOMEM ENOSPC ENOTDIR ENOTEMPTY",
        "ENOTFOUND EPERM EPIPE EPROTO ERANGE EROFS ESRCH ETIMEDOUT EWOULDBLOCK EXDEV EAI_AGAIN ERESOLVE",
    )
)

STATUS: Final = (
    "Bad Request",
    "Unauthorized",
    "Forbidden",
    "Not Found",
    "Method Not Allowed",
    "Request Timeout",
    "Conflict",
    "Gone",
    "Payload Too Large",
    "Unprocessable Entity",
    "Unprocessable Content",
    "Too Many Requests",
    "Internal Server Error",
    "Not Implemented",
    "Bad Gateway",
    "Service Unavailable",
    "Gateway Timeout",
)
"""Words that make three digits a status of HTTP."""

STANDARDS: Final = frozenset(
    _words(
        "UTF UCS SHA MD ISO IEC IEEE RFC AES DES RSA CRC CP GPT BM ES HTTP TLS SSL UTC GMT IPV USB PEP PEPS",
        "COVID EC ECMA BCP UAX TR LATIN ASCII KOI WINDOWS BASE FP INT UINT FLOAT ARM CUDA TOP VGA",
    )
)
"""What looks like the project of a ticket and is none: UTF-8, SHA-256, RFC-2119."""

BRANDS: Final = frozenset(
    _words(
        "github gitlab javascript typescript postgresql mysql mariadb mongodb sqlite openai chatgpt youtube",
        "linkedin bitbucket graphql kubernetes macos ios ipados iphone ipad wordpress rabbitmq clickhouse",
        "elasticsearch dynamodb nosql fastapi numpy pytorch tensorflow scipy webassembly websocket websockets",
        "powershell intellij pycharm webstorm vscode jetbrains eslint nodejs nextjs node.js next.js vue.js",
        "nuxt.js express.js three.js d3.js react.js angular.js couchdb cockroachdb planetscale localhost",
        "devops cicd oauth openapi restful saas paas iaas agnostic mcdonald cloudflare digitalocean hashicorp",
        "circleci teamcity newrelic pagerduty datadog codeql huggingface deepmind langchain llamaindex",
        "whatsapp paypal ebay appkit uikit swiftui webkit readthedocs",
    )
)
"""Names of products that are written like classes or files; everybody names them, so they join nothing."""
