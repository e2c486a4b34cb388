"""Runs the projector: `python -m fairlead_projector`."""

import gc
import os
import sys

from fairlead_projector.app import build
from fairlead_projector.settings import ProjectorSettings
from fairlead_service import logs
from fairlead_service.config.configuration import ConfigError, load
from fairlead_service.process import serve


def main() -> None:
    """Read the environment once, build the application, and serve it until a signal."""
    try:
        config = load(None, os.environ)
    except ConfigError as error:
        sys.exit(str(error))
    # A batch makes many small values without cycles. Frequent collection halves the throughput.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    logs.configure("projector", config.log.level)
    settings = ProjectorSettings.of(config)
    serve(build(settings), host=settings.host, port=settings.port)


if __name__ == "__main__":
    main()
