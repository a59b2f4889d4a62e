"""Errors that say which field, what was expected and what to do, and never a data value.

Errors and logs leave the building. A message is therefore made of names (blocks, attributes,
files, constraints) and of numbers the caller typed in a plan, never of values read from data.
"""

from __future__ import annotations


class StirredError(Exception):
    """Base of every error that stirred raises on purpose.

    It says in one sentence what is wrong (``problem``), in which field, block or option, what would have been
    accepted, and what to do next (``hint``).
    """

    code = "error"
    exit_code = 2

    def __init__(self, problem: str, *, field: str, expected: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.field = field
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.problem} [{self.field}: expected {self.expected}] {self.hint}"

    def as_dict(self) -> dict[str, str]:
        """The error as one flat object, for ``--json`` and for logs."""
        return {
            "code": self.code,
            "problem": self.problem,
            "field": self.field,
            "expected": self.expected,
            "hint": self.hint,
        }


class InputError(StirredError):
    """A wrong call or a bad input: exit code 2."""

    code = "bad-input"


class Refusal(StirredError):
    """A guarantee or a budget says no: exit code 3."""

    code = "refused"
    exit_code = 3


class MissingBlock(InputError):
    """A specification needs all five building blocks."""

    code = "missing-block"


class InvalidBudget(InputError):
    """A budget is a non-negative extended real, exactly given."""

    code = "invalid-budget"


class ParametrisationMissing(InputError):
    """A bare number is not a budget: the type says epsilon, rho or rho squared."""

    code = "parametrisation-missing"


class ParametrisationMismatch(InputError):
    """The budget's parametrisation does not belong to the output premetric."""

    code = "parametrisation-mismatch"


class DomainMismatch(InputError):
    """Two domains must be exactly the same set (Remark 2.4.7 of the thesis)."""

    code = "domain-mismatch"


class AccidentalMultiverse(Refusal):
    """A multiverse is given by a function of the data, never by its realised value."""

    code = "accidental-multiverse"


class UnknownName(InputError):
    """A name that nothing carries: a premetric, a catalogue entry, an attribute, a file."""

    code = "unknown-name"


class NewerSchema(InputError):
    """A file written by a later version of stirred."""

    code = "newer-schema"


class NotComputable(InputError):
    """The object is declared but cannot be evaluated here (infinite, symbolic, or too large)."""

    code = "not-computable"


class NotImplied(Refusal):
    """No theorem carries the guarantee that was asked for."""

    code = "not-implied"


class NonFreshSeeds(Refusal):
    """Composition with dependent seeds needs their joint law (Definition A.5.5)."""

    code = "non-fresh-seeds"


def not_a_specification(field: str) -> InputError:
    """The refusal of a number, or anything else, where a specification is needed."""
    return InputError(
        f"{field} is not a specification",
        field=field,
        expected="a Specification: five building blocks, not a number",
        hint="Use stirred.spec, or the guarantee() of a mechanism.",
    )
