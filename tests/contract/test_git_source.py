"""One commit of a real repository becomes one tar, whatever the repository tries."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from vega_image.digest import PREFIX
from vega_image.errors import BytesError, LockError, UsageError
from vega_image.lock import LockedGit
from vega_image.process import run
from vega_image.sources import git
from vega_image.spec import GitSource
from vega_image.store import Store

WHO = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")


@dataclass
class Desk:
    repo: Path
    store: Store
    scratch: Path

    def git(self, *words: str) -> str:
        done = run(["git", "-C", str(self.repo), *WHO, *words])
        assert done.returncode == 0, done.output
        return done.output.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.repo / name.replace("__", ".")).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def resolve(self, commit: str, *, url: str = "") -> LockedGit:
        source = GitSource(kind="git", url=url or f"file://{self.repo}", commit=commit)
        return git.resolve(
            source, store=self.store, scratch=self.scratch, log=lambda _line: None
        )

    def fetch(self, locked: LockedGit, *, offline: bool = False) -> Path:
        return git.fetch(
            locked,
            store=self.store,
            scratch=self.scratch,
            offline=offline,
            log=lambda _line: None,
        )

    def members(self, locked: LockedGit) -> dict[str, bytes]:
        assert locked.tree_sha256 is not None
        data = self.store.path(PREFIX + locked.tree_sha256).read_bytes()
        assert len(data) == locked.size
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            files = {m.name: tar.extractfile(m) for m in tar if m.isfile()}
            return {name: file.read() for name, file in files.items() if file}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    repo, scratch = tmp_path / "repo", tmp_path / "scratch"
    repo.mkdir()
    scratch.mkdir()
    found = Desk(repo, Store(tmp_path / "store"), scratch)
    found.git("init", "-q")
    return found


def test_exactly_the_commit(desk: Desk) -> None:
    first = desk.commit(a="1")
    desk.commit(a="2", b="3")
    locked = desk.resolve(first)
    assert desk.members(locked) == {"a": b"1"}
    assert locked.commit == first
    assert not list(desk.scratch.iterdir())


def test_attributes_neither_expand_nor_leave_out_nor_rewrite(desk: Desk) -> None:
    rules = "a export-subst\nb export-ignore\nc text eol=crlf\n"
    commit = desk.commit(a="$Format:%h$", b="here", c="line\n", __gitattributes=rules)
    found = desk.members(desk.resolve(commit))
    assert found["a"] == b"$Format:%h$"
    assert found["b"] == b"here"
    assert found["c"] == b"line\n"


def test_the_users_configuration_changes_no_byte(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = desk.commit(a="line\n")
    plain = desk.resolve(commit)
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n autocrlf = true\n[tar]\n umask = 077\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert desk.resolve(commit) == plain


def test_a_branch_called_like_a_commit_is_no_commit(desk: Desk) -> None:
    right = desk.commit(a="right")
    wrong = desk.commit(a="wrong")
    desk.git("update-ref", f"refs/heads/{right}", wrong)
    absent = "f" * 40
    desk.git("update-ref", f"refs/heads/{absent}", wrong)
    assert desk.members(desk.resolve(right)) == {"a": b"right"}
    with pytest.raises(BytesError) as caught:
        desk.resolve(absent)
    assert caught.value.code == "COMMIT_GONE"
    assert absent in caught.value.message


def test_a_tag_object_is_no_commit(desk: Desk) -> None:
    desk.commit(a="1")
    desk.git("tag", "-a", "v1", "-m", "v1")
    with pytest.raises(BytesError) as caught:
        desk.resolve(desk.git("rev-parse", "v1"))
    assert caught.value.code == "COMMIT_GONE"


def test_fetch_takes_the_store_first_then_the_network(desk: Desk, tmp_path: Path) -> None:
    locked = desk.resolve(desk.commit(a="1"))
    desk.repo.rename(tmp_path / "away")
    path = desk.fetch(locked, offline=True)
    path.unlink()
    with pytest.raises(BytesError, match="not in the store") as offline:
        desk.fetch(locked, offline=True)
    assert offline.value.code == "OFFLINE_MISSING"
    with pytest.raises(BytesError) as gone:
        desk.fetch(locked)
    assert gone.value.code == "FETCH_FAILED"
    (tmp_path / "away").rename(desk.repo)
    assert desk.fetch(locked) == path


def test_another_tar_than_the_locked_one_is_refused(desk: Desk) -> None:
    locked = desk.resolve(desk.commit(a="1")).model_copy(update={"tree_sha256": "0" * 64})
    with pytest.raises(BytesError) as caught:
        desk.fetch(locked)
    assert caught.value.code == "FETCH_WRONG_DIGEST"


def test_unresolved_is_exit_3(desk: Desk) -> None:
    locked = LockedGit(
        kind="git", url="https://example.org/x", commit="0" * 40, tree_sha256=None
    )
    with pytest.raises(LockError) as caught:
        desk.fetch(locked)
    assert (caught.value.code, caught.value.exit_code) == ("LOCK_UNRESOLVED", 3)


@pytest.mark.parametrize(
    "url", ["ext::sh -c touch% /tmp/x", "--upload-pack=touch", "repo", "ftp://example.org/x"]
)
def test_addresses_that_run_programs_are_refused(desk: Desk, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        desk.resolve("0" * 40, url=url)
    assert caught.value.code == "BAD_URL"


def test_a_password_stays_out_of_lock_and_errors(desk: Desk) -> None:
    url = f"file://ann:s3cret@{desk.repo}"
    with pytest.raises(BytesError) as caught:
        desk.resolve(
            "0" * 40, url=url.replace("file:", "https:").replace("@/", "@127.0.0.1:1/")
        )
    assert "s3cret" not in f"{caught.value}{caught.value.hint}{caught.value.at}"
