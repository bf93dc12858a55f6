"""Conversations: every message kept verbatim, a summary of what lies further back, and a context within a budget."""
