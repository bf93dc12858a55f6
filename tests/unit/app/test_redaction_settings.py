from __future__ import annotations

from pathlib import Path

import pytest

from agora.app.checking import diagnose, failures
from agora.app.guarding import guard_of
from agora.config.load import load_settings
from agora.config.settings import Settings


@pytest.mark.parametrize(("mode", "warned"), [("redact", False), ("refuse", False), ("off", True)])
def test_the_doctor_names_the_mode_and_warns_where_secrets_are_not_looked_for(
    tmp_path: Path, mode: str, *, warned: bool
) -> None:
    rows = diagnose(load_settings({}, {"AGORA_HOME": str(tmp_path / "home"), "AGORA_REDACTION_MODE": mode}))
    (row,) = [row for row in rows if row["name"] == "redaction"]
    assert failures([row]) == []
    assert row.get("warning", False) is warned
    assert ("not looked for" in row["message"]) is warned
    assert warned or mode in row["message"]


def test_a_call_may_hold_as_much_as_its_limits_allow_together() -> None:
    settings = Settings.model_validate({"limits": {"content_bytes": 2_000, "query_chars": 200}})
    guard = guard_of(settings)
    within = {"content": "x" * 2_000, "title": "t" * 300, "metadata": {"a": "m" * 16_000}, "tags": ["g" * 64] * 32}
    assert not guard.arguments(within).too_much
    assert guard.arguments({"content": "x" * 70_000}).too_much
