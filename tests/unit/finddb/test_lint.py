"""Lint: every measured bad input has its code, place and severity; fast and careful agree."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.finddbfiles import CONV1_W, CURRENT, SLICE, db
from vega_image.finddb.findings import KINDS, SEVERITIES
from vega_image.finddb.judge import judge
from vega_image.finddb.lint import Report, lint
from vega_image.finddb.text import FindDb

F = "3-9-9-3x3-4-9-9-1-1x1-1x1-1x1-0-NCHW-FP32-F"
B = "4-9-9-3x3-3-9-9-1-1x1-1x1-1x1-0-NCHW-FP32-B"
W = CONV1_W
FWD, BWD, WRW = (f"miopenConvolution{stem}Algo" for stem in ("Fwd", "BwdData", "BwdWeights"))
GEMM_F = f"GemmFwdRest:1,8748,{FWD}GEMM"
GEMM_W = f"GemmWrwUniversal:2,7375872,{WRW}GEMM"
NAIVE_F = f"ConvDirectNaiveConvFwd:1,0,{FWD}Direct"
OLD_F = f"{FWD}GEMM:GemmFwdRest,1,8748,{FWD}GEMM,<unused>"
OLD_W = f"{WRW}GEMM:GemmWrwUniversal,2,7375872,{WRW}GEMM,<unused>"
MANY = ";".join(f"Unknown{n}:1,0,{FWD}Direct" for n in range(11))

# What is in the file, and the (code, line, column) that must be found: all, and no others.
BAD: list[tuple[str, list[tuple[str, int, int]]]] = [
    (f"{F}={GEMM_F}\n{W}={GEMM_W}\n{B}={BWD}GEMM:GemmBwdRest,1,8748,{BWD}GEMM,<unused>\n", []),
    ("", [("EMPTY_FILE", 1, 1)]),
    ("\n\n", [("EMPTY_FILE", 1, 1)]),
    (f"\xef\xbb\xbf{F}={GEMM_F}\n", [("BYTE_ORDER_MARK", 1, 1)]),
    (f"{F}={GEMM_F}\r\n", [("CRLF", 1, len(F) + len(GEMM_F) + 2)]),
    (f"{F}={OLD_F}\r\n", [("CRLF", 1, len(F) + len(OLD_F) + 2)]),
    (f"{F}={GEMM_F}", [("NO_FINAL_NEWLINE", 1, len(F) + len(GEMM_F) + 2)]),
    (f"\n{F}\n", [("NO_EQUALS", 2, len(F) + 1)]),
    (f"={GEMM_F}\n", [("NO_KEY", 1, 1)]),
    (f"{F}x={GEMM_F}\n", [("BAD_KEY", 1, len(F) + 1)]),
    (f"{F}={GEMM_F}\n{F}={OLD_F}\n", [("DUPLICATE_KEY", 2, 1)]),
    (f"{F}=\n", [("EMPTY_VALUE", 1, len(F) + 2)]),
    (f"{F}={GEMM_F};junk\n", [("ITEM_WITHOUT_COLON", 1, len(F) + len(GEMM_F) + 3)]),
    (f"{F}=junk\n", [("EMPTY_RECORD", 1, len(F) + 2), ("ITEM_WITHOUT_COLON", 1, len(F) + 2)]),
    (
        f"{F}={FWD}GEMM:GemmFwdRest,1,8748\n",
        [("EMPTY_RECORD", 1, len(F) + 2), ("LEGACY_ITEM_SHORT", 1, len(F) + 2)],
    ),
    (
        f"{F}={GEMM_F};GemmFwd1x1_0_1:1,0\n",
        [("CURRENT_ITEM_SHORT", 1, len(F) + len(GEMM_F) + 3)],
    ),
    (f"{F}={GEMM_F},9\n", [("EXTRA_FIELD", 1, len(F) + len(GEMM_F) + 3)]),
    (f"{F}={OLD_F},9\n", [("EXTRA_FIELD", 1, len(F) + OLD_F.index("<") + 2)]),
    (
        f"{F}=GemmFwdRest:1 ,8748,{FWD}GEMM\n",
        [("TIME_NOT_A_NUMBER", 1, len(F) + 14), ("WHITE_SPACE", 1, len(F) + 15)],
    ),
    (f"{F}=GemmFwdRest:abc,8748,{FWD}GEMM\n", [("TIME_NOT_A_NUMBER", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:nan,8748,{FWD}GEMM\n", [("TIME_NOT_A_NUMBER", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:1e99,8748,{FWD}GEMM\n", [("TIME_NOT_A_NUMBER", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:1e-99,8748,{FWD}GEMM\n", [("TIME_NOT_A_NUMBER", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:0,8748,{FWD}GEMM\n", [("TIME_NOT_POSITIVE", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:0.000,8748,{FWD}GEMM\n", [("TIME_NOT_POSITIVE", 1, len(F) + 14)]),
    (f"{F}=GemmFwdRest:-1,8748,{FWD}GEMM\n", [("TIME_NOT_POSITIVE", 1, len(F) + 14)]),
    (
        f"{F}={OLD_F.replace(',1,', ',0,')}\n",
        [("TIME_NOT_POSITIVE", 1, len(F) + OLD_F.index(",1,") + 3)],
    ),
    (f"{F}=GemmFwdRest:1,x,{FWD}GEMM\n", [("WORKSPACE_NOT_A_NUMBER", 1, len(F) + 16)]),
    (f"{F}=GemmFwdRest:1,-1,{FWD}GEMM\n", [("WORKSPACE_NOT_A_NUMBER", 1, len(F) + 16)]),
    (f"{F}=GemmFwdRest:1,8747,{FWD}GEMM\n", [("WORKSPACE_UNDERSTATED", 1, len(F) + 16)]),
    (
        f"{W}={GEMM_W.replace('7375872', '7375871')}\n",
        [("WORKSPACE_UNDERSTATED", 1, len(W) + 21)],
    ),
    (
        f"{W}={OLD_W.replace('7375872', '0')}\n",
        [("WORKSPACE_UNDERSTATED", 1, len(W) + OLD_W.index("7375872") + 2)],
    ),
    (
        f"{F}={GEMM_F};{NAIVE_F.replace('Direct', 'Magic')}\n".replace(
            "ConvMagic", "ConvDirect"
        ),
        [("UNKNOWN_ALGORITHM", 1, len(F) + len(GEMM_F) + 30)],
    ),
    (f"{F}={GEMM_F.replace(FWD, WRW)}\n", [("WRONG_DIRECTION_ALGORITHM", 1, len(F) + 21)]),
    (
        f"{W}={GEMM_W.replace('GEMM', 'FFT')}\n",
        [("FFT_FOR_WEIGHTS", 1, len(W) + 29), ("WRONG_FAMILY", 1, len(W) + 29)],
    ),
    (f"{F}={GEMM_F.replace('GEMM', 'Direct')}\n", [("WRONG_FAMILY", 1, len(F) + 21)]),
    (
        f"{F}={OLD_F.replace('AlgoGEMM,', 'AlgoDirect,')}\n",
        [("ALGORITHMS_DIFFER", 1, len(F) + 2 + OLD_F.rindex("miopen"))],
    ),
    (f"{F}={FWD}GEMM:GemmFwdRest,1,8748,,<unused>\n", [("ODD_FIELD", 1, len(F) + 50)]),
    (
        f"{F}={GEMM_F};GemmFwdRset:1,0,{FWD}GEMM\n",
        [("UNKNOWN_SOLVER", 1, len(F) + len(GEMM_F) + 3)],
    ),
    (
        f"{F}=GemmFwdRset:1,0,{FWD}GEMM\n",
        [("NO_USABLE_SOLVER", 1, len(F) + 2), ("UNKNOWN_SOLVER", 1, len(F) + 2)],
    ),
    (
        f"{F}={GEMM_F};ConvMlirIgemmFwd:1,0,{FWD}ImplicitGEMM\n",
        [("COMPILED_OUT_SOLVER", 1, len(F) + len(GEMM_F) + 3)],
    ),
    (
        f"{F}=ConvMlirIgemmFwd:1,0,{FWD}ImplicitGEMM\n",
        [("COMPILED_OUT_SOLVER", 1, len(F) + 2), ("NO_USABLE_SOLVER", 1, len(F) + 2)],
    ),
    (
        f"{F}=ConvHipImplicitGemmFwdXdlops:1,0,{FWD}ImplicitGEMM\n",
        [("COMPILED_OUT_SOLVER", 1, len(F) + 2), ("NO_USABLE_SOLVER", 1, len(F) + 2)],
    ),
    (
        f"{F}=ConvHipImplicitGemmForwardV4R4Xdlops:1,0,{FWD}ImplicitGEMM\n",
        [("INELIGIBLE_SOLVER", 1, len(F) + 2), ("NO_USABLE_SOLVER", 1, len(F) + 2)],
    ),
    (
        f"{F}=GemmWrwUniversal:1,8748,{FWD}GEMM\n",
        [("NO_USABLE_SOLVER", 1, len(F) + 2), ("WRONG_DIRECTION_SOLVER", 1, len(F) + 2)],
    ),
    (f"{F}={GEMM_F};{GEMM_F}\n", [("DUPLICATE_SOLVER", 1, len(F) + len(GEMM_F) + 3)]),
    (
        f"{F}={FWD}Direct:ConvDirectNaiveConvFwd,x,0.5,12,<unused>\n",
        [
            ("TIME_NOT_A_NUMBER", 1, len(F) + 56),
            ("WORKSPACE_NOT_A_NUMBER", 1, len(F) + 58),
        ],
    ),
    # The call fails in it: nothing is said of a miss.
    (f"{F}=GemmFwdRest:1\n", [("CURRENT_ITEM_SHORT", 1, len(F) + 2)]),
    (f"{F}={GEMM_F}\n\0\n", [("NO_EQUALS", 2, 2)]),
]


@pytest.mark.parametrize(("text", "wanted"), BAD, ids=range(len(BAD)))
def test_every_bad_input_has_its_code_and_place(
    text: str, wanted: list[tuple[str, int, int]]
) -> None:
    report = lint(db(text))
    found = sorted((one.code, one.line, one.column) for one in report.findings())
    assert found == sorted(wanted)
    assert report.counts == Counter(code for code, _, _ in wanted)


def test_more_than_ten_items_are_too_many() -> None:
    codes = lint(db(f"{F}={MANY}\n")).counts
    assert codes["TOO_MANY_ITEMS"] == 1
    ten = ";".join(MANY.split(";")[:10])
    assert lint(db(f"{F}={ten}\n")).counts["TOO_MANY_ITEMS"] == 0
    assert "TOO_MANY_ITEMS" not in {one.code for one in judge(f"{F}={ten}", 1)}


def test_every_code_says_how_bad_it_is_and_what_follows() -> None:
    tested = {code for _, wanted in BAD for code, _, _ in wanted}
    others = {"TOO_MANY_ITEMS", "BAD_BYTE", "IMPOSSIBLE_SIZES"}
    users = {"USER_RECORD", "USER_HIDES_SYSTEM", "USER_UNREADABLE"}
    assert set(KINDS) == tested | others | users
    for severity, consequence in KINDS.values():
        assert severity in SEVERITIES
        assert consequence


def test_swapped_sides_are_seen_on_request() -> None:
    swapped = "3-224-224-7x7-64-112-112-32-3x3-2x2-1x1-0-NCHW-FP32-W"
    one = db(f"{swapped}=ConvDirectNaiveConvWrw:1,0,{WRW}Direct\n")
    assert lint(one).counts == {}
    assert lint(one, sizes=True).counts == {"IMPOSSIBLE_SIZES": 1}


def test_channels_that_do_not_divide_into_groups_are_seen_on_request() -> None:
    one = db(f"{F}_g2={GEMM_F}\n")
    assert [x.detail for x in lint(one, sizes=True).findings()] == [
        "3 and 4 channels do not divide into 2 groups"
    ]


def test_a_users_db_is_held_against_the_systems() -> None:
    system = db(f"{F}={GEMM_F}\n{W}={GEMM_W}\n{B}=GemmBwdRest:1,8748,{BWD}GEMM\n")
    mlir = f"ConvMlirIgemmWrW:1,0,{WRW}ImplicitGEMM"
    user = db(f"{F}={GEMM_F}\n{W}={mlir}\n{B}=junk\n")
    found = {one.code: one.line for one in lint(user, system).others}
    assert found == {"USER_RECORD": 1, "USER_HIDES_SYSTEM": 2, "USER_UNREADABLE": 3}


def careful(one: FindDb) -> Counter[str]:
    """Every line judged by itself."""
    lines = enumerate(one.lines)
    return Counter(
        found.code for n, line in lines for found in judge(line.decode("latin-1"), n + 1)
    )


def by_lines(report: Report) -> Counter[str]:
    """What the report counts of lines by themselves."""
    return report.counts - Counter(one.code for one in report.others)


@pytest.mark.parametrize("path", [SLICE, CURRENT], ids=["1.0", "2.0"])
def test_the_fast_way_finds_what_the_careful_one_does(path: object) -> None:
    one = db((SLICE if path is SLICE else CURRENT).read_bytes())
    report = lint(one)
    assert by_lines(report) == careful(one)
    assert Counter(found.code for found in report.findings()) == report.counts
    assert len(list(report.findings(3))) == sum(min(3, n) for n in report.counts.values())


def mutated(line: bytes, chance: random.Random) -> bytes:
    """A line with some of its bytes lost, doubled, swapped or replaced."""
    text = bytearray(line)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(text) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del text[at : at + chance.choice([1, 1, 9, 60])]
        elif kind == 1:
            text[at:at] = chance.choice([b";", b",", b":", b"=", b"-", b"\r", b"\0", b" "])
        elif kind == 2:
            text[at : at + 1] = bytes([chance.randrange(256)]).replace(b"\n", b"?")
        elif kind == 3:
            end = at + chance.randrange(40)
            text[at:at] = text[at:end]
        else:
            text[at : at + 3] = chance.choice(
                [b"0", b"-1", b"nan", b"1e9", b"99999999999999999999"]
            )
    return bytes(text)


def test_ten_thousand_mutated_lines_have_findings_and_no_traceback() -> None:
    chance = random.Random(906)
    lines = SLICE.read_bytes().splitlines() + CURRENT.read_bytes().splitlines()
    for _ in range(100):
        text = b"\n".join(mutated(chance.choice(lines), chance) for _ in range(100)) + b"\n"
        one = db(text)
        report = lint(one)
        assert by_lines(report) == careful(one)
        findings = list(report.findings())
        assert Counter(found.code for found in findings) == report.counts
        marked = {found.line for found in findings}
        flawed = {flaw.line for flaw in one.flaws()}
        unsaid = [
            (flaw, one.lines[flaw.line - 1]) for flaw in one.flaws() if flaw.line not in marked
        ]
        assert not unsaid, "what is not of the grammar has no finding"
        assert len(list(one.records())) + len(flawed) == len(one.lines) - one.lines.count(b"")
