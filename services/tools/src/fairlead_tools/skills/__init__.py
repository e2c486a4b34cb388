"""Skills: instructions for particular tasks, found in directories and on the web."""
