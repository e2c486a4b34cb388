"""Fixtures that every package's tests may ask for, and how properties are searched."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["fairlead_testing.postgres"]

# A machine with other work is slow: that says nothing about a property.
settings.register_profile("fairlead", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fairlead")
