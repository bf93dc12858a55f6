"""Sessions with other MCP servers: processes that speak over their standard streams, and addresses that speak HTTP."""
