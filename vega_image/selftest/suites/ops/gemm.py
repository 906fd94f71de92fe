"""Products of matrices: what most other operations rest on."""

from __future__ import annotations

from vega_image.selftest.suites.ops.op import Bilinear, Contraction, Op, Variant, normal

FAMILY = "gemm"
MATRIX = Contraction("ij,jk->ik")


def _mm(m: int, k: int, n: int, *, tier: str) -> Variant:
    return Variant(tier, (normal(m, k), normal(k, n)), Bilinear(k, max(m, n), MATRIX))


# 256^3 first: the smallest product that a wrongly mapped library got wrong (rocBLAS#1680).
# 1..17: last columns of odd sizes (rocBLAS#340).
SIZES = (
    _mm(256, 256, 256, tier="r1"),
    _mm(1, 2, 2, tier="r2"),
    *(_mm(m, k, n, tier="r3")
    for m, k, n in ((1, 17, 1), (17, 1, 17), (5, 16, 13), (17, 17, 17), (16, 15, 17), (2, 3, 1),
                    (64, 64, 64), (128, 128, 128), (130, 129, 131), (512, 512, 512))),
)  # fmt: skip

OPS = (
    Op("op27", "mm", (normal(127, 257), normal(257, 65)), lambda t, a, b: t.mm(a, b),
       Bilinear(257, 127, MATRIX),
       shapes="(127,257)x(257,65); 256^3 at r1; 1..17, 64..512 at r3", variants=SIZES,
       risk="rocBLAS#1680, rocBLAS#340: the Tensile kernels of gfx906, odd sizes"),
    Op("op28", "bmm", (normal(7, 33, 65), normal(7, 65, 31)), lambda t, a, b: t.bmm(a, b),
       Bilinear(65, 33, Contraction("bij,bjk->bik")), shapes="(7,33,65)x(7,65,31)",
       risk="strided-batched Tensile kernels"),
    Op("op29", "addmm", (normal(64, 48), normal(64, 80), normal(80, 48)),
       lambda t, c, a, b: t.addmm(c, a, b, beta=0.5, alpha=2.0),
       Bilinear(80, 64, Contraction("ij,jk->ik", 1, 2, 0, alpha=2.0, beta=0.5)),
       shapes="(64,48)+(64,80)x(80,48)",
       risk="alpha and beta: powers of two, for rounding twice is no fault"),
    Op("op30", "baddbmm", (normal(5, 16, 24), normal(5, 16, 40), normal(5, 40, 24)),
       lambda t, c, a, b: t.baddbmm(c, a, b),
       Bilinear(40, 24, Contraction("bij,bjk->bik", 1, 2, 0)), shapes="(5,16,24)"),
    Op("op31", "linear", (normal(3, 50, 96), normal(128, 96), normal(128)),
       lambda t, x, w, b: t.nn.functional.linear(x, w, b),
       Bilinear(96, 150, Contraction("abi,oi->abo", 0, 1, 2)),
       shapes="(3,50,96) -> 128, bias", opinfo="nn.functional.linear",
       risk="hipBLASLt has no gfx906: must fall back to rocBLAS"),
    Op("op32", "matmul_broadcast", (normal(2, 1, 17, 33), normal(5, 33, 9)),
       lambda t, a, b: t.matmul(a, b), Bilinear(33, 45, Contraction("azij,bjk->abik")),
       shapes="(2,1,17,33)x(5,33,9)", opinfo="matmul"),
    Op("op33", "mv", (normal(129, 1025), normal(1025)), lambda t, a, b: t.mv(a, b),
       Bilinear(1025, 129, Contraction("ij,j->i")), shapes="(129,1025)x(1025,)",
       risk="TheRock#2347: gemv kernels; the decoding path of language models"),
    Op("op34", "einsum", (normal(4, 9, 16, 8), normal(4, 9, 8, 21)),
       lambda t, a, b: t.einsum("bhij,bhjk->bhik", a, b),
       Bilinear(8, 21, Contraction("bhij,bhjk->bhik")), shapes="bhij,bhjk->bhik"),
)  # fmt: skip
"""One row per operation."""
