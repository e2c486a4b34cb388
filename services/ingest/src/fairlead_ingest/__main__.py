"""Runs ingest: reads the environment once, builds, serves."""

import os

from fairlead_ingest.app import build
from fairlead_ingest.settings import IngestSettings
from fairlead_service.process import main

if __name__ == "__main__":
    main("ingest", os.environ, lambda config: build(IngestSettings(config)))
