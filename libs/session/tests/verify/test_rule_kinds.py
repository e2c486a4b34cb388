"""Each rule sees the events that its cases name, so that no rule is skipped by mistake."""

import inspect
import re

from fairlead_schema.events import MANIFEST
from fairlead_session.verify.verify import LogReading

NAMES = {kind.__name__: kind for kind in MANIFEST}


def test_a_rule_is_about_the_events_of_its_cases() -> None:
    for rule in LogReading()._rules:  # noqa: SLF001 - the rules are the subject
        cases = re.findall(r"case (.*?):\n", inspect.getsource(type(rule).check), flags=re.DOTALL)
        named = {name for case in cases for name in re.findall(r"\b[A-Z]\w+", case)}

        assert {NAMES[name] for name in named if name in NAMES} == rule.kinds, type(rule).__name__
