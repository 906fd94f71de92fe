"""Options and fixtures of the whole suite: loud skips, --require, --slow, the real image."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from vega_image.process import run

# Tests compute with torch here and fork afterwards: a child of a process that had OpenMP
# threads waits for them for ever. The suite itself forks before anything was computed.
os.environ["OMP_NUM_THREADS"] = "1"

# A shell's background job ignores Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

TOOLS = {
    "docker": ("docker", "version"),
    "podman": ("podman", "version"),
    "gcc": ("gcc", "--version"),
    "lld": ("ld.lld", "--version"),
    "clang": ("clang", "--version"),
    "eu-elflint": ("eu-elflint", "--version"),
    "mmdebstrap": ("mmdebstrap", "--version"),
    "skopeo": ("skopeo", "--version"),
    "busybox": ("busybox", "true"),
    "diffoscope": ("diffoscope", "--version"),
    "faketime": ("faketime", "--version"),
    "chromium": ("chromium", "--version"),
    "hadolint": ("hadolint", "--version"),
    "packer": ("packer", "version"),
    "ansible": ("ansible-doc", "-t", "module", "--list", "ansible.windows"),
    "ansible-lint": ("ansible-lint", "--version"),
    "qemu": ("qemu-system-x86_64", "--version"),
    "xorriso": ("xorriso", "-version"),
    "sshd": ("sshd", "-V"),
    "netns": ("ip", "netns", "list"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--require",
        action="append",
        default=[],
        metavar="TOOL",
        help="fail, instead of skipping, tests that need this tool; `all` for every one",
    )
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") and not item.config.getoption("--slow"):
        pytest.skip("slow: runs only with --slow")
    required = item.config.getoption("--require")
    for mark in item.iter_markers("needs"):
        for tool in mark.args:
            if have(tool):
                continue
            if tool in required or "all" in required:
                pytest.fail(f"{tool} is required (--require) but not usable here")
            pytest.skip(f"needs {tool}, which is not usable here")


@functools.cache
def have(tool: str) -> bool:
    """Whether a tool really answers, not only whether a file of its name exists."""
    if tool == "root":
        return os.geteuid() == 0
    if tool == "network":
        return bool(_mirror_answers())
    program, *words = TOOLS[tool]
    beside = Path(sys.executable).parent
    found = shutil.which(program) or shutil.which(program, path=str(beside))
    return found is not None and run([found, *words]).returncode == 0


def _mirror_answers() -> bool:
    from urllib.parse import urlsplit

    from vega_image.errors import VegaError
    from vega_image.sources.mirror import host_mirror

    try:
        parts = urlsplit(host_mirror())
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except (OSError, VegaError):
        return False
    return True


@pytest.fixture
def project() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


from tests.realimage import inference_image, real_factory, real_root  # noqa: E402

__all__ = ["inference_image", "real_factory", "real_root"]
