"""The programs of Ansible, and a surrounding in which only our own settings count."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from vega_image.errors import EngineError
from vega_image.process import which

# What a connection may need from the person who runs it; all else stays outside.
PASSED = ("SSH_AUTH_SOCK", "KRB5CCNAME", "KRB5_CONFIG")
PASSED_PREFIX = "VEGA_"


def program(name: str) -> str:
    """Find a program beside our own Python, else on PATH.

    Raises EngineError TOOL_ABSENT naming it when it is not installed.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else which(name)
    if found is None:
        msg = f"{name} is not installed"
        raise EngineError("TOOL_ABSENT", msg, hint="pip install 'vega-image[check,provision]'")
    return found


def environment(
    scratch: Path, *, config: Path, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return variables for an Ansible program that reads and writes only below `scratch`.

    `config` is the only ansible.cfg it reads; settings of the user and the machine (ANSIBLE_*,
    ~/.ansible.cfg, /etc/ansible) do not count. VEGA_* variables pass: secrets come that way.
    """
    home = scratch / "home"
    home.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    passed = {
        name: value
        for name, value in environ.items()
        if name in PASSED or name.startswith(PASSED_PREFIX)
    }
    return {
        **passed,
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_HOME": str(home / ".ansible"),
        "ANSIBLE_LOCAL_TEMP": str(home / "tmp"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_GALAXY_SERVER_LIST": "",
        "PYTHONDONTWRITEBYTECODE": "1",
        # A library's warning lands in the middle of what is read as JSON or as findings.
        "PYTHONWARNINGS": "ignore",
    }
