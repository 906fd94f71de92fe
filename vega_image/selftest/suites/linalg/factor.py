"""Factorisations, judged by what their factors multiply to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites import rng
from vega_image.selftest.suites.linalg.matrices import definite, general, symmetric
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


def _named(names: Sequence[str], factors: Any) -> dict[str, Any]:
    return dict(zip(names, factors, strict=True))


def _orthogonality(q: NDArray, u: float) -> float:
    m, n = q.shape
    return float(norm1(np.eye(n) - q.T @ q) / (m * u))


def _cholesky(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, factor = given["a"], found["l"]
    if np.triu(factor, 1).any() or (np.diagonal(factor) <= 0).any():
        return float("inf")
    size = np.abs(factor) @ np.abs(factor).T
    return worst(np.abs(a - factor @ factor.T), gamma(params["n"] + 1, u) * size)


def _qr(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, q, r = given["a"], found["q"], found["r"]
    if np.tril(r, -1).any():
        return float("inf")
    longer = max(params["m"], params["n"])
    return largest(norm1(a - q @ r) / (longer * norm1(a) * u), _orthogonality(q, u))


def _svd(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, left, s, right = given["a"], found["u"], found["s"], found["vh"]
    if (s < 0).any() or (np.diff(s) > 0).any():
        return float("inf")
    longer = max(params["m"], params["n"])
    true = np.linalg.svd(a, compute_uv=False)
    product = norm1(a - (left * s) @ right) / (longer * norm1(a) * u)
    values = float(np.abs(s - true).max()) / (params["n"] * u * true[0])
    return largest(product, _orthogonality(left, u), _orthogonality(right.T, u), values)


def _spectrum(params: Params, name: str) -> dict[str, NDArray]:
    n = params["n"]
    if "spectrum" not in params:
        return {"a": symmetric(name, n)}
    q, _ = np.linalg.qr(general(f"{name}/q", n, n))
    repeated = np.where(np.arange(n) < n // 3, 0.0, np.where(np.arange(n) % 2, 1.0, -2.0))
    clustered = 1.0 + 1e-6 * np.arange(n)
    a = (q * (repeated if params["spectrum"] == "repeated" else clustered)) @ q.T
    return {"a": (a + a.T) / 2}


def eigh_residual(a: NDArray, values: NDArray, vectors: NDArray, u: float) -> NDArray:
    """Return the criterion of each symmetric matrix of a batch."""
    n = a.shape[-1]
    true = np.linalg.eigvalsh(a)
    turned = np.swapaxes(vectors, -1, -2)
    size = np.abs(a).sum(axis=-2).max(axis=-1)
    back = np.abs(a - (vectors * values[..., None, :]) @ turned).sum(axis=-2).max(axis=-1)
    square = np.abs(np.eye(n) - turned @ vectors).sum(axis=-2).max(axis=-1)
    spread = np.abs(values - true).max(axis=-1) / np.abs(true).max(axis=-1)
    found: NDArray = np.maximum.reduce(
        [back / (n * size * u), square / (n * u), spread / (n * u)]
    )
    return found


def _eigh(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    del params
    if (np.diff(found["w"]) < 0).any():
        return float("inf")
    return largest(float(eigh_residual(given["a"], found["w"], found["v"], u)))


def _eig(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, n = given["a"], params["n"]
    values = found["wr"] + 1j * found["wi"]
    vectors = found["vr"] + 1j * found["vi"]
    size = norm1(a) * norm1(vectors)
    pairs = norm1(a @ vectors - vectors * values) / (n * size * u)
    trace = abs(complex(values.sum()) - float(np.trace(a)))
    empty = float("inf") if (np.abs(vectors).sum(axis=0) == 0).any() else 0.0
    return largest(pairs, trace / (n * u * frobenius(a) * n**0.5), empty)


def _run_eig(t: Any, x: Any, params: Params) -> dict[str, Any]:
    del params
    values, vectors = t.linalg.eig(x["a"])
    return {"wr": values.real, "wi": values.imag, "vr": vectors.real, "vi": vectors.imag}


def _lu(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    p, lower, upper = found["p"], found["l"], found["u"]
    steps = min(params["m"], params["n"])
    permuted = (p.sum(axis=0) == 1).all() and (p.sum(axis=1) == 1).all()
    if not permuted or np.triu(lower, 1).any() or np.tril(upper, -1).any():
        return float("inf")
    size = p @ (np.abs(lower) @ np.abs(upper))
    return worst(np.abs(given["a"] - p @ lower @ upper), gamma(steps, u) * size)


def _householder(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    a, q, r = given["a"], found["q"], np.triu(found["h"])[: params["n"]]
    product = norm1(a - q @ r) / (params["m"] * norm1(a) * u)
    again = norm1(q - _reflected(found["h"])) / (params["m"] * u)
    return largest(product, _orthogonality(q, u), again)


def _reflected(h: NDArray) -> NDArray:
    """Multiply the reflections I - tau v v^T below the diagonal; tau is 2 over |v|^2."""
    m, n = h.shape
    q = np.eye(m, n)
    for column in reversed(range(n)):
        v = np.concatenate([np.zeros(column), [1.0], h[column + 1 :, column]])
        # LAPACK leaves a column alone whose rest is zero already.
        tau = 2.0 / float(v @ v) if v[column + 1 :].any() else 0.0
        q -= tau * np.outer(v, v @ q)
    return q


def _run_householder(t: Any, x: Any, params: Params) -> dict[str, Any]:
    del params
    h, tau = t.geqrf(x["a"])
    return {"h": h, "q": t.linalg.householder_product(h, tau)}


def _ldl(given: Arrays, found: Arrays, u: float, params: Params) -> float:
    del params
    return backward(given["a"], found["x"], given["b"], u)


def _run_ldl(t: Any, x: Any, params: Params) -> dict[str, Any]:
    del params
    factors, pivots = t.linalg.ldl_factor(x["a"])
    return {"x": t.linalg.ldl_solve(factors, pivots, x["b"])}


def _rectangular(params: Params, name: str) -> dict[str, NDArray]:
    return {"a": general(name, params["m"], params["n"])}


def _with_sides(params: Params, name: str) -> dict[str, NDArray]:
    n = params["n"]
    sides = rng.normal(rng.seed_of(f"{name}/b"), (n, 3))
    return {"a": symmetric(name, n), "b": sides}


ROWS = (
    Row("la01", "cholesky", ("l",), lambda p, name: {"a": definite(name, p["n"])},
        lambda t, x, _: {"l": t.linalg.cholesky(x["a"])}, _cholesky),
    Row("la02", "qr", ("q", "r"), _rectangular,
        lambda t, x, p: _named("qr", t.linalg.qr(x["a"], mode=p["mode"])), _qr),
    Row("la03", "svd", ("u", "s", "vh"), _rectangular,
        lambda t, x, _: _named(("u", "s", "vh"), t.linalg.svd(x["a"], full_matrices=False)),
        _svd),
    Row("la04", "eigh", ("w", "v"), _spectrum,
        lambda t, x, _: _named("wv", t.linalg.eigh(x["a"])), _eigh),
    Row("la05", "eig", ("wr", "wi", "vr", "vi"),
        lambda p, name: {"a": general(name, p["n"], p["n"])}, _run_eig, _eig),
    Row("la06", "lu", ("p", "l", "u"), _rectangular,
        lambda t, x, _: _named("plu", t.linalg.lu(x["a"])), _lu),
    Row("la18", "householder_product", ("h", "q"), _rectangular, _run_householder,
        _householder),
    Row("la19", "ldl", ("x",), _with_sides, _run_ldl, _ldl),
)  # fmt: skip
"""One row per factorisation."""
