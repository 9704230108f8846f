"""The package is plain Python: it can be used where Django is not set up, and pulls no SDK in."""

import subprocess
import sys
from pathlib import Path

import agents_app.config

PACKAGE = Path(agents_app.config.__file__).parent

PROBE = """
import importlib, sys
for name in {names!r}:
    importlib.import_module("agents_app.config." + name)
heavy = {{"django", "rest_framework", "celery", "channels", "redis", "anthropic", "openai", "boto3"}}
print(sorted(heavy & {{name.split(".")[0] for name in sys.modules}}))
"""


def test_no_module_imports_django_or_an_sdk() -> None:
    names = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
    probe = PROBE.format(names=names)
    root = PACKAGE.parent.parent
    done = subprocess.run([sys.executable, "-c", probe], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
