"""Find and read the factory: images/, templates/ and what else is text beside the code.

A factory is a folder with `images/`: the one given by -C, the current folder or a parent of
it, or the copy inside the installed package.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vega_image.anytarget import AnyTarget
from vega_image.digest import digest, digest_bytes
from vega_image.errors import LockError, UsageError
from vega_image.plan import StepKind
from vega_image.spec import Target
from vega_image.specfile import check_references, decode_recipe, decode_target
from vega_image.windows.containers import refuse_windows_container
from vega_image.windows.spec import WindowsTarget

PACKAGE = Path(__file__).parent
CODE = frozenset({".py", ".tsv", ".yaml"})
MODULES: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.ROOT: ("rootfs",),
    StepKind.STAGE: ("rootfs", "engines"),
    StepKind.SLIM: ("codeobjects", "engines/device_code.py"),
    StepKind.CENSUS: ("codeobjects", "engines/device_code.py"),
    StepKind.FINDDB: ("finddb", "rootfs", "engines/find_db.py"),
    StepKind.LAYERS: ("rootfs", "oci", "engines/native.py"),
    StepKind.IMAGE: ("oci", "engines/native.py"),
    StepKind.ARCHIVE: ("rootfs", "oci", "wsl", "engines/native.py"),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One folder of templates/stages/: file name -> exact bytes."""

    name: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """What the recipe's bytes are."""
        return digest({name: digest_bytes(data) for name, data in self.files.items()})


@dataclass(frozen=True, slots=True)
class Factory:
    """Where the texts are."""

    root: Path

    @classmethod
    def find(cls, given: Path | None, *, cwd: Path) -> Factory:
        """Find the factory; raises UsageError NO_FACTORY when -C names none."""
        if given is not None:
            if (given / "images").is_dir():
                return cls(given)
            msg = f"{given}: no folder images/ here"
            raise UsageError("NO_FACTORY", msg, at=str(given), hint="vega-image -C DIR targets")
        for folder in (cwd, *cwd.parents):
            if next((folder / "images").glob("*.yaml"), None):
                return cls(folder)
        return cls(_shipped())

    @property
    def installed(self) -> bool:
        """Whether this is the copy inside the installed package, which nobody should change."""
        return self.root == PACKAGE / "factory_data"

    def names(self) -> list[str]:
        """All targets, sorted."""
        return sorted(path.stem for path in (self.root / "images").glob("*.yaml"))

    def spec_path(self, name: str) -> Path:
        """Where the spec of a target lies."""
        return self.root / "images" / f"{name}.yaml"

    def lock_path(self, name: str) -> Path:
        """Where the lock of a target lies or would lie."""
        return self.root / "images" / f"{name}.lock.json"

    def target(self, name: str) -> Target:
        """Read and check the spec of a target that is an image.

        Raises UsageError TARGET_KIND for a Windows target, and what `spec` raises.
        """
        found = self.spec(name)
        if isinstance(found, WindowsTarget):
            raise _windows(name)
        return found

    def refuse_windows(self, ref: str) -> None:
        """Refuse a REF that names a Windows target, of which the store holds no image.

        Raises UsageError TARGET_KIND, and what `spec` raises for that target.
        """
        name = re.split("[:@]", ref, maxsplit=1)[0]
        if name in self.names() and isinstance(self.spec(name), WindowsTarget):
            raise _windows(name)

    def spec(self, name: str) -> AnyTarget:
        """Read and check the spec of a target of any kind.

        Raises UsageError: UNKNOWN_TARGET (with a guess), SPEC_INVALID, SPEC_NOT_YAML.
        """
        known = self.names()
        if name not in known:
            refuse_windows_container(name, at=name)
            close = difflib.get_close_matches(name, known, n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            msg = f"no target {name!r} in {self.root / 'images'}{guess}"
            raise UsageError("UNKNOWN_TARGET", msg, hint="vega-image targets", at=name)
        path = self.spec_path(name)
        at = f"images/{path.name}"
        text = _text(path)
        target = decode_target(text, at=at)
        if target.name != name:
            msg = f"{at}: name: is {target.name!r}, but the file is called {path.name}"
            raise UsageError("SPEC_INVALID", msg, at=at, hint=f"name: {name}")
        check_references(target, at=at, recipes=self.recipes(), text=text)
        return target

    def lock_text(self, name: str) -> bytes:
        """Read the bytes of a lock; raises LockError LOCK_MISSING."""
        path = self.lock_path(name)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            msg = f"images/{path.name}: there is no lock for {name}"
            hint = f"vega-image lock {name}"
            raise LockError("LOCK_MISSING", msg, hint=hint, at=f"images/{path.name}") from None

    def baked(self, name: str) -> dict[str, bytes]:
        """Read what `finddb bake` left for a target: file name -> bytes; {} without."""
        folder = self.root / "images" / f"{name}.finddb"
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        try:
            return {path.name: path.read_bytes() for path in paths}
        except OSError as error:
            msg = f"{error.filename}: {error.strerror}"
            raise UsageError("UNREADABLE", msg, at=str(folder)) from None

    def recipes(self) -> dict[str, frozenset[str]]:
        """All stage recipes and the options of each; raises UsageError RECIPE_INVALID."""
        paths = sorted(self.root.glob("templates/stages/*/recipe.yaml"))
        places = {path: path.relative_to(self.root).as_posix() for path in paths}
        return {p.parent.name: decode_recipe(_text(p), at=places[p]) for p in paths}

    def recipe(self, name: str) -> Recipe:
        """Read the files of a recipe, all of them."""
        folder = self.root / "templates" / "stages" / name
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return Recipe(name, {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths})

    def template(self, path: str) -> str:
        """Read a template by its path under templates/, from here or from the package."""
        here = self.root / "templates" / path
        return _text(here if here.is_file() else _shipped() / "templates" / path)

    def folder(self, name: str) -> dict[str, bytes]:
        """Read all files below playbooks/ or another folder, from here or from the package."""
        here = self.root if (self.root / name).is_dir() else _shipped()
        paths = sorted(p for p in (here / name).rglob("*") if p.is_file())
        kept = [path for path in paths if "__pycache__" not in path.parts]
        return {path.relative_to(here).as_posix(): path.read_bytes() for path in kept}

    def makers(self) -> dict[StepKind, str]:
        """Digest the code that makes each kind of step: new code never reuses old results."""
        return {kind: _code_digest(names) for kind, names in MODULES.items()}


def _windows(name: str) -> UsageError:
    msg = f"{name} is a Windows target: a machine is made of it, no image that runs here"
    hint = f"vega-image render|check|plan|lock|build {name}"
    return UsageError("TARGET_KIND", msg, hint=hint, at=name)


def _shipped() -> Path:
    beside = PACKAGE.parent
    return beside if (beside / "images").is_dir() else PACKAGE / "factory_data"


def _code_digest(names: tuple[str, ...]) -> str:
    places = [PACKAGE / name for name in names]
    inside = [path for place in places for path in place.rglob("*") if path.suffix in CODE]
    files = sorted({*inside, *(place for place in places if place.is_file())})
    code = {path.relative_to(PACKAGE).as_posix(): path.read_bytes() for path in files}
    return digest({name: digest_bytes(data) for name, data in code.items()})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path.name}: not UTF-8 text at byte {error.start}"
        raise UsageError("SPEC_NOT_YAML", msg, at=str(path)) from None
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise UsageError("UNREADABLE", msg, at=str(path)) from None
