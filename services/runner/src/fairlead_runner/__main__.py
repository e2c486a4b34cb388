"""Runs a runner: reads the environment once, builds, serves."""

import os

from fairlead_runner.app import build
from fairlead_runner.settings import RunnerSettings
from fairlead_service.process import main

if __name__ == "__main__":
    main("runner", os.environ, lambda config: build(RunnerSettings(config)))
