"""Fixtures that every package's tests may ask for."""

pytest_plugins = ["fairlead_testing.postgres"]
