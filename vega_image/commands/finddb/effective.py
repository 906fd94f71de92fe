"""vega-image finddb effective: what MIOpen sees here, and whether the profile holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import check_subject
from vega_image.console import table
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.assignments import concerns, of_process
from vega_image.finddb.effective import Assignment, Finding, Seen, judge, system_of
from vega_image.finddb.installed import variables_of
from vega_image.finddb.manifest import MANIFEST, Manifest, db_name, decode
from vega_image.finddb.opening import read_bytes
from vega_image.finddb.probe.library import FOLDERS, NAME
from vega_image.finddb.profile import ENVIRONMENT, ONLY, PLACES, SYSTEM_DB, USER_DB, System
from vega_image.finddb.roots import FolderRoot, ImageRoot, Root

UNPROVEN = 9
DEFAULT_USER_DB = ".config/miopen"
SHIPPED_DB = "usr/share/miopen/db"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRequest:
    """Where to look, and with which variables a process is started there."""

    ref: str | None
    root: Path | None
    environ: Path | None
    assignments: tuple[str, ...]


def run_effective(call: Call, request: EffectiveRequest) -> int:
    """Show db, variables and findings; exit 9 if anything defeats the profile."""
    root, image_env, name = _open(call, request)
    folder, manifest = _manifest(root, name)
    environ = tuple(_environ(call, request, root=root, folder=folder, image_env=image_env))
    seen = look(root, manifest, environ)
    system = system_of(seen.variables, folder)
    findings = judge(seen, system)
    defeated = any(one.defeats for one in findings)
    value = _value(name, seen, findings, system)
    call.console.result(list(_lines(name, seen, findings)), {**value, "holds": not defeated})
    return UNPROVEN if defeated else 0


def _open(call: Call, request: EffectiveRequest) -> tuple[Root, tuple[str, ...] | None, str]:
    """Return the root, an image's own variables (None for a folder), and what to call it."""
    check_subject(request.ref, request.root, word="effective")
    if request.root is not None:
        return FolderRoot(request.root), None, str(request.root)
    from vega_image.images import layout_of  # noqa: PLC0415 - only for images
    from vega_image.oci.layout import read_layout  # noqa: PLC0415
    from vega_image.oci.unpack import image_files  # noqa: PLC0415

    assert request.ref is not None
    store = call.store
    layout = read_layout(layout_of(store, request.ref))
    files = {file.path: file for file in image_files(layout, store)}
    said = json.loads(layout.config).get("config", {}).get("Env") or ()
    return ImageRoot(files, store), tuple(map(str, said)), request.ref


def _manifest(root: Root, name: str) -> tuple[str, Manifest | None]:
    """Return where a profile is installed, and its manifest."""
    folders = list(dict.fromkeys(place.folder for place in PLACES.values()))
    for folder in folders:
        data = root.read(f"{folder}/{MANIFEST}")
        if data is not None:
            return folder, decode(data, f"{name}: {folder}/{MANIFEST}")
    return folders[0], None


def _environ(
    call: Call,
    request: EffectiveRequest,
    *,
    root: Root,
    folder: str,
    image_env: tuple[str, ...] | None,
) -> Iterator[Assignment]:
    """Yield every variable that concerns MIOpen, the last of a name being the one that counts.

    A folder that sets nothing is an image's root: its variables are in the image's
    configuration, of which `environment` beside the manifest is a copy.
    """
    here: list[Assignment] = []
    if image_env is not None:
        here += of_process("\0".join([*image_env, ""]).encode(), "the image's configuration")
    if request.environ is not None:
        data = read_bytes(request.environ)
        here += of_process(data, str(request.environ))
    if image_env is None and request.environ is None:
        here += variables_of(root)
        if not any(one.name.startswith("MIOPEN_") for one in here):
            copy = root.read(f"{folder}/{ENVIRONMENT}") or b""
            here = [*of_process(copy, f"{folder}/{ENVIRONMENT} (recorded)"), *here]
        if request.root is not None and request.root.resolve() == Path("/"):
            said = call.settings.environ.items()
            here += [Assignment(name, value, "this process") for name, value in said]
    for text in request.assignments:
        name, mark, value = text.partition("=")
        if not mark or not name:
            msg = f"--env {text}: NAME=VALUE is expected"
            hint = "--env MIOPEN_FIND_MODE=1"
            raise UsageError("BAD_ASSIGNMENT", msg, at=text, hint=hint)
        here.append(Assignment(name, value, "--env"))
    yield from (one for one in here if concerns(one.name))


def look(root: Root, manifest: Manifest | None, environ: tuple[Assignment, ...]) -> Seen:
    """Find the dbs and the library that a process with these variables would use."""
    variables = {one.name: one.value for one in environ}
    db_folder = _path(variables.get(SYSTEM_DB, f"/{SHIPPED_DB}"))
    name = manifest.db.name if manifest and manifest.db else db_name(60)
    system = root.read(f"{db_folder}/{name}")
    library = _library(root, tuple(variables.get(ONLY, "").split(";")))
    users = {
        f"{folder}/{name}"
        for folder in _user_folders(root, variables)
        for name in root.names(folder)
    }
    perf = [f"{db_folder}/{name}" for name in root.names(db_folder) if _is_perf_db(name)]
    return Seen(
        manifest=manifest,
        environ=environ,
        system_path=f"/{db_folder}/{name}",
        system_db=None if system is None else hashlib.sha256(system).hexdigest(),
        system_records=system or b"",
        user_dbs={p: root.read(p) or b"" for p in sorted(users) if p.endswith(".ufdb.txt")},
        perf_dbs=tuple(
            sorted([*perf, *(p for p in users if p.endswith((".udb", ".udb.txt")))])
        ),
        library=library[0] if library else None,
        lacking=library[1] if library else (),
    )


def _is_perf_db(name: str) -> bool:
    return name.startswith("gfx906") and name.endswith((".db", ".db.txt")) and "fdb" not in name


def _path(text: str) -> str:
    r"""Return a path in the root, of `C:\dir` too."""
    path = text.replace("\\", "/")
    drive = path[1:2] == ":"
    return (path[2:] if drive else path).strip("/")


def _user_folders(root: Root, variables: dict[str, str]) -> list[str]:
    """Return where user dbs may be: the one that is set, and every home's default."""
    homes = ["root", "tmp", *(f"home/{name}" for name in root.names("home"))]
    defaults = [f"{home}/{DEFAULT_USER_DB}" for home in homes]
    windows = [f"Users/{name}/.miopen/db" for name in root.names("Users")]
    chosen = [_path(variables[USER_DB])] if variables.get(USER_DB) else []
    return list(dict.fromkeys([*chosen, *defaults, *windows]))


def _library(root: Root, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    wanted = tuple(name for name in names if name)
    for folder in FOLDERS:
        found = root.holds(f"{folder}/{NAME}", wanted)
        if found:
            digest, there = found
            return digest, tuple(name for name in wanted if name not in there)
    return None


def _value(name: str, seen: Seen, findings: list[Finding], system: System) -> dict[str, Json]:
    manifest = seen.manifest
    return {
        "root": name,
        "system": system.value,
        "profile": manifest.profile.value if manifest else None,
        "status": manifest.status if manifest else None,
        "system_db": seen.system_path,
        "system_db_digest": f"sha256:{seen.system_db}" if seen.system_db else None,
        "records": manifest.db.records if manifest and manifest.db else 0,
        "library_digest": f"sha256:{seen.library}" if seen.library else None,
        "user_dbs": list(seen.user_dbs),
        "environment": [
            {"name": one.name, "value": one.value, "from": one.place} for one in seen.environ
        ],
        "findings": [
            {"code": x.code, "defeats": x.defeats, "message": x.message} for x in findings
        ],
    }


def _lines(name: str, seen: Seen, findings: list[Finding]) -> Iterator[str]:
    manifest = seen.manifest
    profile = f"profile {manifest.profile}, {manifest.status}" if manifest else "no profile"
    yield f"{name}: {profile}"
    yield f"system db   {seen.system_path}{'' if seen.system_db else ' (absent)'}"
    yield f"user dbs    {', '.join(seen.user_dbs) or 'none'}"
    yield f"libMIOpen   {'sha256:' + seen.library if seen.library else 'absent'}"
    yield ""
    rows = [(one.name, one.place, one.value) for one in seen.environ]
    yield from table(("VARIABLE", "FROM", "VALUE"), rows)
    yield ""
    for one in findings:
        yield f"{'DEFEATS' if one.defeats else 'note'}  {one.code}: {one.message}"
    defeats = sum(one.defeats for one in findings)
    yield f"the profile is defeated: {defeats} findings" if defeats else "the profile holds"
