"""What writes summaries and finds facts: by rules, or with a language model that somebody serves."""
