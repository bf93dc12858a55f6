"""One module a format: what other tools keep, as events."""
