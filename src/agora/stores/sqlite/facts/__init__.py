"""Facts in the store: the statements of each key, and what queries may find of them."""
