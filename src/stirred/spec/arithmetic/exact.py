"""Exact reals: rationals, logarithms and square roots of rationals, and plus infinity.

Budgets are exact (the Permutation Swapping Algorithm has e^epsilon = (b+1)(1-p)/p, zCDP has rho
squared), and they are added, scaled, compared and stored without a float. Every number here is

    a + k_1 ln(n_1) + ... + k_l ln(n_l) + c_1 sqrt(s_1) + ... + c_m sqrt(s_m)      or      +infinity

with a, k_i, c_i rational, n_i pairwise coprime integers above one, and s_i distinct squarefree integers
above one. Equality is decidable: square roots of distinct squarefree integers are linearly independent
over the rationals (Besicovitch), a non-trivial rational combination of logarithms of pairwise coprime
integers is not zero (unique factorisation) and not algebraic (Lindemann). So a number is zero exactly when
all its parts are, and two unequal numbers are told apart by enough decimal digits.
"""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache, total_ordering
from typing import Any

from stirred.errors import InputError, NotComputable

_DIGITS = (40, 120, 400, 1600, 6400)
_LARGEST_POWER = 200_000
_LARGEST_ROOT = 2_048
# Bounds of what is read: beyond them a number is a mistake or an attack, and takes hours to compute with.
# A tighter loss of swapping has up to 1,800 digits, and the interpreter writes no more than 4,300.
MOST_DIGITS = 4_000
MOST_EXPONENT = 1_000
MOST_TERMS = 1_000
_MOST_ROOTS = 20
_LONGEST_ROOT = 1_000
_LONGEST = 100_000
_LARGEST = 10**MOST_DIGITS
_EXPONENT = re.compile(r"[eE]([-+]?[0-9_]+)$")
_NUMBER = r"\d+(?:\.\d+)?(?:/\d+)?"
_TERM = re.compile(
    rf"(?:(?P<coefficient>-?{_NUMBER})\*)?(?P<function>ln|sqrt)\((?P<argument>{_NUMBER})\)(?:/(?P<divisor>\d+))?"
)

Logs = tuple[tuple[int, Fraction], ...]
Surds = tuple[tuple[int, Fraction], ...]


@total_ordering
class Exact:
    """An exact real number or plus infinity.

    Examples
    --------
    >>> Exact.of("0.1") * 10 == Exact.of(1)
    True
    >>> (Exact.log(3) + Exact.log("1/3")) == Exact.of(0)
    True
    >>> Exact.sqrt("15.29") < Exact.log(50)
    True
    """

    __slots__ = ("_infinite", "_logs", "_rational", "_surds")

    _rational: Fraction
    _logs: Logs
    _surds: Surds
    _infinite: bool

    def __init__(
        self,
        rational: Fraction = Fraction(0),
        logs: Iterable[tuple[int, Fraction]] = (),
        surds: Iterable[tuple[int, Fraction]] = (),
        *,
        infinite: bool = False,
    ) -> None:
        object.__setattr__(self, "_rational", Fraction(0) if infinite else rational)
        object.__setattr__(self, "_logs", () if infinite or logs == () else _coprime(logs))
        object.__setattr__(self, "_surds", () if infinite or surds == () else _collected(surds))
        object.__setattr__(self, "_infinite", infinite)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("exact numbers do not change")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._rational, self._logs, self._surds, self._infinite))

    @classmethod
    def of(cls, value: object) -> Exact:
        """Read a number as it is written: ``0.1`` means one tenth, whether text, float or decimal.

        Booleans, NaN and anything that is not a number are refused.
        """
        if isinstance(value, Exact):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, float) and math.isinf(value) and value > 0:
            return INFINITY
        return cls(as_fraction(value))

    @classmethod
    def computed(cls, value: float) -> Exact:
        """The binary value of a float that a numerical routine returned, not its decimal reading."""
        if math.isnan(value) or value == -math.inf:
            raise NotComputable(
                "a numerical routine returned no number",
                field="value",
                expected="a real number or plus infinity",
                hint="This is a defect: please report the specification that led here.",
            )
        return INFINITY if math.isinf(value) else cls(Fraction(value))

    @classmethod
    def log(cls, value: object, divisor: int = 1) -> Exact:
        """Natural logarithm of a positive rational, divided by a positive integer."""
        argument = as_fraction(value)
        if argument <= 0 or divisor < 1:
            raise InputError(
                "the logarithm needs a positive rational",
                field="log",
                expected="a rational above zero and a divisor of at least one",
                hint="Write for example ln(3/2) or ln(11)/2.",
            )
        share = Fraction(1, divisor)
        return cls(logs=[(argument.numerator, share), (argument.denominator, -share)])

    @classmethod
    def sqrt(cls, value: object) -> Exact:
        """Square root of a non-negative rational."""
        radicand = as_fraction(value)
        if radicand < 0:
            raise InputError(
                "the square root needs a non-negative rational",
                field="sqrt",
                expected="a rational of at least zero",
                hint="Write for example sqrt(2).",
            )
        outer, inner = _squarefree(radicand.numerator * radicand.denominator)
        coefficient = Fraction(outer, radicand.denominator)
        return cls(coefficient) if inner == 1 else cls(surds=[(inner, coefficient)])

    @classmethod
    def parse(cls, text: str) -> Exact:
        """Read the text that ``str`` writes; plain decimals are read exactly."""
        if text.strip() in {"inf", "∞"}:
            return INFINITY
        parts = re.split(r"(?<![eE])\+", text) if len(text) <= _LONGEST else []
        roots = [len(part) for part in parts if "sqrt" in part]
        if (
            not 1 <= len(parts) <= MOST_TERMS
            or len(roots) > _MOST_ROOTS
            or max(roots, default=0) > _LONGEST_ROOT
        ):
            raise _too_large()
        terms = [cls._parse_term(part.strip()) for part in parts]
        return cls(
            sum((term._rational for term in terms), Fraction(0)),
            [log for term in terms for log in term._logs],
            [surd for term in terms for surd in term._surds],
        )

    @classmethod
    def _parse_term(cls, part: str) -> Exact:
        match = _TERM.fullmatch(part)
        if match is None:
            return cls(as_fraction(part))
        coefficient = as_fraction(match["coefficient"] or 1)
        divisor = as_fraction(match["divisor"] or 1)
        if divisor == 0:
            raise _not_a_number()
        if match["function"] == "ln":
            return cls.log(match["argument"]) * (coefficient / divisor)
        return cls.sqrt(match["argument"]) * (coefficient / divisor)

    @property
    def is_infinite(self) -> bool:
        """Whether the number is plus infinity."""
        return self._infinite

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero."""
        return not (self._infinite or self._rational or self._logs or self._surds)

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, where it is one."""
        return None if self._infinite or self._surds or self._logs else self._rational

    @property
    def exponential(self) -> Fraction | None:
        """e to this number as a fraction, where that is one of moderate size."""
        if self._infinite or self._surds or self._rational != 0:
            return None
        bits = sum(abs(k) * n.bit_length() for n, k in self._logs)
        if any(k.denominator != 1 for _, k in self._logs) or bits > _LARGEST_POWER:
            return None
        value = Fraction(1)
        for base, power in self._logs:
            value *= Fraction(base) ** power.numerator
        return value

    @property
    def square(self) -> Fraction | None:
        """The square of this number as a fraction, where that is one."""
        whole = self.rational
        if whole is not None:
            return whole**2
        if self._infinite or self._rational != 0 or self._logs or len(self._surds) != 1:
            return None
        radicand, coefficient = self._surds[0]
        return coefficient**2 * radicand

    def __add__(self, other: Exact) -> Exact:
        if self._infinite or other._infinite:
            return INFINITY
        return Exact(self._rational + other._rational, self._logs + other._logs, self._surds + other._surds)

    def __mul__(self, factor: int | Fraction) -> Exact:
        scale = Fraction(factor)
        if self._infinite:
            if scale <= 0:
                raise ArithmeticError("infinity times zero is decided in stirred.spec.arithmetic.extended")
            return INFINITY
        return Exact(
            self._rational * scale,
            [(n, k * scale) for n, k in self._logs],
            [(s, c * scale) for s, c in self._surds],
        )

    __rmul__ = __mul__

    def __truediv__(self, divisor: int | Fraction) -> Exact:
        return self * (1 / Fraction(divisor))

    def __neg__(self) -> Exact:
        return self * -1

    def __sub__(self, other: Exact) -> Exact:
        if other._infinite:
            raise ArithmeticError("infinity is not subtracted")
        return self + (-other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Exact):
            return NotImplemented
        if self._infinite or other._infinite:
            return self._infinite == other._infinite
        if self._rational != other._rational or self._surds != other._surds:
            return False
        return self._logs == other._logs or not (self - other)._logs

    def __hash__(self) -> int:
        """Equal numbers may factor their logarithms differently, so these do not enter."""
        return hash((self._infinite, self._rational, self._surds))

    def __lt__(self, other: Exact) -> bool:
        if not isinstance(other, Exact):
            return NotImplemented
        if self._infinite or other._infinite:
            return other._infinite and not self._infinite
        if not (self._logs or self._surds or other._logs or other._surds):
            return self._rational < other._rational
        return (self - other)._is_negative()

    def _is_negative(self) -> bool:
        whole = self.rational
        return whole < 0 if whole is not None else self._resolved(0)[0] < 0

    def _resolved(self, digits: int) -> tuple[Decimal, Decimal]:
        """An irrational value to so many significant digits, and a bound on its error."""
        for precision in _DIGITS:
            value, error = self._decimal(precision)
            if abs(value) > error.scaleb(digits):
                return value, error
        raise NotComputable(
            "two exact numbers could not be told apart",
            field="budget",
            expected=f"numbers that differ within {_DIGITS[-1]} digits",
            hint="Give square roots of numbers with small factors, or round one of them.",
        )

    def _decimal(self, digits: int) -> tuple[Decimal, Decimal]:
        """The value and a bound on its error, in decimal arithmetic of the given precision."""
        with localcontext() as context:
            context.prec = digits + 10
            terms = [_quotient(self._rational)]
            terms += [_quotient(k) * Decimal(n).ln() for n, k in self._logs]
            terms += [_quotient(c) * Decimal(s).sqrt() for s, c in self._surds]
            size = sum((abs(term) for term in terms), Decimal(1))
            return sum(terms, Decimal(0)), size.scaleb(-digits)

    def __float__(self) -> float:
        """The nearest float; use ``float_up`` for a budget that is shown or enforced."""
        if self._infinite:
            return math.inf
        whole = self.rational
        try:
            return float(self._resolved(20)[0]) if whole is None else float(whole)
        except OverflowError:
            return math.inf if (whole or 0) > 0 else -math.inf

    def float_up(self) -> float:
        """The least float that is not below the number: rounding goes against the user."""
        near = float(self)
        if near == math.inf:
            return near
        if near == -math.inf:
            return math.nextafter(near, 0)
        return near if self <= Exact(Fraction(near)) else math.nextafter(near, math.inf)

    def rounded(self, places: int, *, up: bool = False, down: bool = False) -> str:
        """Decimal text with so many places: to the nearest, or up, or down; always correctly."""
        if self._infinite:
            return "∞"
        ticks = self._ticks(places, up, down)
        sign, digits = "-" if ticks < 0 else "", str(abs(ticks)).rjust(places + 1, "0")
        return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)

    def _ticks(self, places: int, up: bool, down: bool) -> int:
        """The number of units of ten to the minus places, rounded as asked."""

        def rounding(value: Fraction) -> int:
            return math.ceil(value) if up else math.floor(value) if down else round(value)

        unit = 10**places
        whole = self.rational
        if whole is not None:
            return rounding(whole * unit)
        for precision in _DIGITS:
            value, error = (Fraction(part) for part in self._decimal(precision + places))
            low, high = rounding((value - error) * unit), rounding((value + error) * unit)
            if low == high:
                return low
        raise NotComputable(
            "a number is too close to a decimal to be rounded",
            field="budget",
            expected=f"a number that differs from its rounding within {_DIGITS[-1]} digits",
            hint="Give the number as a rational.",
        )

    def rounded_up(self, places: int = 30) -> Fraction:
        """A rational that is not below the number and within ten to the minus places of it."""
        if self._infinite:
            raise ArithmeticError("infinity is not a rational")
        whole = self.rational
        return whole if whole is not None else Fraction(self._ticks(places, True, False), 10**places)

    def __str__(self) -> str:
        if self._infinite:
            return "inf"
        parts = [] if self._rational == 0 else [str(self._rational)]
        parts += [_written("ln", value, k) for k, value in _grouped(self._logs)]
        parts += [_written("sqrt", Fraction(s), c) for s, c in self._surds]
        return " + ".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Exact('{self}')"

    @classmethod
    def _read_field(cls, value: object) -> Exact:
        try:
            return cls.of(value)
        except InputError as error:
            raise ValueError(error.expected) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._read_field,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "string",
            "description": "an exact number: 1529/100, 0.05, ln(3/2), ln(11)/2, sqrt(2), inf, or a sum",
        }


def as_fraction(value: object) -> Fraction:
    """Read an int, fraction, decimal, float or text exactly as written; refuse all else.

    Text with too many digits or too large an exponent is refused: it would be computed with for hours.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise _not_a_number()
    if isinstance(value, numbers.Integral):
        if abs(int(value)) >= _LARGEST:
            raise _too_large()
        return Fraction(int(value))
    if isinstance(value, float | Decimal | str):
        return _fraction(str(value).strip())
    raise _not_a_number()


def _fraction(text: str) -> Fraction:
    if not text.isascii():
        raise _not_a_number()
    exponent = _EXPONENT.search(text)
    digits = max(map(len, text.split("/")))
    if digits > MOST_DIGITS or (exponent and not _moderate(exponent[1])):
        raise _too_large()
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise _not_a_number() from None


def _moderate(exponent: str) -> bool:
    digits = exponent.replace("_", "").lstrip("+-0")
    return len(digits) <= len(str(MOST_EXPONENT)) and int(digits or "0") <= MOST_EXPONENT


def _too_large() -> InputError:
    return InputError(
        "a number has too many digits",
        field="number",
        expected=f"at most {MOST_DIGITS:,} digits, an exponent of at most {MOST_EXPONENT:,} (or minus that), "
        f"{MOST_TERMS:,} terms and {_MOST_ROOTS} square roots",
        hint="Round the number; write infinity as inf.",
    )


def _not_a_number() -> InputError:
    return InputError(
        "this is not an exact number",
        field="number",
        expected="an integer, a fraction such as 1529/100, or a decimal such as 15.29 (not NaN)",
        hint="Write logarithms as ln(3/2), square roots as sqrt(2), infinity as inf.",
    )


def _restored(rational: Fraction, logs: Logs, surds: Surds, infinite: bool) -> Exact:
    return Exact(rational, logs, surds, infinite=infinite)


def _quotient(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _coprime(logs: Iterable[tuple[int, Fraction]]) -> Logs:
    """Refine the arguments of logarithms until they are pairwise coprime; drop what cancels."""
    bases: dict[int, Fraction] = {}
    waiting = list(logs)
    while waiting:
        number, power = waiting.pop()
        if number == 1 or power == 0:
            continue
        number, degree = _without_powers(number)
        power *= degree
        if number in bases:
            total = bases.pop(number) + power
            if total:
                bases[number] = total
            continue
        for base in bases:
            common = math.gcd(base, number)
            if common > 1:
                held = bases.pop(base)
                waiting += [(common, held + power), (base // common, held), (number // common, power)]
                break
        else:
            bases[number] = power
    return tuple(sorted(bases.items()))


@lru_cache(maxsize=4096)
def _without_powers(number: int) -> tuple[int, int]:
    """Write a number as a power with the largest exponent that small primes build."""
    degree = 1
    if number.bit_length() > _LARGEST_ROOT:
        return number, degree
    for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31):
        while number > 1 and number.bit_length() > prime:
            root = _integer_root(number, prime)
            if root is None:
                break
            number, degree = root, degree * prime
    return number, degree


def _integer_root(value: int, degree: int) -> int | None:
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


def _grouped(logs: Logs) -> list[tuple[Fraction, Fraction]]:
    """Logarithms with the same coefficient up to sign, as logarithms of quotients that can be read again."""
    groups: dict[Fraction, list[Fraction]] = {}
    for number, power in logs:
        quotients = groups.setdefault(abs(power), [Fraction(1)])
        product = quotients[-1] * Fraction(number) ** (1 if power > 0 else -1)
        if max(product.numerator, product.denominator) < _LARGEST or quotients[-1] == 1:
            quotients[-1] = product
        else:
            quotients.append(Fraction(number) ** (1 if power > 0 else -1))
    return sorted((power, quotient) for power, quotients in groups.items() for quotient in quotients)


def _written(function: str, argument: Fraction, coefficient: Fraction) -> str:
    text = f"{function}({argument})"
    if coefficient.numerator != 1:
        return f"{coefficient}*{text}"
    return text if coefficient.denominator == 1 else f"{text}/{coefficient.denominator}"


def _collected(surds: Iterable[tuple[int, Fraction]]) -> Surds:
    totals: dict[int, Fraction] = {}
    for radicand, coefficient in surds:
        totals[radicand] = totals.get(radicand, Fraction(0)) + coefficient
    return tuple(sorted((s, c) for s, c in totals.items() if c != 0))


@lru_cache(maxsize=4096)
def _squarefree(value: int) -> tuple[int, int]:
    """Write value = outer^2 * inner with inner free of squares of primes up to a million."""
    if value == 0:
        return 0, 1
    outer, inner = 1, 1
    for prime in _primes():
        if prime**3 > value:
            break
        while value % prime**2 == 0:
            outer, value = outer * prime, value // prime**2
        if value % prime == 0:
            inner, value = inner * prime, value // prime
    root = math.isqrt(value)
    return (outer * root, inner) if root * root == value else (outer, inner * value)


@cache
def _primes() -> tuple[int, ...]:
    """The primes up to a million."""
    sieve = bytearray([1]) * (10**6 + 1)
    sieve[0:2] = b"\0\0"
    for number in range(2, 1001):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, len(sieve), number)))
    return tuple(itertools.compress(range(len(sieve)), sieve))


ZERO = Exact()
INFINITY = Exact(infinite=True)
