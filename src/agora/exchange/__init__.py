"""Notes as files: out of a store, into one, out of other tools' files; and MCP servers out of clients' files."""
