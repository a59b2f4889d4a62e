"""A map that grows: it is a dictionary at every moment, and no later moment changes an earlier one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stirred.ledger.growing import Growing


@given(st.lists(st.tuples(st.integers(0, 12), st.integers())))
def test_every_state_is_the_dictionary_of_its_moment(items: list[tuple[int, int]]) -> None:
    twin: dict[int, int] = {}
    states, twins = [Growing()], [dict(twin)]
    for key, value in items:
        states.append(states[-1].plus(key, value))
        twin[key] = value
        twins.append(dict(twin))
    for state, expected in zip(states, twins, strict=True):
        assert list(state.items()) == list(expected.items())
        assert len(state) == len(expected)
        assert [key in state for key in range(14)] == [key in expected for key in range(14)]
        assert state.get(13) is None
        assert state == expected


def test_two_futures_of_one_state_do_not_see_each_other() -> None:
    past = Growing()
    for number in range(7):
        past = past.plus(number, "old")
    one, other = past.plus(7, "one"), past.plus(3, "other")
    assert (one[7], 7 in other, other[3], one[3], past[3]) == ("one", False, "other", "old", "old")


def test_growing_copies_n_log_n_items_in_all_not_n_squared() -> None:
    """Counted, not timed: every layer that a step makes is new, and the others are shared."""
    state, copied, n = Growing(), 0, 4096
    for number in range(n):
        after = state.plus(number, None)
        kept = {id(layer) for layer in state._layers}
        copied += sum(len(layer) for layer in after._layers if id(layer) not in kept)
        state = after
    assert copied <= n * 13
    assert len(state._layers) <= 13
