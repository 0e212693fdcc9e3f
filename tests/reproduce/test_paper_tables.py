"""The papers' tables as data: they are all there, and read as printed."""

import dataclasses

import pytest

from limbeck.distill.dp_kip import DPKIP
from limbeck.distill.kip import KIP
from limbeck.errors import UserError
from limbeck.reproduce import runs
from limbeck.reproduce.cells import LABELLED, OURS, cells_of, published_settings, tables

# Rows times columns, without the dashes.
PRINTED = {
    "dp-kip/table1": 15 * 6 - 2,
    "dp-kip/table2": 15 * 4,
    "dp-kip/table3": 11 * 4 + 11 * 6 - 10,
    "dp-kip/table4": 18 * 4 - 6,
    "dp-kip/table5": 6 * 14 + 2 * 7,
    "dp-kip/table6": 2 * 6,
    "dp-ntk/table1": 4 * 4,
    "dp-ntk/table2": 17 * 4,
    "dp-ntk/table3": 6 * 4,
    "dp-ntk/table4": 6 * 12 + 2 * 6,
    "g-pate/table1": 5 * 4,
    "g-pate/table2": 2 * 5,
    "g-pate/table3": 7,
    "g-pate/table4": 5 * 4,
    "g-pate/table5": 4,
    "g-pate/table6": 3,
}


def cell(table, method, asked):
    (found,) = (c for c in cells_of(table) if c.method == method and c.label == asked)
    return found


def test_every_table_has_as_many_numbers_as_are_printed():
    counts = {t: len([c for c in cells_of(t) if c.printed]) for t in tables()}
    assert counts == PRINTED


@pytest.mark.parametrize("table", tables())
def test_no_two_numbers_claim_the_same_place(table):
    places = [(c.method, c.label, c.evaluator, c.metric) for c in cells_of(table)]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("table", "method", "label", "printed"),
    [
        ("dp-kip/table2", "dp-kip-scatternet", "mnist:1:eps1", 94.7),
        ("dp-kip/table2", "dp-kip-fc-ntk", "cifar100:50:eps10", 13.6),
        ("dp-kip/table4", "dp-kip-scatternet", "cifar10:50:eps0.1:corrupted=80", 46.5),
        ("dp-kip/table6", "dp-kip-scatternet", "mnist:1:eps10:clip=1e-6", 94.2),
        ("g-pate/table3", "g-pate", "mnist:eps1:projection=10", 0.5631),
    ],
)
def test_numbers_are_those_of_the_paper(table, method, label, printed):
    assert cell(table, method, label).theirs == printed


def test_our_own_method_stands_beside_the_better_kernel():
    assert cell("dp-kip/table2", OURS, "fashion_mnist:10:eps10").theirs == 86.2
    assert cell("dp-kip/table3", OURS, "mnist:20:eps1:part=left").theirs == 97.78


def test_labelled_pictures_stand_beside_the_best_of_all():
    best = {
        (c.label, c.evaluator): c.theirs for c in cells_of("dp-ntk/table2") if c.method == LABELLED
    }
    assert len(best) == 12
    assert best["mnist:eps1", "mlp"] == 0.916
    assert best["fashion_mnist:eps0.2", "logreg"] == 0.714


def test_parts_of_a_label_choose_cells():
    found = [c for c in cells_of("dp-kip/table2") if c.matches("mnist:eps1")]
    assert {c.label for c in found} == {"mnist:1:eps1", "mnist:10:eps1", "mnist:50:eps1"}


def test_an_unknown_table_is_told_from_its_neighbours():
    with pytest.raises(UserError, match="did you mean 'dp-kip/table2'"):
        cells_of("dp-kip/tabel2")


def test_the_appendix_sets_a_cell():
    found = published_settings(cell("dp-kip/table2", "dp-kip-scatternet", "fashion_mnist:10:eps1"))
    assert found == {
        "epochs": 40,
        "batch_size": 1000,
        "learning_rate": 1e-2,
        "clip": 1e-4,
        "regularisation": 1e-3,
    }


def test_published_settings_become_those_of_the_method():
    config = runs._as_published(
        DPKIP(per_class=10, features="scatter"),
        cell("dp-kip/table2", "dp-kip-scatternet", "fashion_mnist:10:eps1"),
    )
    assert (config.batch, config.clip, config.clip_in) == (1000, 1e-4, "pixels")
    config = runs._as_published(
        KIP(per_class=1, features="scatter"), cell("dp-kip/table1", "kip-scatternet", "mnist:1")
    )
    assert (config.steps, config.batch, config.regularisation) == (1000, 200, 1.0)
    alone = cell("dp-kip/table3", "dp-kip-scatternet", "mnist:20:eps1:part=left")
    with pytest.raises(UserError, match="no settings"):
        runs._as_published(DPKIP(), alone)


@pytest.mark.parametrize("table", tables())
def test_every_cell_that_can_be_run_has_a_configuration(table):
    for found in filter(runs.runnable, cells_of(table)):
        if found.method != runs.REAL:
            config = runs.METHODS[found.method](found)
            if found.per_class is not None and hasattr(config, "per_class"):
                assert config.per_class == found.per_class
            assert dataclasses.asdict(config)


def test_what_a_cell_sets_reaches_the_method():
    corrupted = cell("dp-kip/table4", "dp-kip-scatternet", "cifar10:1:eps1:corrupted=5")
    assert runs.METHODS["dp-kip-scatternet"](corrupted).corrupt == 0.05
    clipped = cell("dp-kip/table6", "dp-kip-scatternet", "mnist:1:eps1:clip=1e-2")
    assert runs.METHODS["dp-kip-scatternet"](clipped).clip == 0.01
