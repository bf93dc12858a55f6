from __future__ import annotations

import pytest

from agora.text.echo import Echo

NOTE = "The checkout fails with a timeout because the payment gateway closes idle connections after 30 seconds."


@pytest.mark.parametrize(
    "text",
    [
        NOTE,
        NOTE.upper(),
        "Note: " + NOTE,
        "The checkout fails with a timeout because the payment gateway closes idle connections after 30 s, I read.",
        "The payment gateway closes idle connections after 30 seconds.",
    ],
)
def test_a_text_that_keeps_the_wording_repeats_it(text: str) -> None:
    assert Echo(text).share(NOTE) >= 0.6


@pytest.mark.parametrize(
    "text",
    [
        NOTE.replace("30", "60"),
        "Idle connections are closed by the gateway, so the checkout runs into a timeout.",
        "Unrelated.",
        "",
        NOTE + " " + " ".join(f"word{n}" for n in range(40)),
    ],
)
def test_a_correction_a_text_of_its_own_and_one_with_more_of_its_own_repeat_nothing(text: str) -> None:
    assert Echo(text).share(NOTE) == 0


def test_short_texts_repeat_each_other_by_near_equality() -> None:
    assert Echo("Port 5432").share("port 5432")
    assert not Echo("Port 5433").share("port 5432")
