"""MCP servers out of the configuration files of other clients, as tables for `agora.toml`."""
