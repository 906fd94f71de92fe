"""Load torch when a suite needs it; listing and explaining cases never do."""

from __future__ import annotations

import importlib
from typing import Any


def load_torch() -> Any:
    """Return the torch module, whichever version is installed.

    Raises ImportError where there is none. Untyped on purpose: what a torch offers differs
    between the versions that images carry, and the suite must judge all of them.
    """
    return importlib.import_module("torch")
