#!/usr/bin/env python3
"""Fits the polynomials of this folder: minimax, by the algorithm of Remez, with mpmath.

    python3 src/ir/elementary/fit.py [NAME ..]

prints each polynomial as a Rust constant, lowest power first, with its greatest error. Coefficients are rounded to their
format one after the other, lowest power first, and after each the rest is fitted again, so that the error stated is that of
the rounded polynomial.
"""

import struct
import sys

from mpmath import cos, erf, erfc, exp, expm1, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sinh, sqrt

mp.dps = 50


def single(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def double(x):
    return mpf(float(x))


def text(x, rounding):
    """A literal that gives the float back, its digits in groups of three, as Rust's lints want them."""
    digits, _, exponent = ("%.9g" % float(x) if rounding is single else repr(float(x))).partition("e")
    whole, _, fraction = digits.partition(".")
    groups = "_".join(fraction[i : i + 3] for i in range(0, len(fraction), 3)) or "0"
    return f"{whole}.{groups}" + (f"e{int(exponent)}" if exponent else "")


def nodes(a, b, n):
    """Chebyshev points, in order."""
    return [(a + b) / 2 - (b - a) / 2 * cos(pi * i / (n - 1)) for i in range(n)]


class Fit:
    """Coefficients c with sum c[k] x^k near f(x) on [a, b]; the error is multiplied by weight(x)."""

    def __init__(self, f, weight, a, b, degree, points):
        self.a, self.b, self.degree = mpf(a), mpf(b), degree
        self.grid = nodes(self.a, self.b, points)
        self.f = [f(x) for x in self.grid]
        self.w = [weight(x) for x in self.grid]

    def errors(self, c):
        out = []
        for x, f, w in zip(self.grid, self.f, self.w):
            p = mpf(0)
            for k in reversed(c):
                p = p * x + k
            out.append((p - f) * w)
        return out

    def remez(self, fixed):
        """The minimax polynomial whose lowest coefficients are `fixed`."""
        first, n = len(fixed), self.degree + 1 - len(fixed)
        step = (len(self.grid) - 1) / (n)
        at = [round(i * step) for i in range(n + 1)]
        if first and self.a == 0:  # the weightless end of the interval says nothing about higher powers
            at = [max(i, 1) for i in at]
            at = sorted(set(at)) if len(set(at)) == n + 1 else list(range(1, n + 2))
        c = None
        for _ in range(30):
            rows, right = matrix(n + 1, n + 1), matrix(n + 1, 1)
            for r, i in enumerate(at):
                x, w = self.grid[i], self.w[i]
                for k in range(n):
                    rows[r, k] = x ** (first + k) * w
                rows[r, n] = (-1) ** r
                right[r] = (self.f[i] - sum(v * x**k for k, v in enumerate(fixed))) * w
            solved = lu_solve(rows, right)
            c = list(fixed) + [solved[k] for k in range(n)]
            level = abs(solved[n])
            e = self.errors(c)
            if max(abs(v) for v in e) <= level * mpf("1.0005"):
                break
            at = self.exchange(e, n + 1)
        return c

    def exchange(self, e, wanted):
        """The extrema of the error, alternating in sign, the greatest neighbours of them."""
        peaks = []
        for i, v in enumerate(e):
            if v == 0:
                continue
            if peaks and (e[peaks[-1]] > 0) == (v > 0):
                if abs(v) > abs(e[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > wanted:
            if len(peaks) == wanted + 1:
                peaks.pop(0 if abs(e[peaks[0]]) < abs(e[peaks[-1]]) else -1)
            else:
                low = min(range(len(peaks) - 1), key=lambda j: max(abs(e[peaks[j]]), abs(e[peaks[j + 1]])))
                del peaks[low : low + 2]
        if len(peaks) < wanted:  # a degenerate step: points between
            step = (len(e) - 1) / (wanted + 1)
            peaks = [round((i + 1) * step) for i in range(wanted)]
        return peaks

    def rounded(self, rounding, split):
        """Coefficients rounded one after the other; with `split` the first as a sum of two, which are printed."""
        c, printed = [], []
        while len(c) <= self.degree:
            next_one = self.remez(c)[len(c)]
            parts = [rounding(next_one)]
            if split and not c:
                parts.append(rounding(next_one - parts[0]))
            c.append(sum(parts))
            printed += parts
        return c, printed


LN2 = log(mpf(2))
R = LN2 / 2 * mpf("1.001")


def exp_rest(r):
    return (expm1(r) - r) / r**2 if abs(r) > mpf(10) ** -12 else mpf(1) / 2 + r / 6


def log_rest(f):
    return (log1p(f) - f + f**2 / 2) / f**3 if abs(f) > mpf(10) ** -9 else mpf(1) / 3 - f / 4


def log_quotient(z):
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 for z = s^2."""
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) - 2 * s) / s**3 if z > mpf(10) ** -18 else mpf(2) / 3 + 2 * z / 5


def sin_rest(z):
    r = sqrt(z)
    return (sin(r) - r) / r**3 if z > mpf(10) ** -18 else -mpf(1) / 6 + z / 120


def cos_rest(z):
    return (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -12 else mpf(1) / 24 - z / 720


def erf_over_x(z):
    x = sqrt(z)
    return erf(x) / x - 1 if x > mpf(10) ** -20 else 2 / sqrt(pi) - 1


def log_one(f):
    return log1p(f) / f if abs(f) > mpf(10) ** -30 else mpf(1)


L, H = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1
S2 = (H / (2 + H)) ** 2 * mpf("1.001")
Q2 = (pi / 4) ** 2 * mpf("1.001")
SPLIT = mpf(1)


def exp2_over_x(f):
    return expm1(f * LN2) / f if abs(f) > mpf(10) ** -30 else LN2


def sinh_rest(z):
    x = sqrt(z)
    return (sinh(x) - x) / x**3 if z > mpf(10) ** -18 else mpf(1) / 6 + z / 120


def scaled_erfc(t):
    """(1 + 2 x) e^(x^2) erfc(x) for x = 2 (1 + t) / (1 - t)."""
    x = 2 * (1 + t) / (1 - t)
    return (1 + 2 * x) * exp(x**2) * erfc(x)


def erfc_place(x):
    return (mpf(x) - 2) / (mpf(x) + 2)


# name: (what is fitted, weight that makes its error relative to the result, interval, degree, format)
FITS = {
    "EXP2_F32": (exp2_over_x, lambda f: f / 2**f, -mpf("0.5"), mpf("0.5"), 5, single),
    "EXP2_F64": (exp2_over_x, lambda f: f / 2**f, -mpf("0.5"), mpf("0.5"), 11, double),
    "SINH_F32": (sinh_rest, lambda z: z * sqrt(z) / sinh(sqrt(z)) if z else z, 0, mpf(1), 3, single),
    "SINH_F64": (sinh_rest, lambda z: z * sqrt(z) / sinh(sqrt(z)) if z else z, 0, mpf(1), 6, double),
    "ERFC_F32": (scaled_erfc, lambda t: 1 / scaled_erfc(t), erfc_place(0.5), erfc_place(10.1), 10, single),
    "ERFC_F64": (scaled_erfc, lambda t: 1 / scaled_erfc(t), erfc_place(0.5), erfc_place(27.3), 23, double),
    "EXP_F32": (exp_rest, lambda r: r**2 / exp(r), -R, R, 4, single),
    "EXPM1_F32": (exp_rest, lambda r: r**2 / expm1(r) if r else r, -R, R, 5, single),
    "EXP_F64": (exp_rest, lambda r: r**2 / exp(r), -R, R, 9, double),
    "EXPM1_F64": (exp_rest, lambda r: r**2 / expm1(r) if r else r, -R, R, 10, double),
    "LOG_F32": (log_rest, lambda f: f**2 / log_one(f), L, H, 7, single),
    "LOG_F64": (log_quotient, lambda z: z / 2, 0, S2, 6, double),
    "SIN_F32": (sin_rest, lambda z: z * sqrt(z) / sin(sqrt(z)) if z else z, 0, Q2, 3, double),
    "COS_F32": (cos_rest, lambda z: z**2 / cos(sqrt(z)), 0, Q2, 2, double),
    "SIN_F64": (sin_rest, lambda z: z * sqrt(z) / sin(sqrt(z)) if z else z, 0, Q2, 5, double),
    "COS_F64": (cos_rest, lambda z: z**2 / cos(sqrt(z)), 0, Q2, 5, double),
    "ERF_F32": (erf_over_x, lambda z: 1 / (erf_over_x(z) + 1), 0, SPLIT**2, 6, single),
    "ERF_F64": (erf_over_x, lambda z: 1 / (erf_over_x(z) + 1), 0, SPLIT**2, 11, double),
    "TAIL_F32": (lambda x: log(erfc(x)), lambda x: erfc(x) / erf(x), SPLIT, mpf(4), 8, single),
    "TAIL_F64": (lambda x: log(erfc(x)), lambda x: erfc(x) / erf(x), SPLIT, mpf(6), 17, double),
}

# The first coefficient is the value at 0, within the interval: rounded, its error would be the whole polynomial's.
SPLIT_FIRST = {"ERFC_F32", "ERFC_F64"}


def main(names):
    for name in names or FITS:
        f, weight, a, b, degree, rounding = FITS[name]
        fit = Fit(f, weight, a, b, degree, 40 * (degree + 2) + 1)
        c, printed = fit.rounded(rounding, name in SPLIT_FIRST)
        error = max(abs(e) for e in fit.errors(c))
        print(f"/// Error 2^{float(log(error, 2)):.1f}.")
        print(f"const {name}: [f64; {len(printed)}] = [{', '.join(text(k, rounding) for k in printed)}];", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
