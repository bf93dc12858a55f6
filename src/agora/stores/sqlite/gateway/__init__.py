"""What the store keeps of other MCP servers: pins of tools, the record of calls, long results, vectors."""
