"""Fixtures that every package's tests may ask for, and how properties are searched."""

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["fairlead_testing.postgres"]

# A machine with other work is slow: that says nothing about a property.
settings.register_profile("fairlead", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fairlead")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the collector of garbage: what is made there lives to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
