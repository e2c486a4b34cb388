"""What all protocols share about tool calls: their ids, arguments and schemas."""
