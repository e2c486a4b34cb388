"""Routes of messages: prompt, pending input, transcript."""
