"""The settings of compaction that a configuration without changes gives."""

from typing import Final

from fairlead_service.config.sections import CompactionConfig
from fairlead_session.compaction.compaction import CompactionPolicy

DEFAULT_COMPACTION: Final = CompactionPolicy(**CompactionConfig().model_dump())
