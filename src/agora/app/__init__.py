"""Composition root: the only package that names adapters."""
