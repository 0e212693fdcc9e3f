"""What the draws add up to, against an independent accountant and the papers' own."""

import json
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy.stats import norm

from limbeck.errors import UserError
from limbeck.privacy.accounting import calibrate, epsilon
from limbeck.privacy.budget import Adjacency, Budget, Measurement
from limbeck.privacy.ledger import Entry

DELTA = 1e-5


def subsampled(rate, draws, share=1.0, purpose="gradient"):
    return Measurement(purpose=purpose, draws=draws, sampling_probability=rate, share=share)


def exact_gaussian_delta(sigma, eps, distance=1.0):
    """Balle & Wang 2018, Theorem 8: the δ of one Gaussian draw."""
    a, b = distance / (2 * sigma), eps * sigma / distance
    return norm.cdf(a - b) - math.exp(eps) * norm.cdf(-a - b)


PLANS = {
    "one Gaussian": [Measurement(purpose="sum")],
    "many Gaussians": [Measurement(purpose="sum", draws=100)],
    "large Poisson batches": [subsampled(1 / 12, 240)],
    "small Poisson batches": [subsampled(1 / 120, 1200)],
    "a count beside": [subsampled(1 / 12, 240), Measurement(purpose="count", share=0.01)],
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize(
    ("target", "adjacency"),
    [(0.1, Adjacency.REPLACE), (1.0, Adjacency.ADD_REMOVE), (8.0, Adjacency.ADD_REMOVE)],
)
def test_calibrated_noise_meets_the_budget_and_never_exceeds_it(plan, target, adjacency):
    budget = Budget(epsilon=target, delta=DELTA, adjacency=adjacency)
    spent = epsilon(calibrate(plan, budget), DELTA, adjacency)
    assert target - 1e-3 <= spent <= target


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_renyi_accountant_agrees_within_its_slack(plan):
    entries = calibrate(plan, Budget(epsilon=1.0, delta=DELTA))
    accountant = rdp.RdpAccountant()
    for entry in entries:
        accountant.compose(entry.event)
    assert 1.0 - 1e-3 <= accountant.get_epsilon(DELTA) <= 1.35


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("draws", [1, 16])
def test_gaussian_draws_are_accounted_for_exactly(adjacency, draws):
    budget = Budget(epsilon=1.0, delta=DELTA, adjacency=adjacency)
    (entry,) = calibrate([Measurement(purpose="sum", draws=draws)], budget)
    distance = adjacency.records_changed * math.sqrt(draws)
    delta = exact_gaussian_delta(entry.noise_multiplier, 1.0, distance)
    assert delta <= DELTA
    assert delta == pytest.approx(DELTA, rel=2e-3)


def test_one_gaussian_release_needs_a_quarter_less_noise_than_the_papers_route():
    (entry,) = calibrate([Measurement(purpose="sum")], Budget(epsilon=1.0, delta=DELTA))
    assert entry.noise_multiplier == pytest.approx(3.7306, abs=1e-3)


def test_never_more_noise_than_the_papers_accountant(golden):
    cases = json.loads((golden / "autodp_sigma.json").read_text())
    for case in cases["subsampled_gaussian"]:
        rate = case["batch"] / case["n"]
        plan = [subsampled(rate, round(case["epochs"] / rate))]
        (entry,) = calibrate(plan, Budget(epsilon=case["epsilon"], delta=case["delta"]))
        assert entry.noise_multiplier < case["autodp_sigma"]
    for case in cases["gaussian"]:
        budget = Budget(epsilon=case["epsilon"], delta=case["delta"])
        (entry,) = calibrate([Measurement(purpose="sum")], budget)
        assert entry.noise_multiplier < case["autodp_sigma"]


def test_shares_are_shares_of_the_squared_mu():
    plan = [Measurement(purpose="a", draws=4, share=3.0), Measurement(purpose="b", share=1.0)]
    a, b = calibrate(plan, Budget(epsilon=1.0, delta=DELTA))
    assert (4 / a.noise_multiplier**2) / (1 / b.noise_multiplier**2) == pytest.approx(3.0)


def test_poisson_sampling_under_replacement_is_a_mixture_of_two_shifts():
    """A record replaced by its opposite: (1−q)N(0) + qN(1) against (1−q)N(0) + qN(−1)."""
    rate, sigma, eps = 0.3, 2.0, 0.5
    entry = Entry(purpose="sum", draws=1, noise_multiplier=sigma, sampling_probability=rate)

    def mixture(at, shift):
        return (1 - rate) * norm.pdf(at, 0, sigma) + rate * norm.pdf(at, shift, sigma)

    grid = np.linspace(-30, 30, 600_001)
    excess = mixture(grid, 1.0) - math.exp(eps) * mixture(grid, -1.0)
    delta = float(np.trapezoid(np.maximum(excess, 0), grid))
    assert epsilon([entry], delta, Adjacency.REPLACE) == pytest.approx(eps, abs=2e-3)


def test_nothing_drawn_costs_nothing_and_an_exact_look_costs_everything():
    assert epsilon([], DELTA, Adjacency.ADD_REMOVE) == 0
    exact = Entry(purpose="gradient", draws=1, noise_multiplier=None)
    assert math.isinf(epsilon([exact], DELTA, Adjacency.ADD_REMOVE))


def test_an_event_that_the_accountant_does_not_know_is_an_error():
    class Unknown(Entry):
        event = dp_accounting.UnsupportedDpEvent()

    with pytest.raises(dp_accounting.UnsupportedEventError):
        epsilon([Unknown(purpose="?", draws=1, noise_multiplier=1.0)], DELTA, Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_budget_needs_a_positive_finite_epsilon(epsilon):
    with pytest.raises(UserError, match="epsilon must be a positive number"):
        Budget(epsilon=epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_a_budget_needs_a_delta_between_zero_and_one(delta):
    with pytest.raises(UserError, match="delta must lie between 0 and 1"):
        Budget(epsilon=1.0, delta=delta)


@pytest.mark.parametrize(
    "wrong",
    [{"draws": 0}, {"sampling_probability": 0.0}, {"sampling_probability": 1.1}, {"share": 0}],
)
def test_an_impossible_measurement_is_refused(wrong):
    with pytest.raises(UserError, match="sum"):
        Measurement(purpose="sum", **wrong)


def laplace(budget, epsilon=0.01):
    """One draw of Laplace noise that alone is `epsilon`-DP."""
    noise = budget.adjacency.records_changed / epsilon
    return Entry(purpose="counts", draws=1, noise_multiplier=noise, mechanism="laplace")


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_laplace_draw_costs_its_epsilon_and_is_composed_with_the_rest(adjacency):
    budget = Budget(epsilon=1.0, delta=DELTA, adjacency=adjacency)
    counts = laplace(budget, 0.3)
    alone = epsilon([counts], 1e-9, adjacency)
    assert alone == pytest.approx(0.3, abs=1e-6)
    first, votes = calibrate([Measurement(purpose="votes", draws=10)], budget, settled=[counts])
    assert first == counts
    together = epsilon([first, votes], DELTA, adjacency)
    rest = epsilon([votes], DELTA, adjacency)
    assert 1.0 - 1e-3 <= together <= 1.0
    assert rest < together <= rest + 0.3 + 1e-3


def test_what_is_settled_may_not_take_the_whole_budget():
    budget = Budget(epsilon=0.1, delta=DELTA)
    with pytest.raises(UserError, match="counts: takes more than the whole budget"):
        calibrate([Measurement(purpose="votes")], budget, settled=[laplace(budget, 0.2)])
