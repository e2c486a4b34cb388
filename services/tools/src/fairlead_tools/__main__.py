"""Runs the tools service: reads the environment once, builds, serves."""

import os

from fairlead_service.process import main
from fairlead_tools.app import build
from fairlead_tools.settings import ToolsSettings

if __name__ == "__main__":
    main("tools", os.environ, lambda config: build(ToolsSettings(config)))
