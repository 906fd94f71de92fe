"""A Linux host to provision: sshd in a network namespace, over a root of its own.

The root has the machine's /usr read-only and nothing else of it; what is written lies in a
folder of the test. Everything ends with the process: namespaces, mounts and the link.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

# Inside the namespaces; $1 is the root, the rest are folders that it sees read-only.
INSIDE = """
set -eu
root=$1
shift
mount --bind "$root" "$root"
for folder in /usr "$@"; do
  mkdir -p "$root$folder"
  mount --bind "$folder" "$root$folder"
  mount -o remount,bind,ro "$root$folder"
done
for node in null zero random urandom; do
  : >"$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node"
done
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config
"""
CONFIG = """Port 22
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
PidFile none
Subsystem sftp internal-sftp
"""
ETC = {
    "passwd": "root:*:0:0:root:/root:/bin/sh\nsshd:*:100:65534::/run/sshd:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "ssh/sshd_config": CONFIG,
}
FOLDERS = ("dev", "proc", "root", "run/sshd", "tmp", "var/tmp", "var/log", "var/lib", "opt",
           "etc/ssh", "etc/cron.d", "etc/systemd/system")  # fmt: skip


@dataclass(frozen=True)
class SshHost:
    """Where it answers, how it is trusted, and where its root lies."""

    address: str
    namespace: str
    root: Path
    key: Path
    known_hosts: Path

    def inventory(self, path: Path, **values: object) -> Path:
        """Write an inventory that has it in both groups."""
        options = f"-o UserKnownHostsFile='\"{self.known_hosts}\"'"
        host = {
            "ansible_host": self.address,
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": options,
            **values,
        }
        groups = {name: {"hosts": {"wsl-1.office.example": host}} for name in ("wsl", "linux")}
        path.write_text(yaml.safe_dump(groups))
        return path

    def files(self) -> dict[str, str]:
        """Read what lies in the folders that roles may write to."""
        found = {}
        for folder in ("etc", "opt", "var/log", "var/lib"):
            for path in (self.root / folder).rglob("*"):
                if path.is_file() and not path.is_symlink() and path.suffix != ".pyz":
                    found[path.relative_to(self.root).as_posix()] = path.read_text(
                        errors="replace"
                    )
        return found

    def unplug(self) -> None:
        """Take its link down."""
        _ip("-n", self.namespace, "link", "set", "eth0", "down")

    def plug(self) -> None:
        """Put its link up again."""
        _ip("-n", self.namespace, "link", "set", "eth0", "up")


@contextmanager
def ssh_host(folder: Path) -> Iterator[SshHost]:
    """Start a host; its link and namespaces are gone afterwards."""
    host = _prepared(folder)
    number = os.getpid() % 4096
    near, link = f"198.18.{number // 64}.{number % 64 * 4 + 1}/30", f"vg{number}"
    _ip("netns", "add", host.namespace)
    try:
        _ip(
            "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace
        )
        _ip("addr", "add", near, "dev", link)
        _ip("link", "set", link, "up")
        _ip("-n", host.namespace, "addr", "add", f"{host.address}/30", "dev", "eth0")
        _ip("-n", host.namespace, "link", "set", "lo", "up")
        host.plug()
        with _sshd(host):
            yield host
    finally:
        _ip("netns", "del", host.namespace)


@contextmanager
def _sshd(host: SshHost) -> Iterator[None]:
    argv = ["ip", "netns", "exec", host.namespace, "unshare", "--mount", "--pid", "--uts",
            "--ipc", "--fork", "--kill-child", "sh", "-c", INSIDE, "sh", str(host.root),
            *_python()]  # fmt: skip
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        try:
            heard = []
            for line in child.stderr:
                heard.append(line)
                if "listening on" in line:
                    break
            else:
                raise AssertionError("".join(heard))
            yield
        finally:
            child.kill()
            child.communicate()


def _prepared(folder: Path) -> SshHost:
    number = os.getpid() % 4096
    address = f"198.18.{number // 64}.{number % 64 * 4 + 2}"
    host = SshHost(address, f"vega-{os.getpid()}", folder / "root", folder / "key",
                   folder / "known hosts")  # fmt: skip
    for name in FOLDERS:
        (host.root / name).mkdir(parents=True)
    host.root.chmod(0o755)
    for name, text in ETC.items():
        (host.root / "etc" / name).write_text(text)
    for name in ("bin", "sbin", "lib", "lib64"):
        (host.root / name).symlink_to(f"usr/{name}")
    shutil.copy("/etc/ld.so.cache", host.root / "etc/ld.so.cache")
    (host.root / "etc/alternatives").mkdir()
    for link in Path("/etc/alternatives").iterdir():
        if link.is_symlink():
            (host.root / "etc/alternatives" / link.name).symlink_to(link.readlink())
    for path in (host.key, host.root / "etc/ssh/host_key"):
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)])
    shutil.copy(f"{host.key}.pub", host.root / "etc/ssh/authorized_keys")
    kind, key, *_ = (host.root / "etc/ssh/host_key.pub").read_text().split()
    host.known_hosts.write_text(f"{address} {kind} {key}\n")
    return host


def _python() -> Sequence[str]:
    """The folders of this Python, so that the CPU reference can run on the host."""
    found = {
        sys.prefix,
        sys.base_prefix,
        *(path for path in sys.path if "site-packages" in path),
    }
    outside = sorted(path for path in found if not path.startswith("/usr/"))
    inner = {path for path in outside for other in outside if path.startswith(f"{other}/")}
    return [path for path in outside if path not in inner]


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
