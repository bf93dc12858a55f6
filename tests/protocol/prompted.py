"""Every prompt, its arguments, and what it is given in the tests."""

from __future__ import annotations

from mcp import Client

GIVEN: dict[str, dict[str, str]] = {
    "analyze_error_logs": {"logs": "ERROR 42 connection refused"},
    "code_review": {"code": "x = 1", "language": "python"},
    "find_inconsistencies": {},
    "generate_api_docs": {"code": "@app.get('/x')", "api_name": "Shop"},
    "generate_test_cases": {"source": "def f(): ..."},
    "recall_context": {"topic": "the cache"},
    "session_handoff": {},
}
ARGUMENTS = {
    "analyze_error_logs": ["logs", "timeframe", "severity_focus", "language"],
    "code_review": ["code", "language", "context", "prompt_language"],
    "find_inconsistencies": ["topic", "language"],
    "generate_api_docs": ["code", "api_name", "base_url", "language"],
    "generate_test_cases": ["source", "type", "framework", "language"],
    "recall_context": ["topic", "language"],
    "session_handoff": ["language"],
}


async def got(client: Client, name: str, **given: str) -> str:
    done = await client.get_prompt(name, given)
    (message,) = done.messages
    assert message.role == "user"
    assert done.description
    return str(message.content.text)  # type: ignore[union-attr]
