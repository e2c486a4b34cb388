"""Verification: rules over a log that do not use the fold. Nothing else imports this package."""
