"""The types of the console, written as JSDoc and checked by the compiler of TypeScript."""

import json
from pathlib import Path
from subprocess import run

import pytest

from fairlead_testing.console_javascript import STATIC
from fairlead_testing.node_packages import install_package

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]


def test_the_types_of_the_console_hold(tmp_path: Path) -> None:
    package = install_package("typescript", "5.6.3")
    settings = {
        "compilerOptions": {
            "allowJs": True,
            "checkJs": True,
            "noEmit": True,
            "target": "es2023",
            "module": "esnext",
            "moduleResolution": "bundler",
            "lib": ["es2023", "dom", "dom.iterable"],
            "noImplicitThis": True,
            "noUnusedLocals": True,
            "types": [],
        },
        "include": [f"{STATIC}/**/*"],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings))

    done = run(
        [package / "node_modules/.bin/tsc", "--project", tmp_path],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-6000:]
