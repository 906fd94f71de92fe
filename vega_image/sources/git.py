"""One commit of a repository, as the tar of its tree.

The tar's bytes depend on the commit alone: the user's git configuration is kept out, and no
attribute in the repository may rewrite, leave out or expand a file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from vega_image.digest import PREFIX, hex_of
from vega_image.errors import BytesError, EngineError, LockError, UsageError
from vega_image.lock import LockedGit
from vega_image.process import Completed, output_of, run, which
from vega_image.sources.address import redact, split_credentials
from vega_image.spec import GitSource
from vega_image.store import Store

_SCHEMES = frozenset({"https", "http", "ssh", "git", "file"})
_ATTRIBUTES = (
    "* -export-subst -export-ignore -text -eol -ident -filter -working-tree-encoding\n"
)
_HERE = ("GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "LC_ALL=C")
_ALONE = ("GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1")
_CHUNK = 1 << 20


def resolve(
    source: GitSource, *, store: Store, scratch: Path, log: Callable[[str], None]
) -> LockedGit:
    """Fetch the commit, store its tar and lock both; a password stays out of the lock.

    Raises BytesError COMMIT_GONE or FETCH_FAILED with git's own words.
    """
    bare = split_credentials(source.url)[0]
    if source.commit is None:
        return LockedGit(
            kind="git", url=bare, commit=None, branch=source.branch, tree_sha256=None
        )
    digest = _fetch(source.url, source.commit, store=store, scratch=scratch, log=log)
    return LockedGit(
        kind="git",
        url=bare,
        commit=source.commit,
        size=store.path(digest).stat().st_size,
        tree_sha256=hex_of(digest),
    )


def fetch(
    locked: LockedGit, *, store: Store, scratch: Path, offline: bool, log: Callable[[str], None]
) -> Path:
    """Return the tar of a locked commit, fetched if the store lacks it.

    Raises LockError LOCK_UNRESOLVED, BytesError OFFLINE_MISSING, COMMIT_GONE, FETCH_FAILED, or
    FETCH_WRONG_DIGEST when this git makes another tar of the same commit.
    """
    name = f"{locked.url} at {(locked.commit or 'no commit')[:12]}"
    if locked.tree_sha256 is None or locked.commit is None:
        msg = f"{name}: nobody has fetched it yet, so the lock does not know its digest"
        raise LockError("LOCK_UNRESOLVED", msg, hint="vega-image lock TARGET", at=name)
    wanted = PREFIX + locked.tree_sha256
    if not store.has(wanted):
        if offline:
            msg = f"{name}: not in the store"
            hint = "run once without --offline, or: vega-image pool import DIR"
            raise BytesError("OFFLINE_MISSING", msg, hint=hint, at=name)
        found = _fetch(locked.url, locked.commit, store=store, scratch=scratch, log=log)
        if found != wanted:
            msg = f"{name}: its tar is {found}, the lock says {wanted}"
            hint = "vega-image lock TARGET (another version of git may write another tar)"
            raise BytesError("FETCH_WRONG_DIGEST", msg, hint=hint, at=name)
    return store.path(wanted)


def _fetch(
    url: str, commit: str, *, store: Store, scratch: Path, log: Callable[[str], None]
) -> str:
    if which("git") is None:
        msg = "git is not installed; a git source needs it"
        raise EngineError("TOOL_ABSENT", msg, hint="apt-get install git", at="git")
    if urlsplit(url).scheme not in _SCHEMES:
        msg = f"{redact(url)!r} is not an address that git sources may use"
        raise UsageError("BAD_URL", msg, hint=", ".join(sorted(_SCHEMES)), at=redact(url))
    repo = scratch / "git"
    shutil.rmtree(repo, ignore_errors=True)
    try:
        _check(_git(repo, log, "init", "--quiet", "--bare", "--template="), url)
        _pull(repo, url, commit, log)
        (repo / "info").mkdir(exist_ok=True)
        (repo / "info/attributes").write_text(_ATTRIBUTES, encoding="utf-8")
        return _archive(repo, commit, store)
    finally:
        shutil.rmtree(repo, ignore_errors=True)


def _pull(repo: Path, url: str, commit: str, log: Callable[[str], None]) -> None:
    """Ask for the one commit; a server that gives only named refs has to give them all."""
    safe = ("-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null")
    words = (
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
    )
    one = _git(repo, log, *safe, *words, "--depth=1", "--", url, commit)
    if one.returncode != 0:
        refs = ("+refs/heads/*:refs/found/heads/*", "+refs/tags/*:refs/found/tags/*")
        _check(_git(repo, log, *safe, *words, "--", url, *refs), url)
    kind = _git(repo, lambda _line: None, "cat-file", "-t", commit)
    if kind.returncode != 0 or kind.output.strip() != "commit":
        msg = f"{redact(url)} has no commit {commit}"
        hint = "correct `commit:` in the spec (a tag's own number is not its commit's)"
        raise BytesError("COMMIT_GONE", msg, hint=hint, at=redact(url))


def _archive(repo: Path, commit: str, store: Store) -> str:
    argv = ["env", "LC_ALL=C", *_ALONE, "git", "--no-replace-objects", f"--git-dir={repo}"]
    argv += ["-c", "tar.umask=0022", "archive", "--format=tar", commit]
    with (repo / "archive.err").open("wb") as errors, store.writer() as out:
        with output_of(argv, stderr=errors) as child:
            assert child.stdout is not None
            while data := child.stdout.read(_CHUNK):
                out.write(data)
            code = child.wait()
        if code != 0:
            words = (repo / "archive.err").read_text(errors="replace").strip()
            msg = f"git archive {commit} failed: {words}"
            raise BytesError("FETCH_FAILED", msg, hint="try again", at=commit)
        return out.commit()


def _git(repo: Path, log: Callable[[str], None], *words: str) -> Completed:
    argv = ["env", *_HERE, "git", f"--git-dir={repo}", *words]
    return run(argv, on_line=lambda line: log(redact(line)))


def _check(done: Completed, url: str) -> None:
    if done.returncode == 0:
        return
    msg = f"{redact(url)}: {redact(done.output).strip() or 'git failed without a word'}"
    hint = "check the address and the network"
    raise BytesError("FETCH_FAILED", msg, hint=hint, at=redact(url))
