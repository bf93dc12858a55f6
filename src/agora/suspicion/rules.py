"""What instructions to an agent look like, in English, Italian, Russian, French, Spanish and German."""

from __future__ import annotations

from agora.suspicion.dropping import OVERRIDES
from agora.suspicion.ordering import ORDERS
from agora.suspicion.posing import POSES
from agora.suspicion.prying import DEMANDS
from agora.suspicion.rule import Rule
from agora.suspicion.smuggling import SMUGGLES
from agora.suspicion.steering import STEERS

RULES: tuple[Rule, ...] = (*OVERRIDES, *DEMANDS, *POSES, *ORDERS, *STEERS, *SMUGGLES)
"""Own rules, tried in order: what comes first names the note first."""
