"""The ledger refuses what was not planned and forgets nothing."""

import pytest

from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger, from_json, to_json

GRADIENT = Entry(purpose="gradient", draws=2, noise_multiplier=1.5, sampling_probability=0.1)


def new():
    return Ledger([GRADIENT])


def test_a_charge_hands_out_the_planned_noise():
    assert new().charge("gradient").noise_multiplier == 1.5


def test_draws_beyond_the_plan_are_refused():
    ledger = new()
    for _ in range(2):
        ledger.charge("gradient")
    with pytest.raises(BudgetSpentError, match="all 2 planned draws"):
        ledger.charge("gradient")
    assert ledger.draws == 2


def test_what_was_not_planned_is_refused():
    with pytest.raises(BudgetSpentError, match="'count' was not planned"):
        new().charge("count")


def test_two_plans_under_one_name_are_refused():
    with pytest.raises(ValueError, match="gradient"):
        Ledger([GRADIENT, GRADIENT])


def test_entries_are_what_was_drawn_and_survive_json():
    ledger = new()
    assert ledger.entries == ()
    ledger.charge("gradient")
    (entry,) = ledger.entries
    assert (entry.purpose, entry.draws, entry.noise_multiplier) == ("gradient", 1, 1.5)
    assert from_json(to_json(ledger.entries)) == ledger.entries
