"""Run vega-selftest.pyz in other Pythons and write down what ran where.

    python benchmarks/selftest_pythons.py docs/selftest-pythons PYTHON...

Packs the suite, runs it outside any checkout in each PYTHON, writes PREFIX.json (the record)
and PREFIX.md (made from the record). Exits 1 where something that ran was not right.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vega_image.selftest.identity import suite_version
from vega_image.selftest.pack import pack

PROBE = """
import json, platform
found = {"python": platform.python_version(), "numpy": None, "torch": None}
for name in ("numpy", "torch"):
    try:
        found[name] = __import__(name).__version__
    except ImportError:
        pass
print(json.dumps(found))
"""
SAMPLE = ("op/*", "regression/regression", "conv000*", "conv03*")
CASES = tuple(word for name in SAMPLE for word in ("--case", name))
RUNS = {
    "r1, fork": ("--level", "r1", "--record", "kept"),
    "r1, spawn": ("--level", "r1", "--isolation", "spawn"),
    "r1, replay:FILE, spawn": (
        "--level", "r1", "--device", "replay:kept", "--isolation", "spawn"),
    "r2 sample, fork": ("--level", "r2", *CASES),
}  # fmt: skip
NEVER = ("Windows", "macOS", "Python 3.14 and later", "any Python with a HIP build of torch")


@dataclass
class Record:
    """What one Python did; `runs` by name: exit code, counts of verdicts, hash of integers."""

    python: str
    numpy: str | None
    torch: str | None
    core: bool
    pack: bool
    runs: dict[str, dict[str, object]] = field(default_factory=dict)


def called(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def record_of(python: str, pyz: Path, folder: Path) -> Record:
    """Let one Python do everything it can."""
    probe = json.loads(called([python, "-I", "-c", PROBE], folder).stdout)
    bare = [python, "-I", "-S", str(pyz)]
    words = (("list", "--json"), ("explain", "conv0000"), ("pack", "--output", "again"))
    core = all(called([*bare, *word], folder).returncode == 0 for word in words)
    same = core and (folder / "again").read_bytes() == pyz.read_bytes()
    record = Record(probe["python"], probe["numpy"], probe["torch"], core, same)
    for name, options in RUNS.items() if record.torch and record.numpy else ():
        report = folder / name.replace(":", "-")
        argv = [python, "-I", str(pyz), "run", *options, "--report", str(report)]
        done = called(argv, folder)
        if not (report / "report.json").is_file():
            sys.exit(f"{record.python}: {name}: exit {done.returncode}: {done.stderr}")
        record.runs[name] = judged(report, done.returncode)
        print(f"{record.python}: {name}: {record.runs[name]}", flush=True)
    return record


def judged(report: Path, code: int) -> dict[str, object]:
    """Read a run's report: the integer results must be the same bits everywhere."""
    value = json.loads((report / "report.json").read_text())
    whole = sorted(
        f"{item['key']} {item['digest']}"
        for item in value["results"]
        if item["oracle"] == "integer" and item["verdict"] == "MATCH"
    )
    return {
        "exit": code,
        "counts": value["counts"],
        "integer_trials": len(whole),
        "integer_sha256": hashlib.sha256("\n".join(whole).encode()).hexdigest()[:16],
    }


def page(document: dict[str, object], records: list[Record]) -> str:
    """Make the page from the record."""
    lines = [
        "# Which Pythons the suite has run in",
        "",
        "Made by `python benchmarks/selftest_pythons.py docs/selftest-pythons PYTHON...` from",
        "selftest-pythons.json; do not edit. Device: the processor; no card was involved.",
        f"Suite {document['suite']}, on {document['system']}.",
        "",
        "Core: list, explain and pack without numpy and torch; pack makes the same bytes in",
        "each. `integers` is a hash over the outputs of all exact trials that match.",
        "",
        "| Python | numpy | torch | core | same pyz | run | exit | verdicts | integers |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in records:
        head = f"| {one.python} | {one.numpy or 'none'} | {one.torch or 'none'} "
        head += f"| {'ok' if one.core else 'FAILED'} | {'yes' if one.pack else 'NO'} "
        rows = one.runs or {"no numpy or torch: NOT RUN": {}}
        for name, run in rows.items():
            found = run.get("counts")
            counts = found if isinstance(found, dict) else {}
            said = ", ".join(f"{count} {word}" for word, count in counts.items())
            whole = f"{run['integer_trials']}: {run['integer_sha256']}" if run else ""
            lines.append(head + f"| {name} | {run.get('exit', '')} | {said} | {whole} |")
    lines += ["", f"r2 sample: {', '.join(f'`{name}`' for name in SAMPLE)}.", ""]
    lines += ["Never run: " + ", ".join(NEVER) + "."]
    return "\n".join(lines) + "\n"


def main(prefix: Path, pythons: list[str]) -> int:
    """Run all, write record and page."""
    records = []
    with tempfile.TemporaryDirectory() as kept:
        pyz = Path(kept) / "vega-selftest.pyz"
        pack(pyz)
        for number, python in enumerate(pythons):
            folder = Path(kept) / str(number)
            folder.mkdir()
            records.append(record_of(str(Path(python).absolute()), pyz, folder))
    document: dict[str, object] = {
        "suite": suite_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "records": [asdict(record) for record in records],
        "never_run": list(NEVER),
    }
    prefix.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    prefix.with_suffix(".md").write_text(page(document, records))
    exits = [run["exit"] for record in records for run in record.runs.values()]
    whole = all(record.core and record.pack for record in records)
    return 0 if whole and not any(exits) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
