"""Governance: what a budget does not measure. Five Safes, contextual integrity, law, precedents.

A guarantee bounds aspects of the data and the outputs. It is silent on how sensitive they are, and it does
not assess people, projects or settings (Remarks 8.4.2 and 8.4.3 of the thesis). The worksheet asks for the
rest; the tables of laws and precedents are descriptions from the literature, not advice and not endorsements.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from stirred.spec import Block, Exact

Level = Literal["unanswered", "none", "low", "medium", "high", "varies"]
Flow = Literal["data to researcher", "outputs to public"]
Safe = Literal["projects", "people", "settings", "data", "outputs"]
Regime = Literal["US", "EU", "UK", "AU", "CA"]

SAFES: dict[Safe, str] = {
    "projects": "Is the use of the data appropriate, ethical and lawful?",
    "people": "Who receives the data or outputs, and can they be trusted with them?",
    "settings": "How secure is the environment, physical or virtual, in which access takes place?",
    "data": "How much risk of disclosure is in the data themselves?",
    "outputs": "How much can be learnt about a unit from what is published?",
}

NORMS: dict[str, tuple[str, tuple[Safe, ...]]] = {
    "sender": ("the statistical agency or data custodian", ()),
    "recipient": ("people: researchers, or the general public", ("people",)),
    "subject": ("those whom the data are about: a component of data", ("data",)),
    "information_type": ("a component of data and of outputs", ("data", "outputs")),
    "transmission_principles": (
        "the terms on which information flows: projects, settings and more",
        ("projects", "settings"),
    ),
}

CAVEATS = (
    "Differential privacy is a quantitative standard for aspects of data and outputs only (Claim 2).",
    "It does not know what the data are about: records of an illness and of coffee orders are treated alike "
    "(Remark 8.4.2).",
    "It does not assess people, projects or settings (Remark 8.4.3).",
    "Budgets add up within one flavor only; methods without a formal guarantee do not compose at all.",
)


class Assessment(Block):
    """How safe one of the five is, on what evidence, and whether a guarantee or people judged it."""

    level: Level = "unanswered"
    evidence: str = ""
    assessed_by: Literal["people", "differential privacy"] = "people"

    @model_validator(mode="after")
    def _evidence(self) -> Self:
        if self.level != "unanswered" and not self.evidence.strip():
            raise ValueError("evidence for the level, in a sentence")
        return self


class FiveSafes(Block):
    """Projects, people, settings, data, outputs: together they determine the risk of a dissemination.

    ``differential privacy`` can be the judge of data and outputs only. Where outputs go to the public, nobody
    is vetted and nothing is supervised: projects, people and settings have level ``none``.
    """

    flow: Flow = "outputs to public"
    projects: Assessment = Assessment()
    people: Assessment = Assessment()
    settings: Assessment = Assessment()
    data: Assessment = Assessment()
    outputs: Assessment = Assessment()

    @model_validator(mode="after")
    def _rules(self) -> Self:
        for safe in ("projects", "people", "settings"):
            found = self.of(safe)
            if found.assessed_by == "differential privacy":
                raise ValueError(f"people as judge of {safe}: a guarantee does not assess it")
            if self.flow == "outputs to public" and found.level not in {"none", "unanswered"}:
                raise ValueError(f"level none for {safe}: whoever reads a public output is not vetted")
        return self

    def of(self, safe: Safe) -> Assessment:
        """One of the five."""
        found: Assessment = getattr(self, safe)
        return found

    def unanswered(self) -> tuple[Safe, ...]:
        """Those without a level."""
        return tuple(safe for safe in SAFES if self.of(safe).level == "unanswered")


class ContextualIntegrity(Block):
    """The five parameters of an information norm, and how the release departs from what people expect."""

    sender: str = ""
    recipient: str = ""
    subject: str = ""
    information_type: str = ""
    transmission_principles: tuple[str, ...] = ()
    disruptions: tuple[str, ...] = ()

    def unanswered(self) -> tuple[str, ...]:
        """Parameters that are blank."""
        return tuple(name for name in NORMS if not _said(getattr(self, name)))


class Governance(Block):
    """The governance page of a plan: five safes, contextual integrity and the legal regime.

    Examples
    --------
    >>> Governance(regime="UK").unanswered()[:2]
    ('five_safes.projects', 'five_safes.people')
    """

    regime: Regime | None = None
    legal_basis: str = ""
    five_safes: FiveSafes = FiveSafes()
    contextual_integrity: ContextualIntegrity = ContextualIntegrity()

    def unanswered(self) -> tuple[str, ...]:
        """Names of the fields that are still open."""
        names = [f"five_safes.{safe}" for safe in self.five_safes.unanswered()]
        names += [f"contextual_integrity.{name}" for name in self.contextual_integrity.unanswered()]
        return (*names, *(() if self.regime else ("regime",)))


class LegalRegime(Block):
    """What the confidentiality law of a jurisdiction asks of its statistical office."""

    code: Regime
    jurisdiction: str
    instruments: tuple[str, ...]
    test: str
    means: str
    must_infer: bool | None
    exceptions: str


LEGAL_SOURCE = "Bailie, Privacy, Data Privacy, and Differential Privacy (thesis), section 1.1.1"
LEGAL_NOTE = f"Descriptive, from {LEGAL_SOURCE}; not legal advice, and not checked against later amendments."

LEGAL_REGIMES: tuple[LegalRegime, ...] = (
    LegalRegime(
        code="US",
        jurisdiction="United States of America",
        instruments=(
            "13 U.S.C. § 9 (Census Bureau)",
            "Confidential Information Protection and Statistical Efficiency Act of 2002 (other agencies)",
            "44 U.S.C. § 2104 (census records open after 72 years)",
        ),
        test="no publication whereby the data furnished by a particular establishment or individual can be "
        "identified; statistical use only",
        means="unqualified: by any means",
        must_infer=False,
        exceptions="none for outside researchers; Title 13 also requires that some statistics are exact",
    ),
    LegalRegime(
        code="EU",
        jurisdiction="European Union",
        instruments=(
            "Regulation (EC) No 223/2009, chapter V",
            "General Data Protection Regulation, Article 4(1) and Recital 26",
            "national statistics acts",
        ),
        test="data that allow statistical units to be identified, directly or indirectly, thereby disclosing "
        "individual information, are confidential",
        means="relevant means that might reasonably be used by a third party",
        must_infer=True,
        exceptions="researchers for scientific purposes; consent; approval of the European Parliament",
    ),
    LegalRegime(
        code="UK",
        jurisdiction="United Kingdom",
        instruments=(
            "Statistics and Registration Service Act 2007, section 39",
            "Data Protection Act 2018",
        ),
        test="information that relates to a person whose identity can be deduced from it, taken together "
        "with other published information, must not be disclosed",
        means="together with any other published information",
        must_infer=True,
        exceptions="approved researchers; court order; consent; already lawfully public; it is a defence to "
        "have reasonably believed that the information was not identifiable",
    ),
    LegalRegime(
        code="AU",
        jurisdiction="Australia",
        instruments=(
            "Census and Statistics Act 1905, subsection 12(2)",
            "Census and Statistics Determination 2018",
            "Australian Bureau of Statistics Act 1975",
            "Privacy Act 1988",
        ),
        test="not to be published in a manner that is likely to enable the identification of a particular "
        "person or organization",
        means="likely to enable",
        must_infer=False,
        exceptions="for information that is not personal or domestic: passive confidentiality of certain "
        "statistics, consent, already public, researchers for statistical purposes (section 15)",
    ),
    LegalRegime(
        code="CA",
        jurisdiction="Canada",
        instruments=("Statistics Act", "Statistics Canada policy on microdata release"),
        test="not to be disclosed in such a manner that it is possible to relate the particulars of an "
        "individual return to an identifiable individual person, business or organization",
        means="possible",
        must_infer=None,
        exceptions="public use microdata where they add analytical value and all reasonable steps were taken "
        "to prevent identification",
    ),
)


class Precedent(Block):
    """A published budget of another release: a number for orientation, reviewed by nobody here.

    ``rho_squared`` is what the literature publishes as rho. Numbers of different flavors, units or invariants
    are not comparable.
    """

    name: str
    source: str
    epsilon: Exact | None = None
    delta: Exact | None = None
    rho_squared: Exact | None = None
    unit: str = ""
    note: str = ""
    reviewed: Literal[False] = False

    @property
    def label(self) -> str:
        """The label that stands beside the number wherever it is shown."""
        return f"unreviewed; as given by {self.source}"

    def numbers(self) -> str:
        """The published parameters in words."""
        pairs = (("ε", self.epsilon), ("δ", self.delta), ("ρ²", self.rho_squared))
        return ", ".join(f"{letter} = {_decimal(value)}" for letter, value in pairs if value is not None)


_REGISTRY = "the OpenDP deployments registry (July 2026; no record there is approved)"
_BOOK = "Hands-On Differential Privacy"


def _census(name: str, rho_squared: str, unit: str = "", note: str = "") -> Precedent:
    return Precedent(
        name=f"US Census Bureau, {name}",
        source=_REGISTRY,
        rho_squared=Exact.of(rho_squared),
        unit=unit,
        note=note,
    )


PRECEDENTS: tuple[Precedent, ...] = (
    Precedent(
        name="LinkedIn, hiring reports",
        source=f"{_BOOK}, table 13-1",
        epsilon=Exact.of("4.8"),
        delta=Exact.of("4e-10"),
        unit="hire",
        note="four reports of 1.2 each; at least 95% are hired at most once by one employer in three months",
    ),
    Precedent(
        name="Microsoft, broadband usage in the USA",
        source=f"{_BOOK}, table 13-2",
        epsilon=Exact.of("0.2"),
        delta=Exact.of(0),
        unit="individual device",
        note="the registry gives the unit as user",
    ),
    Precedent(
        name="Uber, SQL queries",
        source=_REGISTRY,
        epsilon=Exact.of("0.01"),
        note="the smallest epsilon in the registry",
    ),
    Precedent(
        name="LinkedIn, audience engagement",
        source=_REGISTRY,
        epsilon=Exact.of("34.9"),
        note="the largest epsilon in the registry",
    ),
    _census(
        "2020 redistricting data (P.L. 94-171)",
        "2.63",
        "person and housing unit",
        "persons 2.56, published as ε = 17.14 at δ = 1e-10; housing units 0.07, published as ε = 2.47",
    ),
    _census("2020 Demographic and Housing Characteristics", "15.29", "person and housing unit"),
    _census("2020 Detailed DHC-A", "19.776"),
    _census("2020 Detailed DHC-B", "17.79"),
    _census("2020 Supplemental DHC", "2.515"),
    _census("County Business Patterns", "12.058"),
)


def _said(value: str | tuple[str, ...]) -> bool:
    return bool("".join(value).strip())


def _decimal(value: Exact) -> str:
    """Every published number is a short decimal: shown as it was published."""
    whole = value.rational
    assert whole is not None
    return f"{float(whole):g}"
