"""Proof by ball arithmetic of the error bounds that `limbeck.privacy.rounded` relies on.

    pip install python-flint
    python benchmarks/certify_quantile.py

The functions of the fast path are run as they are shipped, on two number types of this script:

- `Exact`, a Taylor series of ball coefficients in the parameter, gives an enclosure of
  |approximation − true value| in exact arithmetic, on every cell of a subdivision of the range;
- `Rounded`, a ball and a bound on the accumulated error, follows float64 arithmetic step by step.

What is assumed: +, −, ·, / and square root of float64 are correctly rounded to nearest (IEEE 754),
as is the conversion of integers. No logarithm of a library is used. The sum of all errors is
compared with the bound in the module; the script fails if it is exceeded anywhere.
"""

import itertools
import math

import numpy as np
from flint import arb, arb_series, ctx

from limbeck.privacy import rounded

ctx.prec = 160
ORDER = 24
UNIT = arb(2) ** -53
ROOT_HALF = arb(0.5).sqrt()


class Exact:
    """An analytic function on a cell: its Taylor series at a ball, without rounding errors."""

    def __init__(self, series):
        self.series = series if isinstance(series, arb_series) else arb_series([arb(series)])

    def __add__(self, other):
        return Exact(self.series + lift(other).series)

    def __sub__(self, other):
        return Exact(self.series - lift(other).series)

    def __mul__(self, other):
        return Exact(self.series * lift(other).series)

    def __truediv__(self, other):
        return Exact(self.series / lift(other).series)

    def __rsub__(self, other):
        return lift(other) - self

    def sqrt(self):
        return Exact(self.series.sqrt())


def lift(value):
    return value if isinstance(value, Exact) else Exact(value)


def bound_on_cell(function, low, high):
    """An upper bound of |function| on [low, high] by Taylor's theorem with Lagrange's remainder."""
    middle, radius = (low + high) / 2, (high - low) / 2
    ctx.cap = ORDER
    near = function(Exact(arb_series([middle, 1]))).series
    over = function(Exact(arb_series([arb(middle, radius), 1]))).series
    powers = [radius**j for j in range(ORDER)]
    terms = [near[j].abs_upper() * powers[j] for j in range(ORDER - 1)]
    return (sum(terms, arb(0)) + over[ORDER - 1].abs_upper() * powers[-1]).abs_upper()


class Rounded:
    """A float64 result: computed = exact + Σ_i slope_i δ_i + rest, to first order in the roundings.

    Every rounding of size at most d_i is a symbol δ_i, so that one that enters a numerator and a
    denominator is not counted twice. `slopes` holds balls for slope_i d_i, `rest` bounds the terms
    of second order.
    """

    fresh = itertools.count()

    def __init__(self, exact, error=0):
        self.exact, self.rest = arb(exact), arb(0)
        self.slopes = {next(Rounded.fresh): arb(error).abs_upper()} if error else {}

    @property
    def error(self):
        return sum((slope.abs_upper() for slope in self.slopes.values()), self.rest).abs_upper()

    def _result(self, exact, slopes, rest):
        found = Rounded(exact)
        found.slopes, found.rest = slopes, rest.abs_upper()
        rounding = UNIT * (exact.abs_upper() + found.error)
        found.slopes[next(Rounded.fresh)] = rounding.abs_upper()
        return found

    def _combined(self, other, mine, theirs):
        """Slopes of mine · self + theirs · other."""
        zero = arb(0)
        return {
            key: mine * self.slopes.get(key, zero) + theirs * other.slopes.get(key, zero)
            for key in self.slopes.keys() | other.slopes.keys()
        }

    def __add__(self, other):
        other = track(other)
        slopes = self._combined(other, arb(1), arb(1))
        return self._result(self.exact + other.exact, slopes, self.rest + other.rest)

    def __sub__(self, other):
        other = track(other)
        slopes = self._combined(other, arb(1), arb(-1))
        return self._result(self.exact - other.exact, slopes, self.rest + other.rest)

    def __rsub__(self, other):
        return track(other) - self

    def __mul__(self, other):
        other = track(other)
        rest = self.exact.abs_upper() * other.rest + other.exact.abs_upper() * self.rest
        return self._result(
            self.exact * other.exact,
            self._combined(other, other.exact, self.exact),
            rest + self.error * other.error,
        )

    def __truediv__(self, other):
        """With errors a of the numerator and b of the denominator D, quotient Q:

        (a − Q b) / D − (a − Q b) b / (D (D + b)).
        """
        other = track(other)
        quotient, smallest = self.exact / other.exact, other.exact.abs_lower() - other.error
        assert smallest > 0
        size = quotient.abs_upper()
        rest = (self.rest + size * other.rest) / other.exact.abs_lower()
        second = (self.error + size * other.error) * other.error / smallest**2
        slopes = self._combined(other, 1 / other.exact, -quotient / other.exact)
        return self._result(quotient, slopes, rest + second)

    def sqrt(self):
        smallest = self.exact.abs_lower() - self.error
        assert smallest > 0
        root = self.exact.sqrt()
        slopes = {key: slope / (2 * root) for key, slope in self.slopes.items()}
        rest = self.rest / (2 * smallest.sqrt()) + self.error**2 / (8 * smallest ** arb(1.5))
        return self._result(root, slopes, rest)


def track(value):
    return value if isinstance(value, Rounded) else Rounded(value)


def cells(low, high, count):
    """A subdivision of [low, high] into balls with float ends, which are exact."""
    ends = np.linspace(low, high, count + 1)
    return [(arb(a), arb(b)) for a, b in itertools.pairwise(ends.tolist())]


def ball(low, high):
    return low.union(high)


def scaled(x):
    """Error of float64(scale · x) divided by the scale, for a computed x."""
    return (x.error + UNIT * (x.exact.abs_upper() + x.error)).abs_upper()


def certify_logarithm():
    """The largest error of the series of atanh, against the logarithm, in exact arithmetic."""

    def difference(f):
        exact = (Exact(arb_series([arb(1)])) + f).series.log()
        return rounded._minus_log(f, Exact(0)) + Exact(exact)

    low, high = math.sqrt(0.5) - 1 - 2.0**-50, math.sqrt(2) - 1 + 2.0**-50
    return max(bound_on_cell(difference, a, b) for a, b in cells(low, high, 64))


def logarithms(low, high, count, scale, truncation):
    """−log v on cells of [low, high], v = (word + 1/2) / scale, for every true v of the cell.

    The computed v is off by two roundings and by half a word. It is split exactly into (1 + f) 2^e,
    and its error δ shifts the logarithm by |log(1 + δ)| ≤ δ / (1 − δ). The computed v may lie in
    the next cell, so that a cell takes the largest error of its neighbours and its own.
    """
    found = []
    for a, b in binades(low, high, count):
        exponent = round(math.log2(float(ball(a, b).mid())))
        f = ball(a, b) * arb(2) ** -exponent - 1
        arithmetic = rounded._minus_log(Rounded(f), Rounded(exponent)).error
        constant = abs(exponent) * abs(arb(rounded.LOG_2) - arb(2).log())
        delta = (1 + UNIT) ** 2 - 1 + arb(0.5) / (a * scale)
        found.append((-ball(a, b).log(), arithmetic + constant + truncation + delta / (1 - delta)))
    for i, (value, _) in enumerate(found):
        neighbours = found[max(i - 1, 0) : i + 2]
        yield Rounded(value, max(error.abs_upper() for _, error in neighbours))


def binades(low, high, count):
    """Cells of [low, high], cut also where `_split` changes the exponent."""
    powers = np.arange(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    cuts = {low, high, *(x for x in (math.sqrt(0.5) * 2.0**powers).tolist() if low < x < high)}
    ends = sorted(cuts)
    return [cell for a, b in itertools.pairwise(ends) for cell in cells(a, b, count)]


def certify_laplace(truncation):
    """Error of −log V for all words from LAPLACE_FROM on."""
    scale = 2**rounded.BITS
    low = rounded.LAPLACE_FROM / scale
    return max(scaled(value) for value in logarithms(low, 1.0, 64, scale, truncation))


def certify_centre():
    """Error of the normal quantile in the central region, as a function of the quantile x."""

    def difference(x):
        q = Exact((x * ROOT_HALF).series.erf()) * arb(0.5)
        return rounded._centre(q) - x

    most = 0.5 - rounded.CENTRE_FROM * 2.0 ** -(rounded.BITS + 1) + 2.0**-50
    end = 1.4395315  # Φ(end) − 1/2 > 0.425, asserted below
    assert (arb(end) * ROOT_HALF).erf() / 2 > most
    approximation = max(bound_on_cell(difference, a, b) for a, b in cells(0.0, end, 256))
    arithmetic = arb(0)
    for low, high in cells(0.0, most, 512):
        # The conversion errs by two roundings, and 63 bits leave q open by ±2^-65.
        error = high * ((1 + UNIT) ** 2 - 1) + arb(2) ** -(rounded.BITS + 2)
        arithmetic = max(arithmetic, scaled(rounded._centre(Rounded(ball(low, high), error))))
    return approximation, arithmetic


def certify_tail(truncation):
    """Error of the normal quantile in the outer region, as a function of the quantile x."""

    def difference(x):
        p = Exact((x * ROOT_HALF).series.erfc()) * arb(0.5)
        return rounded._tail(Exact(-p.series.log())) - x

    least = rounded.NORMAL_TAIL_FROM * 2.0 ** -(rounded.BITS + 1)
    most = rounded.CENTRE_FROM * 2.0 ** -(rounded.BITS + 1)
    start, end = 1.4395, 4.2
    assert (arb(start) * ROOT_HALF).erfc() / 2 > most
    assert (arb(end) * ROOT_HALF).erfc() / 2 < least
    approximation = max(bound_on_cell(difference, a, b) for a, b in cells(start, end, 512))
    values = logarithms(least, most, 256, 2 ** (rounded.BITS + 1), truncation)
    return approximation, max(scaled(rounded._tail(value)) for value in values)


def report(name, bound, *errors):
    """Prints errors of the approximation, if it is apart, and of float64, in units of 2^-53."""
    total = sum(errors, arb(0)).abs_upper()
    parts = " + ".join(f"{float(error / UNIT):.3g}" for error in errors)
    print(f"{name}: {parts}, claimed {bound / 2.0**-53:g} (in units of 2^-53)")
    if not total < bound:
        raise SystemExit(f"the bound is exceeded: {name}")


def main():
    truncation = certify_logarithm()
    report("logarithm, truncated series", 2.0**-60, truncation)
    report("normal quantile, centre", rounded.CENTRE_ERROR, *certify_centre())
    report("normal quantile, tail", rounded.TAIL_ERROR, *certify_tail(truncation))
    report("Laplace quantile", rounded.LAPLACE_ERROR, certify_laplace(truncation))


if __name__ == "__main__":
    main()
