"""Commands that run, check, repair or measure a stack."""
