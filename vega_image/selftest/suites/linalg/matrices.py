"""Matrices of known properties, in fp64, from the suite's own generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites import rng

NDArray = npt.NDArray[Any]


def general(name: str, *shape: int) -> NDArray:
    """Return a matrix without structure."""
    made: NDArray = rng.normal(rng.seed_of(name), shape)
    return made


def definite(name: str, n: int, *batch: int) -> NDArray:
    """Return symmetric positive definite matrices."""
    a = general(name, *batch, n, n)
    product: NDArray = a @ np.swapaxes(a, -1, -2) / n + np.eye(n)
    return product


def symmetric(name: str, n: int) -> NDArray:
    """Return a symmetric indefinite matrix."""
    a = general(name, n, n)
    half: NDArray = (a + a.T) / 2
    return half


def conditioned(name: str, n: int, condition: float) -> NDArray:
    """Return a matrix with singular values from 1 down to 1/condition."""
    u, _ = np.linalg.qr(general(f"{name}/u", n, n))
    v, _ = np.linalg.qr(general(f"{name}/v", n, n))
    made: NDArray = (u * np.logspace(0, -np.log10(condition), n)) @ v.T
    return made


def level(name: str, n: int, condition: float) -> NDArray:
    """Return a conditioned matrix whose singular values multiply to 1: a determinant near 1."""
    made: NDArray = conditioned(name, n, condition) * np.sqrt(condition)
    return made


def triangular(name: str, n: int) -> NDArray:
    """Return a well-conditioned lower triangular matrix."""
    made: NDArray = np.tril(general(name, n, n)) / np.sqrt(n) + 2 * np.eye(n)
    return made


def of_rank(name: str, m: int, n: int, rank: int) -> NDArray:
    """Return a matrix of small whole numbers with a rank of at most `rank`."""
    left = rng.integers(rng.seed_of(f"{name}/l"), 3, (m, rank)).astype(np.float64)
    right = rng.integers(rng.seed_of(f"{name}/r"), 3, (rank, n)).astype(np.float64)
    return left @ right
