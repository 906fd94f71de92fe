"""Cold and second build of linux-inference against what one would otherwise write.

Rivals, run in the same call with the same locked packages from a local copy of the pool:
- cold: mmdebstrap --variant=extract of the same packages, then buildah (ADD, commit, push to
  an OCI layout with its default gzip), downloads excluded on both sides;
- second: `docker build` of the rendered folder with every step cached.

Sizes: our image under zstd and gzip, and the same packages unslimmed with the same codec.
Needs root, mmdebstrap, buildah, docker and several GB of disk. Run: python benchmarks/build.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TARGET = "linux-inference"
BIN = Path(sys.executable).parent / "vega-image"


def timed(argv: list[str], **options: Any) -> tuple[float, str]:
    """Run a command to its end; return wall seconds and stdout."""
    began = time.perf_counter()
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, **options)
    return time.perf_counter() - began, done.stdout


def build(store: Path, *words: str) -> tuple[float, dict[str, Any]]:
    """Build the target; return seconds and the --json value."""
    argv = [str(BIN), "build", TARGET, "--store", str(store), "--json", *words]
    seconds, output = timed(argv)
    return seconds, json.loads(output)


def repository(pool: Path, folder: Path) -> list[str]:
    """Make the pool a local apt repository; return the locked package names."""
    lock = json.loads(next(pool.glob("*lock.json")).read_text())
    files = lock["sources"]["debian"]["packages"]
    stanzas = []
    for file in files:
        deb = next(pool.rglob(f"*{file['sha256']}*"), None) or next(
            path for path in pool.rglob("*.deb") if path.name == Path(file["pool_path"]).name
        )
        (folder / f"{file['sha256']}.deb").hardlink_to(deb)
        control = subprocess.run(
            ["dpkg-deb", "-f", str(deb)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        extra = (
            f"Filename: {file['sha256']}.deb\nSize: {file['size']}\nSHA256: {file['sha256']}\n"
        )
        stanzas.append(control + extra)
    (folder / "Packages").write_text("\n".join(stanzas))
    return [file["package"] for file in files]


def rival_cold(pool: Path, work: Path) -> tuple[float, int]:
    """Plain mmdebstrap + buildah; return seconds and compressed bytes."""
    repo = work / "repo"
    repo.mkdir()
    names = repository(pool, repo)
    out = work / "rival-oci"
    script = f"""
set -eu
mmdebstrap --variant=extract --include={",".join(names)} forky {work}/root.tar \
  'deb [trusted=yes] copy://{repo} ./' >/dev/null 2>&1
mkdir {work}/context
mv {work}/root.tar {work}/context/root.tar
printf 'FROM scratch\\nADD root.tar /\\nENTRYPOINT ["/usr/bin/llama-server"]\\n' \
  > {work}/Dockerfile
b="buildah --storage-driver overlay --root {work}/storage --runroot {work}/run"
$b build --isolation chroot -q -t rival -f {work}/Dockerfile {work}/context >/dev/null
$b push -q rival oci:{out}:rival
"""
    seconds, _ = timed(["sh", "-c", script], env={**os.environ, "TMPDIR": str(work)})
    size = sum(path.stat().st_size for path in (out / "blobs" / "sha256").iterdir())
    return seconds, size


def unslimmed(work: Path, *argv: str) -> int:
    """Compressed bytes of the rival's root under one codec."""
    with (work / "context" / "root.tar").open("rb") as source:
        child = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE)
        stream = child.stdout
        assert stream is not None
        size = 0
        while block := stream.read(1 << 20):
            size += len(block)
        return size


def rival_second(store: Path, work: Path) -> float:
    """Seconds of a fully cached `docker build` of the rendered folder."""
    folder = work / "rendered"
    timed([str(BIN), "render", TARGET, "--store", str(store), "--context", "-o", str(folder)])
    argv = ["docker", "build", "-q", "--network", "none", "-t", "vega-bench:1", str(folder)]
    timed(argv)
    return timed(argv)[0]


def main() -> None:
    """Run everything and print ratios."""
    with tempfile.TemporaryDirectory(prefix="vega-bench-", dir="/var/tmp") as name:
        work = Path(name)
        store, pool = work / "store", work / "pool"
        timed([str(BIN), "pool", "export", TARGET, "--store", str(store), "-o", str(pool)])
        cold, value = build(store)
        steps = {row["name"]: row["seconds"] for row in value["steps"]}
        print(f"cold build, downloads excluded: {cold:.1f} s, steps {steps}")
        theirs, gzip_size = rival_cold(pool, work)
        print(f"mmdebstrap + buildah: {theirs:.1f} s; ratio {cold / theirs:.2f} (budget 1.2)")
        zstd_bytes = value["compressed_bytes"]
        print(f"image, spec's codec: {zstd_bytes / 1e6:.1f} MB (budget 125)")
        second, again = build(store)
        assert all(row["state"] == "cached" for row in again["steps"])
        docker = rival_second(store, work)
        print(
            f"second build {second:.2f} s, cached docker build {docker:.2f} s; "
            f"ratio {second / docker:.2f} (budget 1.0)"
        )
        _, gz = build(store, "--codec", "gzip", "--level", "6")
        print(f"image, gzip -6: {gz['compressed_bytes'] / 1e6:.1f} MB (budget 185)")
        plain_gzip = unslimmed(work, "gzip", "-6")
        print(
            f"unslimmed, gzip -6: {plain_gzip / 1e6:.1f} MB; "
            f"ratio {gz['compressed_bytes'] / plain_gzip:.3f} (budget 0.25)"
        )
        level = value["compression"].split(":")[1]
        plain_zstd = unslimmed(work, "zstd", "-T2", f"-{level}", "-c")
        print(
            f"unslimmed, zstd -{level}: {plain_zstd / 1e6:.1f} MB; "
            f"ratio {zstd_bytes / plain_zstd:.3f} (budget 0.25)"
        )
        print(f"(buildah's own gzip of the unslimmed image: {gzip_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
