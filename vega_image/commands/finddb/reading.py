"""What the words read, and what they must not pass over in silence."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.errors import UsageError
from vega_image.finddb.opening import open_db
from vega_image.finddb.record import Record
from vega_image.finddb.text import FindDb


def records_of(call: Call, db: FindDb) -> list[Record]:
    """Return all records MIOpen can find; warn of lines that are none."""
    records = list(db.records())
    left = left_out(db, records)
    if left:
        hint = f"vega-image finddb lint {db.name}"
        call.console.warn(f"{db.name}: {left} lines are no records or repeat a key ({hint})")
    return records


def left_out(db: FindDb, records: list[Record]) -> int:
    """Return how many lines with text are not among the records."""
    return len(db.lines) - db.lines.count(b"") - len(records)


def db_and_words(words: tuple[str, ...], db: Path | None) -> tuple[FindDb, tuple[str, ...]]:
    """Take the find-db from --db, or else from the first word; raises UsageError NO_FINDDB."""
    if db is None and words and Path(words[0]).exists():
        db, words = Path(words[0]), words[1:]
    if db is None:
        hint = "--db FILE, or the file's name as the first word"
        raise UsageError("NO_FINDDB", "which find-db is meant?", hint=hint)
    return open_db(db), words


def check_subject(ref: str | None, root: Path | None, *, word: str) -> None:
    """Refuse neither or both of image and root; raises UsageError NO_SUBJECT, ROOT_ABSENT."""
    if (ref is None) == (root is None):
        msg = "name an image, or a root file system with --root DIR: one of them"
        raise UsageError("NO_SUBJECT", msg, hint=f"vega-image finddb {word} --help")
    if root is not None and not root.is_dir():
        msg = f"{root} is no folder"
        raise UsageError("ROOT_ABSENT", msg, at=str(root))
