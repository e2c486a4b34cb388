"""Runs ingest: reads the environment once, builds, serves."""

import gc
import os

from fairlead_ingest.app import build
from fairlead_ingest.settings import IngestSettings
from fairlead_service.process import main

if __name__ == "__main__":
    # A batch of an import makes many small values without cycles. Collections took a third of its time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    main("ingest", os.environ, lambda config: build(IngestSettings(config)))
