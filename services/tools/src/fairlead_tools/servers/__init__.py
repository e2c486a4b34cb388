"""Tool servers: programs and addresses that the operator configured, spoken to over MCP."""
