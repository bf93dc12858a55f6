"""Conversations in the store: messages in their order, their summaries, and what forgetting one takes with it."""
