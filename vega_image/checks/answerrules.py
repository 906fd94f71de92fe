"""The shape of an answer file against Microsoft's reference: passes, settings, values. Pure."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import TypeAlias

from vega_image.checks.answertable import Shape, shape_of, unattend_table
from vega_image.checks.answerxml import NAMESPACE, Element

Found: TypeAlias = Iterator[tuple[int, str]]
_ROOT = frozenset({"settings", "servicing", "offlineImage"})
_LISTS = re.compile(r"(Run)?(Synchronous|Asynchronous)Command|(Create|Modify)Partition")
_COMMANDS = {
    "RunSynchronousCommand": "Path",
    "RunAsynchronousCommand": "Path",
    "SynchronousCommand": "CommandLine",
    "AsynchronousCommand": "CommandLine",
}
_ORDERS = range(1, 501)
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?-([A-Z]{2}|\d{3})")
_KEYBOARD = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{8}")
_LOCALES = frozenset({"SystemLocale", "UILanguage", "UILanguageFallback", "UserLocale"})


def settings_of(root: Element) -> Iterator[tuple[str, Element]]:
    """Yield every pass with its element."""
    for settings in root.all("settings"):
        yield settings.attributes.get("pass", ""), settings


def components_of(root: Element, name: str) -> Iterator[Element]:
    """Yield every component of this name, in whatever pass."""
    for _, settings in settings_of(root):
        for component in settings.all("component"):
            if component.attributes.get("name") == name:
                yield component


def wrong_root(root: Element) -> Found:
    """Yield elements that are not of Microsoft's namespace."""
    if (root.namespace, root.name) != (NAMESPACE, "unattend"):
        yield root.line, f"the root is not unattend of {NAMESPACE}"
        return
    for element in root.walk():
        if element.namespace != NAMESPACE and element.name != "offlineImage":
            yield element.line, f"{element.name} is of another namespace"


def wrong_pass(root: Element) -> Found:
    """Yield passes that are unknown or given twice, and what else lies below the root."""
    seen: set[str] = set()
    for child in root.children:
        if child.name not in _ROOT:
            yield child.line, f"{child.name} below unattend; {_close(child.name, _ROOT)}"
    for name, settings in settings_of(root):
        if name not in unattend_table().passes:
            yield settings.line, f"no pass {name!r}; {_close(name, unattend_table().passes)}"
        elif name in seen:
            yield settings.line, f"the pass {name} stands twice"
        seen.add(name)
        for child in settings.children:
            if child.name != "component":
                yield child.line, f"{child.name} in a pass, where only components may be"


def _close(word: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"


def wrong_component(root: Element) -> Found:
    """Yield components that are unknown, stand in a wrong pass, or twice in one."""
    table = unattend_table()
    for pass_, settings in settings_of(root):
        seen: set[str] = set()
        for component in settings.all("component"):
            name = component.attributes.get("name", "")
            known = table.components.get(name)
            if known is None:
                close = difflib.get_close_matches(name, table.components, 1)
                hint = f"did you mean {close[0]}?" if close else "not in data/unattend.yaml"
                yield component.line, f"no component {name!r}; {hint}"
            elif pass_ in table.passes and pass_ not in known.passes:
                allowed = ", ".join(known.passes)
                yield component.line, f"{name} belongs in {allowed}, not in {pass_}"
            if name in seen:
                yield component.line, f"{name} stands twice in {pass_}"
            seen.add(name)


def wrong_attribute(root: Element) -> Found:
    """Yield components whose identity is not that of Windows for amd64."""
    for _, settings in settings_of(root):
        for component in settings.all("component"):
            for name, value in unattend_table().attributes.items():
                given = component.attributes.get(name)
                if given != value:
                    said = "is missing" if given is None else f'is "{given}"'
                    yield component.line, f'{name} {said}; it must be "{value}"'


def unknown_element(root: Element) -> Found:
    """Yield elements that their component does not have, or not in this pass."""
    for pass_, component, shape in _described(root):
        known = unattend_table().components[component.attributes["name"]]
        for child in component.children:
            passes = known.only.get(child.name)
            if passes is not None and pass_ not in passes:
                yield child.line, f"{child.name} belongs in {', '.join(passes)}, not in {pass_}"
        yield from _unknown(component, shape)


def _described(root: Element) -> Iterator[tuple[str, Element, Shape]]:
    for pass_, settings in settings_of(root):
        for component in settings.all("component"):
            name = component.attributes.get("name", "")
            if name in unattend_table().components:
                yield pass_, component, shape_of(name)


def _unknown(element: Element, shape: Shape) -> Found:
    if shape.kind == "any":
        return
    for child in element.children:
        inner = shape.elements.get(child.name)
        if inner is not None:
            yield from _unknown(child, inner)
        elif shape.elements:
            yield (
                child.line,
                f"no {child.name} in {_name(element)}; " + _close(child.name, shape.elements),
            )
        else:
            yield child.line, f"{_name(element)} holds text, no {child.name}"


def _name(element: Element) -> str:
    return element.attributes.get("name", element.name)


def wrong_value(root: Element) -> Found:
    """Yield texts that are no bool, no number or none of the choices."""
    for _, component, shape in _described(root):
        yield from _values(component, shape)


def _values(element: Element, shape: Shape) -> Found:
    for child in element.children:
        inner = shape.elements.get(child.name)
        if inner is None:
            continue
        if inner.kind == "bool" and child.text not in {"true", "false"}:
            yield child.line, f"{child.name} is true or false, not {child.text!r}"
        elif inner.kind == "number" and not re.fullmatch(r"\d{1,9}", child.text, re.ASCII):
            yield child.line, f"{child.name} is a number, not {child.text!r}"
        elif inner.kind == "choice" and child.text not in inner.choices:
            yield child.line, f"{child.name} is one of {', '.join(inner.choices)}"
        elif inner.kind == "elements" and child.text:
            yield child.line, f"{child.name} holds elements, not text"
        yield from _values(child, inner)


def wrong_order(root: Element) -> Found:
    """Yield list items whose Order is missing, no number of 1 to 500, or given twice."""
    for parent in root.walk():
        items = [child for child in parent.children if _LISTS.fullmatch(child.name)]
        orders = [item.value("Order") for item in items]
        twice = {text for text, count in Counter(orders).items() if count > 1}
        for item in items:
            order = next(item.all("Order"), None)
            if order is None:
                yield item.line, f"{item.name} has no Order"
            elif not re.fullmatch(r"\d{1,3}", order.text, re.ASCII) or (
                int(order.text) not in _ORDERS
            ):
                yield order.line, f"Order is a number of 1 to 500, not {order.text!r}"
            elif order.text in twice:
                yield order.line, f"Order {order.text} is given twice in {parent.name}"


def too_long(root: Element) -> Found:
    """Yield texts above Microsoft's limits, and commands that are empty."""
    limits = unattend_table().limits
    for element in root.walk():
        limit = limits.get(element.name)
        if limit is not None and len(element.text) > limit:
            size = len(element.text)
            yield element.line, f"{element.name} has {size} characters, {limit} are allowed"
        wanted = _COMMANDS.get(element.name)
        if wanted is not None and not element.value(wanted):
            yield element.line, f"{element.name} has no {wanted}"


def wrong_locale(root: Element) -> Found:
    """Yield languages and keyboards that are not written as Windows writes them."""
    for element in root.walk():
        if element.children:
            continue
        if element.name in _LOCALES and not _LANGUAGE.fullmatch(element.text):
            yield element.line, f"{element.name} is a language as en-US, not {element.text!r}"
        if element.name == "InputLocale":
            for part in element.text.split(";"):
                if not _LANGUAGE.fullmatch(part) and not _KEYBOARD.fullmatch(part):
                    said = f"InputLocale is en-US or 0409:00000409, not {part!r}"
                    yield element.line, said
