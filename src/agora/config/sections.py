"""What the tables of `agora.toml` are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def number(value: object) -> object:
    """What is to be a number, as it is.

    Raises: ValueError for true and false.
    """
    # Python counts `true` as 1; in a configuration file it is a mistake.
    if isinstance(value, bool):
        raise ValueError("a number is expected, not true or false")  # noqa: TRY004 - pydantic wants ValueError
    return value


def lower(value: object) -> object:
    """A text in lower case; anything else as it is."""
    return value.casefold() if isinstance(value, str) else value


def secret(value: object) -> object:
    """What is to be a secret, as a text: a refusal would show it. What is no key is found where it is used."""
    return value if value is None or isinstance(value, str | SecretStr) else str(value)


Whole = Annotated[int, BeforeValidator(number)]
Seconds = Annotated[float, BeforeValidator(number), Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """One table of `agora.toml`: frozen, and with no other keys than its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)
