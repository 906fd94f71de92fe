"""Guards beside what an operation writes, and poison in it, on a processor.

A processor's memory comes from the C library, which puts results anywhere. So each fresh
result of an operation is moved between guards as it comes, before anything else works on it.
That watches what is done to results; what a kernel of the processor itself writes beyond its
own is not watched, and nobody judges a processor by this suite. A card's memory is fenced
where its kernels find it: see `neighbours`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

GUARD_BYTES = 4096
GUARD = 0xA5
BLANK = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided")
Overrun = Callable[[Mapping[str, Any]], tuple[str, ...]]


@contextmanager
def fenced(torch: Any, pattern: int) -> Iterator[Overrun]:
    """Fence all that operations make inside; yields what names overwritten neighbours.

    `pattern` is the 32-bit word that fills memory nobody has written yet.
    """
    homes: list[Any] = []
    with _mode(torch, pattern, homes)():
        yield lambda results: _overrun(torch, homes, results)


def _mode(torch: Any, pattern: int, homes: list[Any]) -> Callable[[], Any]:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415 - torch is late

    class Fencing(TorchDispatchMode):  # type: ignore[misc,no-untyped-call,unused-ignore]
        """Moves each fresh result between guards."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else torch loads its compiler, seconds of imports in every child, for nothing.
            return False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            """Run the operation, then move what it made."""
            del types
            made = func(*args, **(kwargs or {}))
            fresh = [not entry.alias_info for entry in func._schema.returns]  # noqa: SLF001
            blank = func.overloadpacket.__name__ in BLANK
            taken = {_storage(item) for item in _tensors(torch, (args, kwargs or {}))}

            def moved(item: Any) -> Any:
                if not _movable(torch, item) or _storage(item) in taken:
                    return item
                return _moved(torch, item, pattern if blank else None, homes=homes)

            if not all(fresh) or not fresh:
                return made
            return _each(torch, made, moved)

    return Fencing


def _each(torch: Any, value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_each(torch, item, change) for item in value)
    return value


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(torch, item)
    elif isinstance(value, dict):
        yield from _tensors(torch, tuple(value.values()))


def _movable(torch: Any, item: Any) -> bool:
    plain = item.layout == torch.strided and item.device.type == "cpu" and item.numel()
    return bool(plain) and not any(
        stride == 0 and length > 1
        for stride, length in zip(item.stride(), item.shape)  # noqa: B905 - Python 3.10
    )


def _storage(item: Any) -> int:
    try:
        return int(item.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        # A layout without plain memory: nothing of it is ours to fence.
        return 0


def _moved(torch: Any, item: Any, pattern: int | None, *, homes: list[Any]) -> Any:
    spans = zip(item.shape, item.stride())  # noqa: B905 - Python 3.10
    size = (1 + sum((length - 1) * stride for length, stride in spans)) * item.element_size()
    words = -(-size // 4)
    home = torch.full((4 * words + 2 * GUARD_BYTES,), GUARD, dtype=torch.uint8)
    inner = home[GUARD_BYTES : GUARD_BYTES + size]
    if pattern is not None:
        blank = torch.full((words,), pattern, dtype=torch.int32)
        inner.copy_(blank.view(torch.uint8)[:size])
    flat = inner.view(item.dtype)
    place = torch.as_strided(flat, item.shape, item.stride(), flat.storage_offset())
    if pattern is None:
        place.copy_(item)
    homes.append((home, size))
    return place


def _overrun(torch: Any, homes: list[Any], results: Mapping[str, Any]) -> tuple[str, ...]:
    names = {_storage(item): name for name, item in results.items()}
    found = []
    for home, size in homes:
        after = home[GUARD_BYTES + size :]
        if not (torch.all(home[:GUARD_BYTES] == GUARD) and torch.all(after == GUARD)):
            name = names.get(_storage(home))
            what = f"output {name}" if name else "an intermediate result"
            found.append(f"memory beside {what} was overwritten")
    return tuple(dict.fromkeys(found))
