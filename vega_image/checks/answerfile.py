"""All static checks of Windows answer files. Nothing is run; no Windows was at hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from vega_image.checks import answeraccounts, answerdisks, answerrules
from vega_image.checks.answerrules import Found
from vega_image.checks.answerxml import AnswerXmlError, Element, parse
from vega_image.checks.finding import Finding
from vega_image.checks.secretwords import keys_in
from vega_image.checks.textform import Newline, line_at, line_ends
from vega_image.windows.spec import Platform

_BYPASS = "ANS017"
_JUDGES: Mapping[str, tuple[str, Callable[[Element], Found]]] = {
    "ANS002": (
        "the root or an element is not of Microsoft's namespace",
        answerrules.wrong_root,
    ),
    "ANS003": ("a pass is unknown or stands twice", answerrules.wrong_pass),
    "ANS004": ("a component is unknown or not for this pass", answerrules.wrong_component),
    "ANS005": ("a component's attributes name another system", answerrules.wrong_attribute),
    "ANS006": ("a component has no such setting, or not here", answerrules.unknown_element),
    "ANS007": ("an Order is missing, out of range or given twice", answerrules.wrong_order),
    "ANS008": ("a text is longer than Windows reads, or empty", answerrules.too_long),
    "ANS009": ("a disk or partition is named that is not made", answerdisks.wrong_id),
    "ANS010": ("partitions are out of order or without a size", answerdisks.wrong_layout),
    "ANS011": ("a computer name that Windows refuses", answeraccounts.wrong_computer),
    "ANS012": ("an account name that Windows refuses", answeraccounts.wrong_user),
    "ANS013": ("a password is written into an answer file", answeraccounts.any_password),
    "ANS014": ("an encoded password cannot be decoded", answeraccounts.undecodable),
    "ANS015": ("a product key is written into an answer file", answeraccounts.product_key),
    "ANS016": ("somebody is logged on automatically", answeraccounts.auto_logon),
    _BYPASS: ("Setup's checks are bypassed on a real machine", answeraccounts.bypass),
    "ANS018": ("no image is selected, or it has no place", answerdisks.wrong_image),
    "ANS019": ("a language or keyboard is written wrongly", answerrules.wrong_locale),
    "ANS020": ("a secret stands in a command or comment", answeraccounts.written_secret),
    "ANS022": ("a value is not one that the setting takes", answerrules.wrong_value),
}
RULES: Mapping[str, str] = {
    "ANS001": "an answer file is not well-formed, or has a document type",
    **{rule: said for rule, (said, _) in _JUDGES.items()},
    "ANS021": "an answer file is not UTF-8 with the line ends that are wanted",
}
_DECLARED = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']*)[\"']")


def check_answer_files(
    files: Mapping[str, bytes], *, platform: Platform, newline: Newline = "crlf"
) -> list[Finding]:
    """Return the findings in the answer files of a tree (path -> bytes), by file and line.

    Answer files are: every *.xml below `answer/`, `autounattend.xml`, and every other *.xml
    whose root is `unattend`. A bypass of Setup's checks is refused on `metal` alone.
    """
    findings: set[Finding] = set()
    for path in sorted(path for path in files if path.lower().endswith(".xml")):
        for rule, line, message in _judged(path, files[path], platform, newline):
            findings.add(Finding(rule=rule, path=path, line=line, message=message))
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _judged(
    path: str, data: bytes, platform: Platform, newline: Newline
) -> Iterator[tuple[str, int, str]]:
    try:
        root = parse(data)
    except AnswerXmlError as error:
        yield "ANS001", error.line, str(error)
        return
    name = PurePosixPath(path)
    if root.name != "unattend" and name.parts[0] != "answer" and name.stem != "autounattend":
        return
    for rule, (_, judge) in _JUDGES.items():
        if rule != _BYPASS or platform is Platform.METAL:
            for line, message in judge(root):
                yield rule, line, message
    for line, what in keys_in(data.decode("latin-1")):
        yield "ANS020", line, f"{what} is written here"
    for line, message in _form(data, newline):
        yield "ANS021", line, message


def _form(data: bytes, newline: Newline) -> Iterator[tuple[int, str]]:
    declared = _DECLARED.match(data)
    if declared is None:
        yield 1, 'the first line is not <?xml version="1.0" encoding="utf-8"?>'
    elif declared[1].lower() != b"utf-8":
        yield 1, f"the encoding is {declared[1].decode('latin-1')}, not utf-8"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield line_at(data, error.start), "not UTF-8"
    yield from line_ends(data, newline)
