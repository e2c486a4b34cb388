"""Skills: instructions for particular tasks, from directories and web sites."""
