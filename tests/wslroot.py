"""Programs in the unpacked root of a .wsl archive: own namespaces, no network."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

# The root gets its own /proc and a /dev of four nodes; $2 is the kernel's name it shall see, $3
# a device node of Windows to be shown or "".
ENTER = """
root=$1 release=$2 dxg=$3; shift 3
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero random urandom; do
    touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
[ -z "$dxg" ] || touch "$root/dev/dxg"
if [ -n "$release" ]; then
    mount -t tmpfs tmpfs "$root/run"
    printf '%s\\n' "$release" >"$root/run/osrelease"
    mount --bind "$root/run/osrelease" "$root/proc/sys/kernel/osrelease"
fi
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
    chroot "$root" "$@"
"""
UNSHARE = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child=KILL", "--")


@dataclass(frozen=True)
class WslRoot:
    """An unpacked archive; `release` and `dxg` make it look like one that WSL started."""

    folder: Path
    release: str = ""
    dxg: str = ""
    patience: float = 600

    def __call__(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; stdout and stderr are kept apart."""
        enter = ("sh", "-euc", ENTER, "enter", str(self.folder), self.release, self.dxg)
        return subprocess.run(
            [*UNSHARE, *enter, *argv],
            capture_output=True,
            text=True,
            timeout=self.patience,
            check=False,
        )

    def done(self, *argv: str) -> str:
        """Run a program that must succeed; return its stdout."""
        done = self(*argv)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def unpacked(archive: Path, folder: Path) -> WslRoot:
    """Unpack as WSL does: as root, owners by number."""
    folder.mkdir()
    argv = ["tar", "-xpzf", str(archive), "--numeric-owner", "-C", str(folder)]
    subprocess.run(argv, check=True)
    return WslRoot(folder)
