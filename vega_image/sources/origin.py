"""Where this host gets Debian files from; decided at the command line, never in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vega_image.errors import UsageError
from vega_image.sources.address import split_credentials
from vega_image.sources.mirror import check_address, host_keyring, host_mirror


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`mirror` and `keyring` override the host's apt configuration, read under `sysroot`.

    `snapshots` are further archive bases, asked for a file that the mirror has dropped.
    """

    mirror: str | None = field(default=None, repr=False)
    keyring: Path | None = None
    snapshots: tuple[str, ...] = field(default=(), repr=False)
    sysroot: Path = Path("/")

    def base(self) -> str:
        """Return the mirror's base address; raises UsageError NO_MIRROR."""
        return self.mirror.rstrip("/") if self.mirror else host_mirror(self.sysroot)

    def bases(self) -> tuple[str, ...]:
        """Return every base a pool file may be fetched from, the mirror first.

        Raises UsageError NO_MIRROR, BAD_MIRROR.
        """
        bases = (self.base(), *self.snapshots)
        for base in bases:
            check_address(split_credentials(base)[0])
        return bases

    def trusted(self) -> Path:
        """Return the keyring that signs for it; raises UsageError NO_KEYRING."""
        if self.keyring is None:
            return host_keyring(self.sysroot)
        if not self.keyring.is_file():
            msg = f"{self.keyring}: no such keyring"
            raise UsageError("NO_KEYRING", msg, hint="--debian-keyring FILE")
        return self.keyring
