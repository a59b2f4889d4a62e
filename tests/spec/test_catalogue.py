"""The catalogue: every entry builds what its status promises, and user files are read with care."""

import json
import re
from fractions import Fraction

import pytest

from stirred.errors import (
    AccidentalMultiverse,
    InputError,
    MissingBlock,
    NewerSchema,
    NotComputable,
    ParametrisationMismatch,
    UnknownName,
)
from stirred.spec import BLOCKS, Budget, Distribution, Entry, Specification, catalogue
from stirred.spec.blocks.input_premetric import neighbours_of
from stirred.spec.literature.entry import read_entries

EVERYTHING = list(catalogue)
LITERATURE = [e for e in EVERYTHING if e.status != "specification"]
BUILT = [e for e in LITERATURE if e.status in {"flavor", "family"}]
ACCIDENTAL = [e for e in LITERATURE if e.status == "accidental"]
NO_FLAVOR = [e for e in LITERATURE if e.status == "not a flavor"]


def each(entries):
    return pytest.mark.parametrize("entry", entries, ids=lambda e: e.id)


def budgets(entry):
    """One budget for every way in which the entry's output premetric is measured."""
    for parametrisation in entry.flavor().output_premetric.parametrisations:
        if parametrisation == "tradeoff":
            curve = (("0", "1"), ("1/4", "1/4"), ("1", "0"))
            yield Budget.read({"parametrisation": parametrisation, "curve": curve})
        else:
            amounts = ("ln(3)" if parametrisation == "epsilon" else "15.29",)
            yield Budget.read({"parametrisation": parametrisation, "amounts": amounts})


def user_file(path, *entries, **fields):
    body = {"schema_version": 1, "type": "catalogue", "entries": list(entries), **fields}
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def own_entry(**fields):
    """A user's own entry: pure DP under another name."""
    return {**catalogue["pure-dp"].record(), "id": "our-own", "name": "Our own", **fields}


class TestContents:
    def test_holds_at_least_forty_definitions_of_the_literature(self):
        assert len(LITERATURE) >= 40

    def test_ids_are_unique_and_in_kebab_case(self):
        ids = [e.id for e in EVERYTHING]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids)

    def test_every_status_of_the_literature_occurs(self):
        assert BUILT and ACCIDENTAL and NO_FLAVOR

    @each(EVERYTHING)
    def test_cites_a_year_and_says_what_changed(self, entry):
        assert re.search(r"\b(19|20)\d\d\b", entry.citation)
        assert entry.name and entry.changed.endswith(".")

    @each(EVERYTHING)
    def test_names_blocks_by_their_names(self, entry):
        assert set(entry.blocks_changed) <= set(BLOCKS)
        assert set(entry.free) <= set(BLOCKS)
        assert len(set(entry.blocks_changed)) == len(entry.blocks_changed)

    @each(LITERATURE)
    def test_speaks_of_protection_loss(self, entry):
        without_titles = {k: v for k, v in entry.record().items() if k != "citation"}
        assert "privacy loss" not in json.dumps(without_titles).lower()

    @each(LITERATURE)
    def test_has_no_amount_of_its_own(self, entry):
        assert entry.budget is None

    @each([e for e in LITERATURE if e.status == "family"])
    def test_family_says_which_blocks_are_free(self, entry):
        assert entry.free

    @each([e for e in LITERATURE if e.status == "flavor"])
    def test_flavor_leaves_nothing_free(self, entry):
        assert not entry.free

    @each(EVERYTHING)
    def test_entry_round_trips(self, entry):
        assert Entry.read(json.loads(json.dumps(entry.record()))) == entry


class TestBuilding:
    @each(BUILT)
    def test_specification_round_trips_exactly(self, entry):
        for budget in budgets(entry):
            built = entry.specification(budget)
            text = built.to_json()
            again = Specification.from_json(text)
            assert again == built
            assert again.to_json() == text
            assert again.flavor == entry.flavor()

    @each(BUILT)
    def test_prints_in_unicode_and_latex(self, entry):
        flavor = entry.flavor()
        assert str(flavor).count("(") == str(flavor).count(")")
        assert flavor.latex.count("{") == flavor.latex.count("}")
        assert all(len(block.sentence()) > 10 for block in dict(flavor).values() if block != flavor.domain)
        assert flavor.domain.meaning

    @each(BUILT)
    def test_blocks_changed_is_what_differs_from_pure_dp(self, entry):
        """A block differs from pure DP exactly if it is listed, unless it is free.

        The neighbour premetric of the Hamming distance counts as unchanged: it is the same protection unit.
        """
        pure, flavor = catalogue.flavor("pure-dp"), entry.flavor()
        for name in BLOCKS[:4]:
            block, start = getattr(flavor, name), getattr(pure, name)
            same = block == start or (name == "input_premetric" and block == neighbours_of(start))
            if name in entry.blocks_changed:
                assert not same, name
            elif name not in entry.free:
                assert same, name

    @each(BUILT)
    def test_only_neighbours_where_the_budget_does_not_scale_with_distance(self, entry):
        flavor = entry.flavor()
        assert (
            flavor.output_premetric.properties.linear_group or flavor.input_premetric.flags.neighbour_valued
        )

    @each(BUILT)
    def test_neighbour_valued_premetrics_do_not_claim_the_triangle_inequality(self, entry):
        flags = entry.flavor().input_premetric.flags
        assert not (flags.neighbour_valued and flags.triangle)

    @each(ACCIDENTAL)
    def test_accidental_multiverse_is_refused(self, entry):
        assert entry.multiverse["accidental"] is True
        with pytest.raises(AccidentalMultiverse):
            entry.flavor()
        with pytest.raises(AccidentalMultiverse):
            entry.specification(Budget.epsilon(1))

    @each(ACCIDENTAL)
    def test_accidental_multiverse_is_refused_under_any_status(self, entry):
        disguised = entry.model_copy(update={"status": "flavor"})
        with pytest.raises(AccidentalMultiverse):
            disguised.flavor()

    @each(NO_FLAVOR)
    def test_what_is_not_a_flavor_is_refused_with_the_reason(self, entry):
        with pytest.raises(NotComputable) as refusal:
            entry.flavor()
        assert refusal.value.hint == entry.changed

    def test_flavor_without_budget_asks_for_one(self):
        with pytest.raises(MissingBlock) as refusal:
            catalogue.specification("pure-dp")
        assert refusal.value.field == "budget"

    def test_budget_of_another_currency_is_refused(self):
        with pytest.raises(ParametrisationMismatch):
            catalogue.specification("pure-dp", Budget.zcdp(rho_squared="2.63"))

    def test_assumptions_are_handed_on(self):
        built = catalogue.specification("pufferfish", Budget.epsilon(1))
        assert built.assumptions == catalogue["pufferfish"].assumptions != ()
        assert built.standing == "published"


class TestParticularEntries:
    @pytest.mark.parametrize("name", ["generic-dp", "one-sided-dp", "asymmetric-dp"])
    def test_asymmetric_relations_are_flagged(self, name):
        assert not catalogue.flavor(name).input_premetric.flags.symmetric

    @pytest.mark.parametrize("name", ["one-sided-dp", "asymmetric-dp"])
    def test_one_direction_is_measured_in_one_direction(self, name):
        p = Distribution({0: Fraction(1, 2), 1: Fraction(1, 2)})
        q = Distribution({0: Fraction(3, 4), 1: Fraction(1, 4)})
        measure = catalogue.flavor(name).output_premetric
        assert measure.between(p, q) != measure.between(q, p)

    @pytest.mark.parametrize("name", ["d-privacy", "geo-indistinguishability", "pufferfish"])
    def test_metrics_are_metrics(self, name):
        flags = catalogue.flavor(name).input_premetric.flags
        assert flags.symmetric and flags.positive and flags.triangle and not flags.neighbour_valued

    def test_approximate_dp_has_delta_in_the_output_premetric(self):
        found = catalogue.flavor("approximate-dp")
        assert found.output_premetric.delta.rational is not None
        assert found.input_premetric.flags.neighbour_valued

    def test_bounded_dp_declares_its_invariant(self):
        multiverse = catalogue.flavor("bounded-dp").multiverse
        assert [i.sentence() for i in multiverse.invariants] == ["the number of records in total"]

    def test_local_dp_changes_only_where_the_data_stand(self):
        assert catalogue["local-dp"].blocks_changed == ("domain",)
        assert catalogue.flavor("local-dp").domain.stage == "raw responses"

    def test_surveys_start_at_four_stages(self):
        stages = {e.flavor().domain.stage for e in catalogue.search("Drechsler 2024 survey-")}
        assert stages == {"pseudo-population", "frame", "target sample", "responding sample"}


class TestLookup:
    def test_search_by_word_finds_every_word_in_any_case(self):
        found = catalogue.search("RÉNYI mironov")
        assert "renyi-dp" in {e.id for e in found}
        assert all("mironov" in json.dumps(e.record(), ensure_ascii=False).lower() for e in found)

    def test_search_by_block_finds_what_changed_it(self):
        found = catalogue.search(block="multiverse")
        assert {e.id for e in found} == {e.id for e in EVERYTHING if "multiverse" in e.blocks_changed}
        assert 0 < len(found) < len(EVERYTHING)

    def test_search_by_both_narrows(self):
        found = catalogue.search("Ashmead", block="output_premetric")
        assert "per-attribute-dp" in {e.id for e in found}
        assert "dp-under-invariants" not in {e.id for e in found}

    def test_search_without_hits_is_an_empty_catalogue(self):
        assert len(catalogue.search("no such word anywhere")) == 0

    def test_unknown_name_suggests_a_near_one(self):
        with pytest.raises(UnknownName) as refusal:
            catalogue["pure-dpp"]
        assert "pure-dp" in refusal.value.hint

    def test_unknown_name_far_from_all_suggests_a_search(self):
        with pytest.raises(UnknownName) as refusal:
            catalogue.flavor("qqqqqqqq")
        assert "earch" in refusal.value.hint

    def test_becomes_a_frame_with_a_row_for_every_entry(self):
        frame = catalogue.to_polars()
        assert frame["id"].to_list() == [e.id for e in EVERYTHING]


class TestUserEntries:
    def test_are_added_and_labelled(self, tmp_path):
        extended = catalogue.extended(user_file(tmp_path / "own.json", own_entry()))
        assert len(extended) == len(EVERYTHING) + 1
        assert extended["our-own"].provenance == "user"
        assert extended["our-own"].flavor() == catalogue.flavor("pure-dp")
        assert extended["pure-dp"].provenance == "stated"

    def test_leave_the_shipped_catalogue_alone(self, tmp_path):
        catalogue.extended(user_file(tmp_path / "own.json", own_entry()))
        with pytest.raises(UnknownName):
            catalogue["our-own"]

    def test_never_replace_a_published_entry(self, tmp_path):
        path = user_file(tmp_path / "own.json", own_entry(id="pure-dp"))
        with pytest.raises(InputError) as refusal:
            catalogue.extended(path)
        assert refusal.value.field == "id"

    def test_never_repeat_one_another(self, tmp_path):
        path = user_file(tmp_path / "own.json", own_entry(), own_entry())
        with pytest.raises(InputError):
            catalogue.extended(path)

    def test_of_a_newer_version_are_refused(self, tmp_path):
        path = user_file(tmp_path / "own.json", own_entry(), schema_version=2)
        with pytest.raises(NewerSchema):
            catalogue.extended(path)

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"schema_version": 1}'])
    def test_that_are_not_a_catalogue_are_refused(self, text):
        with pytest.raises(InputError):
            read_entries(text, user=True)

    def test_specification_file_is_not_a_catalogue(self):
        text = catalogue.specification("pure-dp", Budget.epsilon(1)).to_json()
        with pytest.raises(InputError):
            read_entries(text)

    @pytest.mark.parametrize(
        "fields", [{"status": "certified"}, {"statu": "flavor"}, {"citation": None}, {"domain": 3}]
    )
    def test_with_a_bad_field_are_refused(self, tmp_path, fields):
        path = user_file(tmp_path / "own.json", own_entry(**fields))
        with pytest.raises(InputError):
            catalogue.extended(path)

    def test_with_an_unknown_kind_are_refused_when_built(self, tmp_path):
        path = user_file(tmp_path / "own.json", own_entry(multiverse={"kind": "cosmic"}))
        with pytest.raises(UnknownName):
            catalogue.extended(path)["our-own"].flavor()

    def test_with_a_missing_block_are_refused_when_built(self, tmp_path):
        record = own_entry()
        del record["output_premetric"]
        path = user_file(tmp_path / "own.json", record)
        with pytest.raises(MissingBlock):
            catalogue.extended(path)["our-own"].flavor()

    def test_with_their_own_budget_are_specifications(self, tmp_path):
        budget = {"parametrisation": "epsilon", "amounts": ["1/2"]}
        path = user_file(tmp_path / "own.json", own_entry(status="specification", budget=budget))
        built = catalogue.extended(path)["our-own"].specification()
        assert built.budget == Budget.epsilon("1/2")
