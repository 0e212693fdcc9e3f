"""The ledger refuses what was not planned and forgets nothing."""

import pytest

from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger, from_json, to_json

GRADIENT = Entry(purpose="gradient", draws=2, noise_multiplier=1.5, sampling_probability=0.1)


def new():
    return Ledger([GRADIENT])


def test_a_charge_hands_out_the_planned_noise():
    assert new().charge("gradient", sampling_probability=0.1) == 1.5


def test_draws_beyond_the_plan_are_refused():
    ledger = new()
    for _ in range(2):
        ledger.charge("gradient", sampling_probability=0.1)
    with pytest.raises(BudgetSpentError, match="all 2 planned draws"):
        ledger.charge("gradient", sampling_probability=0.1)
    assert ledger.draws == 2


def test_what_was_not_planned_is_refused():
    with pytest.raises(BudgetSpentError, match="'count' was not planned"):
        new().charge("count", sampling_probability=1.0)


def test_a_larger_sample_than_planned_is_refused():
    with pytest.raises(BudgetSpentError, match="planned for records sampled"):
        new().charge("gradient", sampling_probability=0.2)


def test_an_exact_look_needs_a_plan_without_privacy_and_the_other_way_round():
    with pytest.raises(BudgetSpentError, match="exact measurement"):
        new().charge_without_noise("gradient")
    exact = Ledger([Entry(purpose="gradient", draws=1, noise_multiplier=None)])
    with pytest.raises(BudgetSpentError, match="private measurement"):
        exact.charge("gradient", sampling_probability=1.0)
    exact.charge_without_noise("gradient")
    assert exact.draws == 1


def test_two_plans_under_one_name_are_refused():
    with pytest.raises(ValueError, match="gradient"):
        Ledger([GRADIENT, GRADIENT])


def test_entries_are_what_was_drawn_and_survive_json():
    ledger = new()
    assert ledger.entries == ()
    ledger.charge("gradient", sampling_probability=0.1)
    (entry,) = ledger.entries
    assert (entry.purpose, entry.draws, entry.noise_multiplier) == ("gradient", 1, 1.5)
    assert from_json(to_json(ledger.entries)) == ledger.entries
