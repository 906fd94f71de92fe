"""What a target's `finddb:` puts into its image: files, environment, labels. Values only.

`bake` leaves its files in images/TARGET.finddb/; they come here as `baked`. The profile's
environment below is PROVISIONAL: it knows one profile and only the fallback solvers, until
profile.py (profile, solver names of the library, system -> files and environment) is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vega_image.errors import UsageError
from vega_image.spec import FindDb, FindDbProfile, Target

FOLDER: Final = "usr/share/vega-image/finddb"
MANIFEST: Final = f"{FOLDER}/manifest.json"
USER_DB: Final = "/tmp/vega-miopen-user-db"  # noqa: S108 - of the container, gone with it
LABEL: Final = "io.vega-image.finddb."
UNPROVEN: Final = "unproven"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# rocBLAS GEMM and the naive HIP kernels: of MIOpen 7.2.4's solvers those that need no
# assembly and no tuning; together they are applicable to every problem of the upstream file.
FALLBACK: Final = (
    "ConvDirectNaiveConvFwd",
    "ConvDirectNaiveConvBwd",
    "ConvDirectNaiveConvWrw",
    "GemmFwd1x1_0_1",
    "GemmFwd1x1_0_2",
    "GemmFwdRest",
    "GemmBwd1x1_stride2",
    "GemmBwd1x1_stride1",
    "GemmBwdRest",
    "GemmWrw1x1_stride1",
    "GemmWrwUniversal",
)
# Off in every find mode and for db hits too: three families as a whole, of the direct solvers,
# to which the naive ones belong, each by its own switch.
_OFF: Final = (
    "WINOGRAD",
    "IMPLICIT_GEMM",
    "FFT",
    "DIRECT_ASM_1X1U",
    "DIRECT_ASM_1X1UV2",
    "DIRECT_ASM_3X3U",
    "DIRECT_ASM_5X10U2V2",
    "DIRECT_ASM_7X7C3H224W224",
    "DIRECT_ASM_WRW1X1",
    "DIRECT_ASM_WRW3X3",
    "DIRECT_OCL_FWD",
    "DIRECT_OCL_FWD11X11",
    "DIRECT_OCL_FWD1X1",
    "DIRECT_OCL_FWDGEN",
    "DIRECT_OCL_WRW1X1",
    "DIRECT_OCL_WRW2",
    "DIRECT_OCL_WRW53",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What is added to an image: `files` by path inside it, variables, labels."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def payload(target: Target, baked: Mapping[str, bytes]) -> Payload:
    """Return what the target's find-db adds; nothing when it asks for none.

    `baked` maps file names, as `bake` wrote them, to bytes. Raises UsageError
    FINDDB_PROFILE, FINDDB_BAKED, FINDDB_DEFEATED.
    """
    spec = target.finddb
    if spec is None:
        return Payload()
    if spec.profile is not FindDbProfile.SAFE:
        msg = f"{target.name}: the find-db profile {spec.profile} cannot be built yet"
        raise UsageError("FINDDB_PROFILE", msg, hint="finddb.profile: safe", at=target.name)
    env = _environment()
    _refuse_defeat(target, env)
    files = {f"{FOLDER}/{_checked(name, target)}": data for name, data in baked.items()}
    files.setdefault(MANIFEST, _manifest_without_records(spec))
    _check_status(files[MANIFEST])
    labels = {LABEL + "profile": spec.profile.value, LABEL + "status": UNPROVEN}
    return Payload(files=files, env=env, labels=labels)


def with_payload(target: Target, added: Payload) -> Target:
    """Return the target with the payload's environment and labels."""
    image = target.image.model_copy(
        update={
            "env": {**target.image.env, **added.env},
            "labels": {**target.image.labels, **added.labels},
        }
    )
    return target.model_copy(update={"image": image})


def _environment() -> dict[str, str]:
    """Let nothing be chosen but the fallback solvers, and nothing be remembered."""
    return {
        "MIOPEN_SYSTEM_DB_PATH": f"/{FOLDER}",
        "MIOPEN_USER_DB_PATH": USER_DB,
        "MIOPEN_DEBUG_FIND_ONLY_SOLVER": ";".join(FALLBACK),
        "MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK": "0",
        **{f"MIOPEN_DEBUG_CONV_{name}": "0" for name in _OFF},
    }


def _refuse_defeat(target: Target, env: Mapping[str, str]) -> None:
    """Let a spec repeat what the profile says, and say nothing else about MIOpen."""
    for name, value in sorted(target.image.env.items()):
        if name.startswith("MIOPEN_") and env.get(name) != value:
            msg = f"{target.name}: image.env sets {name}={value}, which the profile does not"
            raise UsageError(
                "FINDDB_DEFEATED", msg, at="image.env", hint=f"remove {name} from image.env"
            )


def _checked(name: str, target: Target) -> str:
    if not _NAME.fullmatch(name):
        msg = f"images/{target.name}.finddb: {name!r} is not a plain file name"
        raise UsageError("FINDDB_BAKED", msg, at=name)
    return name


def _manifest_without_records(spec: FindDb) -> bytes:
    value = {
        "schema": 1,
        "profile": spec.profile.value,
        "status": UNPROVEN,
        "records": 0,
        "evidence": [],
        "fallback": list(FALLBACK),
    }
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _check_status(manifest: bytes) -> None:
    """Refuse a manifest that claims more than can be checked here, which is nothing yet."""
    try:
        value = json.loads(manifest)
    except ValueError as error:
        msg = f"{MANIFEST}: not JSON: {error}"
        raise UsageError("FINDDB_BAKED", msg, at=MANIFEST) from None
    said = value.get("status") if isinstance(value, dict) else None
    if said != UNPROVEN:
        msg = f"{MANIFEST}: status {said!r}; an image can only say {UNPROVEN!r} yet"
        raise UsageError("FINDDB_BAKED", msg, at=MANIFEST)
