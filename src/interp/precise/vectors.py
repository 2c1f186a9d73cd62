"""Values of elementary functions for the tests, one a line: function, operands as bits of f64, value.

The value is `nan`, `inf`, `-inf`, or sign, 256 bits in hexadecimal and exponent: ±0.m * 2^e, to the nearest.
Run with mpmath 1.3: python3 vectors.py > vectors.txt
"""
import math
import random
import struct

from mpmath import mp, mpf

mp.prec = 2600
random.seed(7)


def bits(x):
    return struct.pack(">d", x).hex()


def value(y):
    if y == 0:
        return "+ 0 0"
    if mp.isnan(y):
        return "nan"
    if mp.isinf(y):
        return "inf" if y > 0 else "-inf"
    mantissa, exponent = mp.frexp(abs(y))
    m = int(mp.nint(mantissa * mpf(2) ** 256))
    if m == 1 << 256:
        m, exponent = m >> 1, exponent + 1
    return f"{'-' if y < 0 else '+'} {m:064x} {exponent}"


def spread(low, high, n, signed=True):
    """Numbers whose logarithms are spread evenly."""
    xs = [10 ** random.uniform(math.log10(low), math.log10(high)) for _ in range(n)]
    return [random.choice([-1, 1]) * x if signed else x for x in xs]


def between(low, high, n):
    return [random.uniform(low, high) for _ in range(n)]


def cbrt(x):
    return mp.sign(x) * mp.cbrt(abs(x))


# Those next to a multiple of pi/2 among the f64 (Kahan), and others far out.
near = [5.319372648326541e255, 6381956970095103.0 * 2.0**797, 1e22, 2.0**1023, math.pi, math.pi / 2, 1.5 * math.pi]
angles = spread(1e-300, 1e308, 24) + between(-7, 7, 24) + near
unary = {
    "exp": (mp.exp, spread(1e-300, 1e6, 24) + between(-800, 800, 16) + [1.0, -1.0, 1000.0, 0.34657359027997264]),
    "exp2": (lambda x: mpf(2) ** x, spread(1e-300, 1e6, 16) + between(-20, 20, 16) + [1.0, -1074.0, 0.5]),
    "expm1": (mp.expm1, spread(1e-300, 1e3, 24) + between(-1, 1, 16) + [-0.25, 0.25]),
    "log": (mp.log, spread(1e-308, 1e308, 24, False) + between(0.5, 1.5, 16)
            + [1.0, math.nextafter(1, 2), math.nextafter(1, 0), 5e-324, 0.7, 1.4, 2.0, 1 + 2.0**-10, 1 - 2.0**-10]),
    "log1p": (mp.log1p, spread(1e-300, 0.9, 24) + spread(1, 1e300, 8, False)),
    "sqrt": (mp.sqrt, spread(1e-308, 1e308, 24, False) + [2.0, 5e-324]),
    "cbrt": (cbrt, spread(1e-308, 1e308, 24) + [2.0, 5e-324]),
    "sin": (mp.sin, angles),
    "cos": (mp.cos, angles),
    "tan": (mp.tan, angles),
    "asin": (mp.asin, between(-1, 1, 16) + spread(1e-300, 1, 16) + [1.0, -1.0, math.nextafter(1, 0), 0.5]),
    "acos": (mp.acos, between(-1, 1, 16) + spread(1e-300, 1, 16) + [1.0, -1.0, math.nextafter(1, 0), 0.5]),
    "atan": (mp.atan, spread(1e-300, 1e300, 24) + between(-2, 2, 16) + [1.0, -1.0, math.nextafter(1, 2)]),
    "sinh": (mp.sinh, spread(1e-300, 1e5, 24) + between(-2, 2, 16)),
    "cosh": (mp.cosh, spread(1e-300, 1e5, 24) + between(-2, 2, 16)),
    "tanh": (mp.tanh, spread(1e-300, 1e300, 24) + between(-200, 200, 16) + [512.0, 511.9]),
    "erf": (mp.erf, spread(1e-300, 15, 24) + between(-14, 14, 24) + [13.4999, 13.5, 1e300]),
    "erfc": (mp.erfc, spread(1e-300, 1e3, 16) + between(-7, 30, 32) + [5.9999, 6.0, 6.0001, 27.0]),
}
for name, (f, xs) in unary.items():
    for x in xs:
        print(name, bits(x), value(f(mpf(x))))
for x, y in zip(spread(1e-30, 1e30, 24, False), between(-30, 30, 24)):
    print("pow", bits(x), bits(y), value(mpf(x) ** mpf(y)))
for x, n in [(-1.5, 7.0), (-1.5, 8.0), (3.0, -2.0), (-3.0, 1025.0), (1.1, 1e6), (0.5, 0.5), (10.0, 308.0), (2.0, -1074.0)]:
    print("pow", bits(x), bits(n), value(mpf(x) ** mpf(n)))
for y, x in zip(spread(1e-200, 1e200, 32), spread(1e-200, 1e200, 32)):
    print("atan2", bits(y), bits(x), value(mp.atan2(mpf(y), mpf(x))))
for y, x in zip(between(-2, 2, 16), between(-2, 2, 16)):
    print("atan2", bits(y), bits(x), value(mp.atan2(mpf(y), mpf(x))))
