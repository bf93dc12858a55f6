"""Agora: the one MCP server that all your agents share.

Importing this package costs nothing: no dependency is loaded before it is used.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
