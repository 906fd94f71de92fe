"""Steps -> exact bytes: what engines and people read. Pure; the only importer of jinja2.

Values are computed here and tested as Python; a template only places them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import jinja2  # noqa: TID251 - this is its one place

from vega_image.digest import digest_bytes
from vega_image.errors import UsageError
from vega_image.lock import Lock, LockedDebian
from vega_image.oci.image import labels_of
from vega_image.spec import Stage, Target

TEMPLATE_SUFFIX = ".j2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The templates of the final image: template path under templates/ -> text."""

    dockerfile: str
    service: str
    script: str


def render_text(template: str, values: Mapping[str, object], *, at: str) -> str:
    """Fill a template; raises UsageError TEMPLATE_INVALID naming file and line."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Dockerfiles and units, not HTML
    )
    environment.filters["json"] = _json
    try:
        return environment.from_string(template).render(values)
    except jinja2.TemplateSyntaxError as error:
        where = f"{at}:{error.lineno}"
        raise UsageError("TEMPLATE_INVALID", f"{where}: {error.message}", at=where) from None
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise UsageError("TEMPLATE_INVALID", f"{at}: {error}", at=at) from None


def _text(data: bytes, at: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"{at}: not UTF-8 text at byte {error.start}"
        raise UsageError("TEMPLATE_INVALID", msg, at=at) from None


def _json(value: object) -> str:
    if isinstance(value, jinja2.Undefined):
        # Any use of an undefined value says which one it is, but json.dumps.
        return str(value)
    return json.dumps(value, ensure_ascii=True)


def render_stage(
    stage: Stage, recipe: Mapping[str, bytes], *, epoch: int, gpu: str
) -> dict[str, bytes]:
    """Return the build context of a stage: `*.j2` files filled, all others as they are.

    Templates see `option.NAME`, `gpu`, `epoch`; `BASE` is a build argument, so that one
    rendered text serves every engine.
    """
    values = {"option": stage.options, "gpu": gpu, "epoch": epoch, "name": stage.name}
    files: dict[str, bytes] = {}
    for name, data in sorted(recipe.items()):
        if name == "recipe.yaml":
            continue
        if not name.endswith(TEMPLATE_SUFFIX):
            files[name] = data
            continue
        at = f"templates/stages/{stage.recipe}/{name}"
        text = render_text(_text(data, at), values, at=at)
        files[name.removesuffix(TEMPLATE_SUFFIX)] = text.encode()
    return files


def render_target(
    target: Target, lock: Lock, *, texts: Texts, stages: Mapping[str, Mapping[str, bytes]]
) -> dict[str, bytes]:
    """Return every file of `render -o DIR`, with `context.json` naming the rest by digest."""
    values = _values(target, lock)
    files = {
        "Dockerfile": _filled(texts.dockerfile, values, "Dockerfile.j2"),
        ".dockerignore": b"pool\nstages\nunits\nscripts\ncontext.json\n",
        "scripts/build-and-smoke.sh": _filled(texts.script, values, "scripts/smoke.sh.j2"),
    }
    if target.serve:
        unit = _filled(texts.service, values, "units/serve.service.j2")
        files[f"units/vega-image-{target.name}.service"] = unit
    for name, context in stages.items():
        files |= {f"stages/{name}/{path}": data for path, data in context.items()}
    layers = [f"layers/{layer.name}.tar" for layer in target.layers]
    files["context.json"] = context_json(target, lock, files, {"layers": layers})
    return dict(sorted(files.items()))


def _filled(template: str, values: Mapping[str, object], name: str) -> bytes:
    return render_text(template, values, at=f"templates/image/{name}").encode()


def _values(target: Target, lock: Lock) -> dict[str, object]:
    return {
        "name": target.name,
        "version": target.version,
        "title": target.title,
        "gpu": target.gpu,
        "epoch": lock.epoch,
        "lock_digest": lock.digest,
        "layers": [layer.name for layer in target.layers],
        "labels": sorted(labels_of(target, lock).items()),
        "env": sorted(target.config.env.items()),
        "user": target.config.user,
        "workdir": target.config.workdir,
        "entrypoint": list(target.config.entrypoint),
        "cmd": list(target.config.cmd),
    }


def context_json(
    target: Target, lock: Lock, files: Mapping[str, bytes], placed: Mapping[str, list[str]]
) -> bytes:
    """Name what `render` wrote by digest, and what only `render --context` can place."""
    pool = {
        f"pool/{file.sha256}.deb": {"sha256": file.sha256, "size": file.size}
        for source in lock.sources.values()
        if isinstance(source, LockedDebian)
        for file in source.packages
    }
    manifest = {
        "target": target.name,
        "lock": lock.digest,
        "rendered": {name: digest_bytes(data) for name, data in sorted(files.items())},
        "placed_by_context": {**placed, "pool": pool},
    }
    return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
