"""Runs the hooks service: reads the environment once, builds, serves."""

import os

from fairlead_hooks.app import build
from fairlead_hooks.settings import HooksSettings
from fairlead_service.process import main

if __name__ == "__main__":
    main("hooks", os.environ, lambda config: build(HooksSettings(config)))
