"""What MIOpen would see in an image or on a host, and whether the profile holds there.

Pure: `Seen` is what was found, `judge` says what of it defeats the profile. A variable of
another value, wherever it is set, defeats it: some process will be started with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vega_image.finddb.findings import Finding as LintFinding
from vega_image.finddb.lint import lint
from vega_image.finddb.manifest import Manifest, overstated
from vega_image.finddb.problem import FormError
from vega_image.finddb.profile import (
    ONLY,
    PLACES,
    USER_DB,
    Profile,
    System,
    allowed,
    apply,
)
from vega_image.finddb.record import Record
from vega_image.finddb.registry import registry
from vega_image.finddb.text import FindDb

PREFIX = "MIOPEN_"
# They neither choose nor unlock a solver.
HARMLESS = (
    "MIOPEN_LOG_LEVEL", "MIOPEN_ENABLE_LOGGING", "MIOPEN_CHECK_NUMERICS",
    "MIOPEN_DUMP_TENSOR_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_DISABLE_CACHE",
    "MIOPEN_COMPILE_PARALLEL_LEVEL", "MIOPEN_DEBUG_CONVOLUTION_DETERMINISTIC",
    "MIOPEN_DRIVER_",
)  # fmt: skip
# Not MIOpen's own, but each makes it look up another card's db or run other kernels.
ALIEN = ("HSA_OVERRIDE_", "ROCBLAS_TENSILE_LIBPATH")
# They put another libMIOpen, or code before it, in the place of the one that is looked at.
LOADER = ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT")
# What lint finds in a record that MIOpen never looks up, and what harms the call that finds it.
NEVER_READ = frozenset({"BAD_KEY", "BYTE_ORDER_MARK"})
BREAKING = frozenset({
    "WORKSPACE_UNDERSTATED", "WORKSPACE_NOT_A_NUMBER", "UNKNOWN_ALGORITHM",
    "WRONG_DIRECTION_ALGORITHM", "FFT_FOR_WEIGHTS", "CURRENT_ITEM_SHORT", "WRONG_FAMILY",
    "TOO_MANY_ITEMS",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable and where it is set."""

    name: str
    value: str
    place: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the profile; `defeats` is whether it does not hold because of it."""

    code: str
    message: str
    defeats: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found; paths are those inside the root.

    `environ` is everything set, the last of a name counts. `system_db` is the digest of the
    db that MIOpen would open, None without one; `system_records` its bytes, `user_dbs` and
    `perf_dbs` by path, `library` its digest and `lacking` names of FIND_ONLY it has not got.
    """

    manifest: Manifest | None
    environ: tuple[Assignment, ...] = ()
    system_path: str = ""
    system_db: str | None = None
    system_records: bytes = b""
    user_dbs: Mapping[str, bytes] = field(default_factory=dict)
    perf_dbs: tuple[str, ...] = ()
    library: str | None = None
    lacking: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment that results."""
        return {one.name: one.value for one in self.environ}


def system_of(variables: Mapping[str, str], folder: str) -> System:
    """Return the system whose places are used: `folder` is where the manifest was."""
    there = [system for system in System if PLACES[system].folder == folder]
    user_db = variables.get(USER_DB, "")
    return next((one for one in there if PLACES[one].user_db == user_db), there[0])


def judge(seen: Seen, system: System) -> list[Finding]:
    """Return all findings; the profile holds if none of them defeats it."""
    manifest = seen.manifest
    if manifest is None:
        text = "no profile is installed: MIOpen chooses freely, and keeps what it chose"
        return [Finding("PROFILE_ABSENT", text)]
    if manifest.profile is Profile.UPSTREAM:
        text = "profile upstream: nothing is proven, nothing is kept from being chosen"
        return [Finding("UPSTREAM", text, defeats=False)]
    return [
        *_claims(manifest),
        *_variables(seen, manifest, system),
        *_system_db(seen, manifest),
        *_library(seen, manifest),
        *_perf_dbs(seen, manifest),
        *_user_dbs(seen, manifest),
        *_open_solvers(manifest, system),
    ]


def _claims(manifest: Manifest) -> Iterator[Finding]:
    if wrong := overstated(manifest):
        yield Finding("STATUS_OVERSTATED", f"the manifest: {wrong}")


def expected(manifest: Manifest, system: System) -> Mapping[str, str]:
    """Return the variables of the manifest's profile."""
    return apply(manifest.profile, registry(), system, serves=manifest.serves).environ


def _variables(seen: Seen, manifest: Manifest, system: System) -> Iterator[Finding]:
    wanted = expected(manifest, system)
    have = {one.name for one in seen.environ}
    for one in seen.environ:
        if one.name in wanted:
            if one.value != wanted[one.name]:
                text = f"{one.name}={one.value!r} in {one.place}; the profile says"
                yield Finding("VARIABLE_DIFFERS", f"{text} {wanted[one.name]!r}")
        elif one.name in LOADER and one.value:
            text = f"{one.name}={one.value!r} in {one.place}: another libMIOpen may be loaded"
            yield Finding("OTHER_LIBRARY", text, defeats=bool(manifest.serves))
        elif one.name.startswith(ALIEN) or (
            one.name.startswith(PREFIX) and not one.name.startswith(HARMLESS)
        ):
            text = f"{one.name}={one.value!r} in {one.place} is not of the profile"
            yield Finding("VARIABLE_ADDED", text)
    for name in wanted:
        if name not in have:
            yield Finding("VARIABLE_MISSING", f"{name} is not set anywhere; {wanted[name]!r}")


def _open_solvers(manifest: Manifest, system: System) -> Iterator[Finding]:
    names = apply(manifest.profile, registry(), system, serves=manifest.serves).open
    if names:
        text = "share the switch of a proven solver: only db and FIND_ONLY keep them out"
        yield Finding("OPEN_SOLVERS", f"{', '.join(names)} {text}", defeats=False)


def _system_db(seen: Seen, manifest: Manifest) -> Iterator[Finding]:
    path = seen.system_path or "(unknown)"
    if manifest.db is None:
        if seen.system_db is not None:
            text = f"{path}: the manifest has no records, but there is a db"
            yield Finding("SYSTEM_DB_CHANGED", text)
        else:
            text = f"no records: Find chooses among the {manifest.profile} profile's solvers"
            yield Finding("NO_RECORDS", text, defeats=False)
    elif seen.system_db is None:
        text = f"there is no {path}: every problem is a miss"
        yield Finding("SYSTEM_DB_ABSENT", text)
    elif seen.system_db != manifest.db.sha256:
        text = f"{path} is not the db that the manifest is of"
        yield Finding("SYSTEM_DB_CHANGED", text)


def _library(seen: Seen, manifest: Manifest) -> Iterator[Finding]:
    if seen.lacking:
        text = f"{ONLY} names {', '.join(seen.lacking)}, which the library has not got"
        yield Finding("FIND_ONLY_UNKNOWN", f"{text}: every Find fails (status 3)")
    if not manifest.serves:
        return
    if seen.library is None:
        text = "no libMIOpen here to compare with the one the evidence is of"
        yield Finding("LIBRARY_ABSENT", text, defeats=False)
    elif seen.library != manifest.library:
        text = f"libMIOpen is sha256:{seen.library}, the evidence of sha256:{manifest.library}"
        yield Finding("EVIDENCE_VOID", text)


def _perf_dbs(seen: Seen, manifest: Manifest) -> Iterator[Finding]:
    for path in seen.perf_dbs:
        text = f"{path}: a perf-db gives solvers other perf-configs than were proven"
        yield Finding("PERF_DB", text, defeats=bool(manifest.serves))


def _user_dbs(seen: Seen, manifest: Manifest) -> Iterator[Finding]:
    system = FindDb(seen.system_records, seen.system_path)
    for path, data in sorted(seen.user_dbs.items()):
        user = FindDb(data, path)
        bad = [text for text in _against(user, system, manifest) if text]
        for text in bad[:3]:
            yield Finding("USER_DB", f"{path}: {text}")
        if len(bad) > 3:  # noqa: PLR2004 - as many as are spelled out
            yield Finding("USER_DB", f"{path}: {len(bad)} records in all defeat the profile")
        if not bad and data.strip():
            count = sum(1 for _ in user.records())
            text = (
                f"{path}: {count} records that MIOpen can find, of solvers the profile allows"
            )
            yield Finding("USER_DB_HARMLESS", text, defeats=False)


def _against(user: FindDb, system: FindDb, manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with each record of a user's db; MIOpen skips what is none."""
    always = allowed(manifest.profile, ())
    harm = _harm(user)
    yield from harm.values()
    for record in user.records():
        if record.line in harm:
            continue
        names = [item.solver for item in record.items]
        may = always | _served(system, record.key)
        strange = [name for name in names if name not in may]
        if strange:
            where = "replaces the system's record" if record.key in system else "is new"
            yield f"line {record.line} {where} with {strange[0]}, which is not proven for it"
        elif record.key in system and _hides(record, names):
            yield f"line {record.line} hides the system's record of {record.key}"


def _harm(user: FindDb) -> dict[int, str]:
    """Say by line which records break a call of MIOpen, whatever solvers they name."""
    found: dict[int, list[LintFinding]] = {}
    for one in lint(user).findings():
        found.setdefault(one.line, []).append(one)
    first = {number + 1 for number in user.index.values()}
    return {
        line: f"line {line}: {one.message}"
        for line, here in found.items()
        if line in first and not any(one.code in NEVER_READ for one in here)
        for one in here
        if one.code in BREAKING
    }


def _served(system: FindDb, key: str) -> frozenset[str]:
    try:
        return frozenset(i.solver for i in system[key].items) if key in system else frozenset()
    except FormError:
        return frozenset()


def _hides(record: Record, names: list[str]) -> bool:
    direction = record.problem.direction
    known = (registry().get(name) for name in names)
    return not any(one and one.usable and direction in one.directions for one in known)
