"""Find-dbs for tests: the slices in the repository, and made problems and records."""

from __future__ import annotations

import string
import subprocess
from pathlib import Path

from hypothesis import strategies as st

from vega_image.finddb.problem import DTYPES, LAYOUTS, Problem
from vega_image.finddb.record import FAMILIES, Item, Record, algorithm
from vega_image.finddb.text import FindDb
from vega_image.sources.download import Wanted
from vega_image.sources.fetch import fetch_files
from vega_image.sources.origin import Origin
from vega_image.store import Store

DATA = Path(__file__).parent / "data" / "finddb"
SLICE = DATA / "gfx906_60-slice.HIP.fdb.txt"
CURRENT = DATA / "gfx942-slice.HIP.fdb.txt"
PERF = DATA / "gfx90878-slice.db.txt"
CONV1_W = "64-112-112-7x7-3-224-224-32-3x3-2x2-1x1-0-NCHW-FP32-W"
POOL_PATH = "pool/main/m/miopen/libmiopen-tests-data_7.2.4+dfsg-1_all.deb"
DEB_SHA256 = "edea069aa2c80b8ddbb5bfe1f6ebc7b2977620f57229ba24a7329b3f3a67b459"
DEB_SIZE = 58_753_540
WHOLE = "usr/share/miopen/db/gfx906_60.HIP.fdb.txt"
WHOLE_SHA256 = "7f5c358ea22bf17830e9c0c355629bc69fe468c8dbaad1f3ef0f1a1437b1ba8b"

SIZES = st.integers(1, 10**6)
CASTS = st.none() | st.sampled_from(DTYPES)


def db(text: str | bytes) -> FindDb:
    """A find-db in memory."""
    return FindDb(text.encode("latin-1") if isinstance(text, str) else text, "test")


def fetch_whole(folder: Path) -> Path:
    """Fetch the real gfx906_60.HIP.fdb.txt by its package's locked digest."""
    store = Store(folder / "store")
    urls = tuple(f"{base.rstrip('/')}/{POOL_PATH}" for base in Origin().bases())
    wanted = Wanted(name="miopen data", urls=urls, size=DEB_SIZE, sha256=DEB_SHA256)
    fetch_files(
        [wanted], store=store, offline=False, progress=lambda *_: None, log=lambda _: None
    )
    deb = store.path(f"sha256:{DEB_SHA256}")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder / "data")], check=True)
    return folder / "data" / WHOLE


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any problem MIOpen can write."""
    dims = draw(st.sampled_from([2, 3]))
    sizes = st.tuples(*[SIZES] * dims)
    layouts = st.sampled_from(LAYOUTS[dims])
    return Problem(
        direction=draw(st.sampled_from("FBW")),
        batch=draw(SIZES),
        x_channels=draw(SIZES),
        x_size=draw(sizes),
        y_channels=draw(SIZES),
        y_size=draw(sizes),
        filter=draw(sizes),
        pads=draw(st.tuples(*[st.integers(0, 99)] * dims)),
        strides=draw(sizes),
        dilations=draw(sizes),
        groups=draw(st.integers(1, 50)),
        bias=draw(st.integers(0, 1)),
        x_dtype=draw(st.sampled_from(DTYPES)),
        w_dtype=draw(st.sampled_from(DTYPES)),
        y_dtype=draw(st.sampled_from(DTYPES)),
        x_layout=draw(layouts),
        w_layout=draw(layouts),
        y_layout=draw(layouts),
        x_cast=draw(CASTS),
        w_cast=draw(CASTS),
        y_cast=draw(CASTS),
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record, with solvers that need not exist."""
    problem = draw(problems())
    items = st.builds(
        Item,
        solver=st.text(string.ascii_letters + string.digits + "_<>-", min_size=1, max_size=9),
        time=st.floats(1e-5, 1e5).map(lambda time: float(f"{time:g}")),
        workspace=st.integers(0, 10**12),
        algorithm=st.sampled_from(
            [algorithm(problem.direction, family) for family in FAMILIES]
        ),
    )
    return Record(key=problem.key, items=tuple(draw(st.lists(items, min_size=1, max_size=3))))
