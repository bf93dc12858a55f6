"""Whether a text looks like instructions to an agent, and why. Pure functions; nothing is refused here."""
