"""Every file that a Windows tree names is there, and every file there is named. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TypeAlias

from vega_image.checks.finding import Finding
from vega_image.checks.mediapaths import matches, names
from vega_image.checks.mentions import Said, said_in

Found: TypeAlias = Iterator[tuple[str, int, str]]
MEDIA, STAGES, PATCHES = "media/", "media/vega/stages/", "media/vega/patches/"
SETUP = "media/autounattend.xml"
PATCH = ".edits.json"
# The commands and the operator put them there: built or fetched, never rendered.
PLACED = ("vega-selftest.pyz", "authorized_keys", "drivers", "installers")
_FOLDER = re.compile(re.escape(STAGES) + r"(\d\d)-([a-z0-9-]+)/")
# What a stage carries in a folder, which its script takes whole.
_BELOW_STAGE = re.compile(rf"({_FOLDER.pattern})(?P<folder>[^/]+)/")
RULES: Mapping[str, str] = {
    "XRF001": "a file is named that is not in the tree",
    "XRF002": "a file of the media or an answer file is named by nothing that runs",
    "XRF003": "a file of the media is not among packer's cd_files",
    "XRF004": "a stage's folder is not whole, or does not fit its stage.json",
    "XRF005": "patches.json and the patches do not fit",
}


def check_references(files: Mapping[str, bytes]) -> list[Finding]:
    """Return the findings in a rendered tree (path -> bytes), by file and line.

    Line 0 is a file that nothing names. A file calls another where it names it outside of
    comments; README.md calls in its code blocks; stages are called by run-stage.ps1, patches
    by patches.json.
    """
    said = list(said_in(files))
    judged = (
        ("XRF001", _absent(files, said)),
        ("XRF002", _unnamed(files, said)),
        ("XRF003", _not_on_cd(files, said)),
        ("XRF004", _stages(files)),
        ("XRF005", _patches(files)),
    )
    findings = {
        Finding(rule=rule, path=path, line=line, message=message)
        for rule, found in judged
        for path, line, message in found
    }
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _absent(files: Mapping[str, bytes], said: list[Said]) -> Found:
    checked: dict[str, bool] = {}
    for item in said:
        if item.path.startswith("playbooks/"):
            continue
        for pattern in item.patterns():
            if pattern not in checked:
                checked[pattern] = any(_is(pattern, path) for path in files)
            if not checked[pattern] and not _is_placed(pattern):
                yield item.path, item.line, f"{pattern} is not in the tree"


def _is_placed(pattern: str) -> bool:
    name = pattern.removeprefix("media/vega/").split("/")[0]
    return pattern.startswith("media/vega/") and name in PLACED


def _is(pattern: str, path: str) -> bool:
    if pattern.startswith("*/"):
        return PurePosixPath(path).name.lower() == pattern[2:]
    return matches(pattern, path)


def _unnamed(files: Mapping[str, bytes], said: list[Said]) -> Found:
    texts: dict[str, list[str]] = defaultdict(list)
    for item in said:
        texts[item.path] += [item.text, *item.names]
    told = {path: "\n".join(parts) for path, parts in texts.items()}
    for path in files:
        if not path.startswith((MEDIA, "answer/")) or _is_looked_for(path):
            continue
        name = PurePosixPath(path).name
        if any(names(text, name) for other, text in told.items() if other != path):
            continue
        stage = _BELOW_STAGE.match(path)
        if stage is None or not names(told.get(stage[1] + "stage.ps1", ""), stage["folder"]):
            yield path, 0, "nothing that runs names this file"


def _is_looked_for(path: str) -> bool:
    """Whether Windows Setup, the runner of stages or an index looks for the file itself."""
    name = PurePosixPath(path).name
    if path.startswith(PATCHES):
        return name == "patches.json" or name.endswith(PATCH)
    stage = _FOLDER.match(path) is not None and name in {"stage.json", "stage.ps1"}
    return stage or path == SETUP


def _not_on_cd(files: Mapping[str, bytes], said: list[Said]) -> Found:
    brought = [name for item in said if item.cd for name in item.names]
    for path in files:
        if not brought or not path.startswith(MEDIA):
            continue
        if not any(matches(pattern, path) for pattern in brought):
            yield path, 0, "packer's cd_files do not bring it to the CD"


def _stages(files: Mapping[str, bytes]) -> Found:
    folders = {found[0]: found[2] for path in files if (found := _FOLDER.match(path))}
    runner = files.get(STAGES + "run-stage.ps1", b"")
    for folder, name in sorted(folders.items()):
        if folder + "stage.ps1" not in files:
            yield folder + "stage.ps1", 0, "this stage has no stage.ps1"
        place = folder + "stage.json"
        if place not in files:
            yield place, 0, "this stage has no stage.json"
            continue
        stage = _json(files[place])
        if not isinstance(stage, dict) or stage.get("stage") != name:
            line = _line(files[place], '"stage"')
            yield place, line, f"its stage is not {name}, as its folder says"
            continue
        needs = stage.get("needs")
        for need in needs if isinstance(needs, list) else ():
            earlier = [known for other, known in folders.items() if other < folder]
            if need not in earlier:
                yield (
                    place,
                    _line(files[place], f'"{need}"'),
                    f"no stage {need} comes before it",
                )
    for word in ("stage.json", "stage.ps1") if folders else ():
        if word.encode() not in runner:
            yield STAGES + "run-stage.ps1", 0, f"the runner does not name {word}"


def _patches(files: Mapping[str, bytes]) -> Found:
    left = {path for path in files if path.startswith(PATCHES) and path.endswith(PATCH)}
    for place in sorted(files):
        if place.startswith(PATCHES) and PurePosixPath(place).name == "patches.json":
            folder = place.removesuffix("patches.json")
            listed = {text for text in _texts(_json(files[place])) if text.endswith(PATCH)}
            for text in sorted(listed):
                if folder + text not in files:
                    yield place, _line(files[place], text), f"{text} is not among the patches"
            left -= {folder + text for text in listed}
    for path in sorted(left):
        yield path, 0, "no patches.json names it"


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _texts(value: object) -> Iterator[str]:
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)


def _line(data: bytes, text: str) -> int:
    at = data.find(text.encode("utf-8", "surrogatepass"))
    return data.count(b"\n", 0, at) + 1 if at >= 0 else 1
