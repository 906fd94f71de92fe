"""Numbers that belong to a matrix: determinants, norms, rank; and the exponential."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.linalg.matrices import conditioned, general, level, of_rank
from vega_image.selftest.suites.linalg.row import Arrays, Params, Row, gamma, norm1

NDArray = npt.NDArray[Any]
INF = float("inf")
CONDITION = 50.0
TAYLOR = 24


def _condition(params: Params, name: str) -> dict[str, NDArray]:
    return {"a": conditioned(name, params["n"], params["cond"])}


def _level(params: Params, name: str) -> dict[str, NDArray]:
    return {"a": level(name, params["n"], CONDITION if params["n"] > 1 else 1.0)}


def _kappa1(a: NDArray) -> float:
    return norm1(a) * norm1(np.linalg.inv(a))


def _det(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    true = float(np.linalg.det(given["a"]))
    unit = params["n"] * u * _kappa1(given["a"]) * abs(true)
    return float(abs(float(found["d"]) - true) / unit)


def _slogdet(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    sign, size = np.linalg.slogdet(given["a"])
    if float(found["sign"]) != float(sign):
        return INF
    unit = params["n"] * u * _kappa1(given["a"]) + 2 * u * abs(float(size))
    return float(abs(float(found["log"]) - float(size)) / unit)


def _exponent(params: Params, name: str) -> dict[str, NDArray]:
    n, size = params["n"], params["size"]
    if size == 0.0:
        # Its powers end: the exponential is a short sum of whole numbers over small factorials.
        return {"a": np.diag(np.full(n - 1, 2.0), 1)}
    a = general(name, n, n)
    return {"a": a * (size / norm1(a))}


def exponential(a: NDArray) -> NDArray:
    """Return exp(a) in long double: halve, sum the series, square again."""
    halvings = max(0, int(np.ceil(np.log2(max(norm1(a), 1e-300)))) + 4)
    scaled = a.astype(np.longdouble) / 2.0**halvings
    one: NDArray = np.eye(a.shape[0], dtype=np.longdouble)
    total = term = one
    for k in range(1, TAYLOR):
        term = term @ scaled / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return np.asarray(total, dtype=np.float64)


def _matrix_exp(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    true = exponential(given["a"])
    unit = params["n"] * u * max(1.0, norm1(given["a"])) * norm1(true)
    return float(norm1(found["e"] - true) / unit)


def _rank(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    del given, u
    return float(abs(float(found["r"]) - params["n"] // 3))


NORMS = ("fro", "one", "inf", "two", "nuc", "vec")


def _run_norms(t: Any, x: Any, params: Params) -> dict[str, Any]:
    del params
    a = x["a"]
    orders = ("fro", 1, INF, 2, "nuc")
    found = {
        name: t.linalg.matrix_norm(a, order) for name, order in zip(NORMS, orders, strict=False)
    }
    return {**found, "vec": t.linalg.vector_norm(a, 3)}


def _norms(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, n = given["a"], params["n"]
    s = np.linalg.svd(a, compute_uv=False)
    cubes = float((np.abs(a / np.abs(a).max()) ** 3).sum() ** (1 / 3) * np.abs(a).max())
    true = {
        "fro": float(np.linalg.norm(a / np.abs(a).max()) * np.abs(a).max()),
        "one": norm1(a),
        "inf": norm1(a.T),
        "two": float(s[0]),
        "nuc": float(s.sum()),
        "vec": cubes,
    }
    unit = {
        name: gamma(n if name in {"one", "inf"} else n * n, u) * true[name] for name in NORMS
    }
    unit.update(two=n * u * float(s[0]), nuc=n * u * float(s[0]) * n)
    ratios = [abs(float(found[name]) - true[name]) / unit[name] for name in NORMS]
    return max(ratios)


def _cond(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    true = float(np.linalg.cond(given["a"]))
    return float(abs(float(found["k"]) - true) / (params["n"] * u * true * true))


ROWS = (
    Row("la10", "det", ("d",), _level, lambda t, x, _: {"d": t.linalg.det(x["a"])}, _det),
    Row("la11", "slogdet", ("sign", "log"),
        lambda p, name: {"a": general(name, p["n"], p["n"])},
        lambda t, x, _: dict(zip(("sign", "log"), t.linalg.slogdet(x["a"]), strict=True)),
        _slogdet),
    Row("la13", "matrix_exp", ("e",), _exponent,
        lambda t, x, _: {"e": t.linalg.matrix_exp(x["a"])}, _matrix_exp),
    Row("la15", "matrix_rank", ("r",),
        lambda p, name: {"a": of_rank(name, p["n"], p["n"], p["n"] // 3)},
        lambda t, x, _: {"r": t.linalg.matrix_rank(x["a"])}, _rank),
    Row("la16", "norm", NORMS,
        lambda p, name: {"a": general(name, p["n"], p["n"]) * p["scale"]}, _run_norms, _norms),
    Row("la17", "cond", ("k",), _condition, lambda t, x, _: {"k": t.linalg.cond(x["a"])},
        _cond),
)  # fmt: skip
"""One row per operation."""
