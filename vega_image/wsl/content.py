"""What vega-image adds to the root of a .wsl archive: configuration, first boot, records. Pure.

Texts come from templates/wsl/; values are computed here, a template only places them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from vega_image.render import render_text
from vega_image.spec import Target
from vega_image.wsl import places
from vega_image.wsl.manifest import FOLDER, REGISTRY_KEY, manifest_url
from vega_image.wsl.spec import Wsl

# Seconds a level may take on one slow core before it counts as failed.
_LIMIT: Final = MappingProxyType({"r1": 900, "r2": 7200})
_TEMPLATES: Final = {
    places.CONF: "wsl.conf.j2",
    places.DISTRIBUTION: "wsl-distribution.conf.j2",
    places.OOBE: "oobe.sh.j2",
    places.REFERENCE: "reference.sh.j2",
    places.PROFILE: "profile.sh.j2",
    places.README: "README.md.j2",
    f"{places.UNITS}/vega-reference.service": "vega-reference.service.j2",
    f"{places.UNITS}/vega-reference-again.service": "vega-reference-again.service.j2",
    f"{places.UNITS}/vega-reference.timer": "vega-reference.timer.j2",
}


def wsl_files(
    target: Target,
    template: Callable[[str], str],
    *,
    pyz: bytes,
    playbooks: Mapping[str, bytes] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Return path in the archive -> bytes.

    `template` reads a text by its path under templates/, `pyz` is the self-test as one file,
    `playbooks` are files of playbooks/ and inventory/ by their path. Raises UsageError
    TEMPLATE_INVALID.
    """
    section = section_of(target)
    wanted = dict(_TEMPLATES)
    if section.terminal:
        wanted[places.TERMINAL] = "terminal-profile.json.j2"
    values = _values(target, section)
    files = {
        path: render_text(template(f"wsl/{name}"), values, at=f"templates/wsl/{name}").encode()
        for path, name in wanted.items()
    }
    files |= {f"{places.SHARE}/{path}": data for path, data in playbooks.items()}
    files[places.PYZ] = pyz
    return dict(sorted(files.items()))


def section_of(target: Target) -> Wsl:
    """Return the section `wsl:` of a target of that kind."""
    assert target.wsl is not None
    return target.wsl


def _values(target: Target, section: Wsl) -> dict[str, object]:
    user = section.default_user
    return {
        "target": target.name,
        "title": target.title,
        "version": target.version,
        "gpu": target.gpu,
        "file": places.archive_name(target),
        "name": section.name,
        "user": user.name,
        "uid": user.uid,
        "home": user.folder,
        "level": section.first_boot.level,
        "time_limit": _LIMIT[section.first_boot.level],
        "systemd": _word(section.systemd),
        "automount": _word(section.automount.enabled),
        "automount_root": section.automount.root,
        "automount_options": section.automount.options,
        "interop": _word(section.interop.enabled),
        "append_windows_path": _word(section.interop.append_windows_path),
        "generate_hosts": _word(section.network.generate_hosts),
        "generate_resolv_conf": _word(section.network.generate_resolv_conf),
        "profile": places.TERMINAL if section.terminal else "",
        "color_scheme": section.terminal.color_scheme if section.terminal else "",
        "oobe": places.OOBE,
        "reference": places.REFERENCE,
        "state": places.STATE,
        "pyz": places.PYZ,
        "lock": places.LOCK,
        "folder": FOLDER,
        "key": REGISTRY_KEY,
        "manifest_url": manifest_url(None),
    }


def _word(value: bool) -> str:  # noqa: FBT001 - a value to be written, not a switch
    """Write a boolean as wsl.conf does."""
    return "true" if value else "false"
