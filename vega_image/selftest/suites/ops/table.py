"""All operations, in the order of their numbers; standard library only."""

from __future__ import annotations

from importlib import import_module

from vega_image.selftest.suites.ops.op import Op

FAMILIES = (
    "elementwise",
    "reduction",
    "gemm",
    "convolution",
    "pool",
    "norm",
    "activation",
    "loss",
    "indexing",
    "attention",
    "misc",
)


def families() -> tuple[tuple[str, tuple[Op, ...]], ...]:
    """Return each family's name and rows."""
    package = __name__.rpartition(".")[0]
    modules = (import_module(f"{package}.{name}") for name in FAMILIES)
    return tuple((module.FAMILY, module.OPS) for module in modules)


def operations() -> dict[str, Op]:
    """Return the operations by id."""
    rows = [op for _, ops in families() for op in ops]
    return {op.id: op for op in sorted(rows, key=lambda op: op.id)}
