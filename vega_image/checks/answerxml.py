"""An answer file as a tree of elements, each with its line. No document types, no entities.

The standard library's expat reads it: its tree builders keep no line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

NAMESPACE = "urn:schemas-microsoft-com:unattend"
_DEEPEST = 60


class AnswerXmlError(ValueError):
    """The bytes are no XML that we read: why, and at which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Element:
    """One element: local name, namespace, attributes, line, own text, elements below."""

    name: str
    namespace: str
    attributes: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The element's own text, without blanks around."""
        return "".join(self.texts).strip()

    def all(self, *names: str) -> Iterator[Element]:
        """Yield what lies at the end of a path of names."""
        for child in self.children:
            if child.name == names[0]:
                yield from child.all(*names[1:]) if names[1:] else (child,)

    def value(self, *names: str) -> str:
        """Return the text at the end of a path, empty where nothing is there."""
        return next((item.text for item in self.all(*names)), "")

    def walk(self) -> Iterator[Element]:
        """Yield the element and everything below, in the file's order."""
        yield self
        for child in self.children:
            yield from child.walk()


class _Builder:
    def __init__(self) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.open: list[Element] = []
        self.root: Element | None = None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        element = Element(local, namespace, attributes, self.parser.CurrentLineNumber)
        if len(self.open) >= _DEEPEST:
            msg = "elements are nested too deep"
            raise AnswerXmlError(msg, element.line)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _: str) -> None:
        self.open.pop()

    def _characters(self, text: str) -> None:
        self.open[-1].texts.append(text)

    def _doctype(self, name: str, *_: object) -> None:
        msg = f"a document type ({name}): answer files have none, and entities could hide text"
        raise AnswerXmlError(msg, self.parser.CurrentLineNumber)


def parse(data: bytes) -> Element:
    """Return the root; raises AnswerXmlError where it is not well-formed, or has a DOCTYPE."""
    builder = _Builder()
    last = data.count(b"\n") + 1
    try:
        builder.parser.Parse(data, True)  # noqa: FBT003 - expat's own positional flag
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise AnswerXmlError(message, min(max(error.lineno, 1), last)) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, AnswerXmlError):
            raise
        message = f"the encoding cannot be read: {error}"
        raise AnswerXmlError(message, 1) from None
    if builder.root is None:
        message = "no element"
        raise AnswerXmlError(message, 1)
    return builder.root
