"""Solutions and inverses, judged by backward errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.linalg.factor import eigh_residual
from vega_image.selftest.suites.linalg.matrices import (
    conditioned,
    definite,
    general,
    of_rank,
    triangular,
)
from vega_image.selftest.suites.linalg.row import (
    Arrays,
    Params,
    Row,
    backward,
    frobenius,
    gamma,
    largest,
    norm1,
    worst,
)

NDArray = npt.NDArray[Any]
LARGE, CONDITION = 8, 10.0
RANK_TOLERANCE = 1e-3
"""Relative: far above rounding in either format, far below the smallest singular value kept."""


def _system(params: Params, name: str) -> dict[str, NDArray]:
    n = params["n"]
    return {
        "a": conditioned(name, n, params["cond"]),
        "b": general(f"{name}/b", n, params["k"]),
    }


def _solve(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    del params
    return backward(given["a"], found["x"], given["b"], u)


def _least(params: Params, name: str) -> dict[str, NDArray]:
    m, n = params["m"], params["n"]
    return {"a": general(name, m, n), "b": general(f"{name}/b", m, params["k"])}


def _lstsq(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, b, x = given["a"], given["b"], found["x"]
    size = frobenius(a) * (frobenius(a) * frobenius(x) + frobenius(b))
    return float(frobenius(a.T @ (b - a @ x)) / size / (max(params["m"], params["n"]) * u))


def _regular(params: Params, name: str) -> dict[str, NDArray]:
    n = params["n"]
    # The criterion allows an error in proportion to the condition: a large matrix without
    # structure has one at which fp32 may be wholly wrong.
    return {"a": general(name, n, n) if n < LARGE else conditioned(name, n, CONDITION)}


def _inv(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, x, n = given["a"], found["x"], params["n"]
    return float(norm1(a @ x - np.eye(n)) / (n * u * norm1(a) * norm1(x)))


def _deficient(params: Params, name: str) -> dict[str, NDArray]:
    m, n = params["m"], params["n"]
    rank = params.get("rank")
    return {"a": of_rank(name, m, n, rank) if rank else general(name, m, n)}


def _pinv(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, x = given["a"], found["x"]
    s = np.linalg.svd(a, compute_uv=False)
    kept = s[s > RANK_TOLERANCE * s[0]]
    unit = max(params["m"], params["n"]) * u * float(s[0] / kept[-1])
    ax, xa = a @ x, x @ a
    pairs = ((ax @ a - a, a), (xa @ x - x, x), (ax.T - ax, ax), (xa.T - xa, xa))
    return largest(*(frobenius(off) / (frobenius(size) * unit) for off, size in pairs))


def _triangle(params: Params, name: str) -> dict[str, NDArray]:
    n = params["n"]
    t = triangular(name, n)
    b = general(f"{name}/b", n, 9)
    if params["unit"]:
        t = np.tril(t, -1) / n + np.eye(n)
    t = t.T if params["upper"] else t
    return {
        "t": np.ascontiguousarray(t),
        "b": b if params["left"] else np.ascontiguousarray(b.T),
    }


def _run_triangular(t: Any, x: Any, params: Params) -> dict[str, Any]:
    matrix, upper = x["t"], params["upper"]
    if params["transposed"]:
        matrix, upper = matrix.mT, not upper
    found = t.linalg.solve_triangular(
        matrix, x["b"], upper=upper, left=params["left"], unitriangular=params["unit"]
    )
    return {"x": found}


def _triangular(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    t, b, x = given["t"], given["b"], found["x"]
    t = t.T if params["transposed"] else t
    if not params["left"]:
        t, b, x = t.T, b.T, x.T
    # Two more roundings: the division by the diagonal, and the residual's own in fp64.
    return worst(np.abs(b - t @ x), gamma(params["n"] + 2, u) * (np.abs(t) @ np.abs(x)))


def _batches(params: Params, name: str) -> dict[str, NDArray]:
    found: dict[str, NDArray] = {}
    for number, size in enumerate(params["batch"]):
        found[f"a{number}"] = definite(f"{name}/{number}", params["n"], size)
        found[f"b{number}"] = general(f"{name}/{number}/b", size, params["n"], 1)
    return found


def _run_batched(t: Any, x: Any, params: Params) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number in range(len(params["batch"])):
        a, b = x[f"a{number}"], x[f"b{number}"]
        found[f"x{number}"] = t.linalg.solve(a, b)
        found[f"i{number}"] = t.linalg.inv(a)
        found[f"w{number}"], found[f"v{number}"] = t.linalg.eigh(a)
    return found


def _batched(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    sizes = range(len(params["batch"]))
    return largest(*(_one_batch(given, found, u, number) for number in sizes))


def _one_batch(given: Arrays, found: Arrays, u: float, number: int) -> float:
    a, b = given[f"a{number}"], given[f"b{number}"]
    x, inverse = found[f"x{number}"], found[f"i{number}"]
    n = a.shape[-1]
    rows = np.abs(a).sum(axis=-1).max(axis=-1)
    size = rows * np.abs(x).max(axis=(1, 2)) + np.abs(b).max(axis=(1, 2))
    solved = worst(np.abs(b - a @ x).max(axis=(1, 2)), n * u * size)
    columns = np.abs(a).sum(axis=-2).max(axis=-1) * np.abs(inverse).sum(axis=-2).max(axis=-1)
    off = np.abs(a @ inverse - np.eye(n)).sum(axis=-2).max(axis=-1)
    inverted = worst(off, n * u * columns)
    turned = eigh_residual(a, found[f"w{number}"], found[f"v{number}"], u)
    return largest(solved, inverted, *turned)


ROWS = (
    Row("la07", "solve", ("x",), _system,
        lambda t, x, _: {"x": t.linalg.solve(x["a"], x["b"])}, _solve),
    Row("la08", "lstsq", ("x",), _least,
        lambda t, x, _: {"x": t.linalg.lstsq(x["a"], x["b"], driver="gels").solution}, _lstsq),
    Row("la09", "inv", ("x",), _regular,
        lambda t, x, _: {"x": t.linalg.inv(x["a"])}, _inv),
    Row("la12", "pinv", ("x",), _deficient,
        lambda t, x, _: {"x": t.linalg.pinv(x["a"], rtol=RANK_TOLERANCE)}, _pinv),
    Row("la14", "triangular_solve", ("x",), _triangle, _run_triangular, _triangular),
    Row("la20", "batched", (), _batches, _run_batched, _batched),
)  # fmt: skip
"""One row per operation; la20's outputs depend on its sizes."""
