"""Fixtures of the end-to-end tests: the tiny archive once, a fresh user per test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.minidebian import MiniDebian, gpg_home
from tests.tiny import FIXTURE, Result, Tiny, cold, new_user, tiny_archive


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniDebian]:
    """The signed archive of the tiny target."""
    with gpg_home() as home:
        yield tiny_archive(tmp_path_factory.mktemp("archive"), home)


@pytest.fixture(scope="session")
def locked_factory(mini: MiniDebian, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory whose tiny target has a lock."""
    folder = tmp_path_factory.mktemp("locked")
    user = new_user(folder, archive=mini, factory=FIXTURE)
    user.done("lock", "tiny")
    shutil.rmtree(user.store)
    return user.factory


@pytest.fixture(scope="session")
def reference(
    mini: MiniDebian, locked_factory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Result:
    """Digest and image id of the tiny target, built the plain way."""
    folder = tmp_path_factory.mktemp("reference") / "user"
    return cold(new_user(folder, archive=mini, factory=locked_factory))


@pytest.fixture
def tiny(mini: MiniDebian, locked_factory: Path, tmp_path: Path) -> Tiny:
    """A user with a locked tiny target and an empty store."""
    return new_user(tmp_path / "user", archive=mini, factory=locked_factory)
