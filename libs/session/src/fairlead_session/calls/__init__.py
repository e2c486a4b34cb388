"""Tool calls: begin, settle, bound their output, and delegate to sub-agents."""
