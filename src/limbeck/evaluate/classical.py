"""Models of scikit-learn and XGBoost trained on the records, tested on real ones.

`logreg` and `mlp` are for any records; `tabular` are the twelve of Table 16 of DP-KIP-ScatterNet,
and `credit` the four of Appendix A.6 of G-PATE. All take the encoded records: numbers in [0, 1],
categories one-hot. What differs from the papers, because their versions of 2021 are gone:

- AdaBoost: SAMME instead of SAMME.R, which scikit-learn has dropped.
- Logistic regression: `multi_class` is gone; with the solver lbfgs it is always multinomial.
- XGBoost chooses its own objective for two classes, where multi:softprob gave the same model twice.
- LDA: one component less than classes, where nine are impossible.
- Networks stop when they have seen `MOST_SEEN` records, at least ten times each.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.evaluate.metrics import of_scores
from limbeck.evaluate.score import Score, TrainedOn
from limbeck.evaluate.task import Rows, Task
from limbeck.progress import Progress, silent

MOST_SEEN = 2_000_000
# The mean of the twelve swings with this one, which is between 0.5 and 0.8 on the same table.
SWINGING = "gaussian-nb"

Maker = Callable[[int, Rows], Any]


def logreg(task: Task) -> list[Score]:
    """Logistic regression."""
    return _evaluate(task, {"logreg": logistic_regression})


def mlp(task: Task) -> list[Score]:
    """A network with one hidden layer of a hundred."""
    return _evaluate(task, {"mlp": network})


def tabular(task: Task) -> list[Score]:
    """The twelve, their mean, and the mean without Gaussian naive Bayes."""
    return _with_means(_evaluate(task, TWELVE))


def twelve(
    rows: Rows, test: Rows, classes: int, seed: int = 0, progress: Progress = silent
) -> list[Score]:
    """The same of rows that are in no release."""
    return _with_means(_of_sets([("release", rows)], test, classes, seed, progress, TWELVE))


def _with_means(found: list[Score]) -> list[Score]:
    without = [score for score in found if score.evaluator != SWINGING]
    return [*found, *_means("mean-of-12", found), *_means("mean-without-gnb", without)]


def credit(task: Task) -> list[Score]:
    """The four of G-PATE, and their mean."""
    found = _evaluate(task, FOUR)
    return [*found, *_means("mean-of-4", found)]


def logistic_regression(seed: int, rows: Rows) -> Any:
    """Multinomial, L2."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=5000 if len(rows.y) < 50_000 else 200)


def network(seed: int, rows: Rows) -> Any:
    """A hundred hidden units, Adam."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(max_iter=_passes(rows), random_state=seed)


def _passes(rows: Rows) -> int:
    return int(np.clip(MOST_SEEN // len(rows.y), 10, 200))


def _naive_bayes(kind: str, **settings: Any) -> Maker:
    def make(seed: int, rows: Rows) -> Any:
        from sklearn import naive_bayes

        return getattr(naive_bayes, kind)(**settings)

    return make


def _ensemble(kind: str, **settings: Any) -> Maker:
    def make(seed: int, rows: Rows) -> Any:
        from sklearn import ensemble

        return getattr(ensemble, kind)(random_state=seed, **settings)

    return make


def _linear_svc(seed: int, rows: Rows) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(max_iter=10_000, tol=1e-8, loss="hinge", random_state=seed)


def _decision_tree(seed: int, rows: Rows) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(class_weight="balanced", random_state=seed)


def _lda(seed: int, rows: Rows) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    components = min(9, len(np.unique(rows.y)) - 1, rows.x.shape[1])
    return LinearDiscriminantAnalysis(
        solver="eigen", n_components=components, tol=1e-8, shrinkage=0.5
    )


def _xgboost(seed: int, rows: Rows) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise UserError(
            "the twelve classifiers need XGBoost; `pip install 'limbeck[tabular]'` brings it"
        ) from None
    return XGBClassifier(colsample_bytree=0.1, n_estimators=50, random_state=seed, n_jobs=1)


TWELVE: dict[str, Maker] = {
    "logistic-regression": logistic_regression,
    "gaussian-nb": _naive_bayes("GaussianNB"),
    "bernoulli-nb": _naive_bayes("BernoulliNB", binarize=0.5),
    "linear-svc": _linear_svc,
    "decision-tree": _decision_tree,
    "lda": _lda,
    "adaboost": _ensemble("AdaBoostClassifier", n_estimators=1000, learning_rate=0.7),
    "bagging": _ensemble("BaggingClassifier", max_samples=0.1, n_estimators=20),
    "random-forest": _ensemble("RandomForestClassifier", class_weight="balanced"),
    "gradient-boosting": _ensemble("GradientBoostingClassifier", subsample=0.1, n_estimators=50),
    "mlp": network,
    "xgboost": _xgboost,
}


def _weighted_logistic(seed: int, rows: Rows) -> Any:
    """L1, and the second class, that of the frauds, counts 350 times."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        l1_ratio=1, solver="liblinear", class_weight={0: 1, 1: 350}, random_state=seed
    )


def _of_logistic(kind: str, count: int) -> Maker:
    def make(seed: int, rows: Rows) -> Any:
        from sklearn import ensemble
        from sklearn.linear_model import LogisticRegression

        return getattr(ensemble, kind)(LogisticRegression(), n_estimators=count, random_state=seed)

    return make


def _three_layers(seed: int, rows: Rows) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((18, 18, 18), activation="tanh", max_iter=_passes(rows), random_state=seed)


FOUR: dict[str, Maker] = {
    "logistic-regression": _weighted_logistic,
    "adaboost": _of_logistic("AdaBoostClassifier", 200),
    "bagging": _of_logistic("BaggingClassifier", 100),
    "mlp": _three_layers,
}


def _evaluate(task: Task, makers: dict[str, Maker]) -> list[Score]:
    """Each model on the release and on real records."""
    return _of_sets(task.sets, task.test_rows, task.classes, task.seed, task.progress, makers)


def _of_sets(
    sets: list[tuple[TrainedOn, Rows]],
    test: Rows,
    classes: int,
    seed: int,
    progress: Progress,
    makers: dict[str, Maker],
) -> list[Score]:
    """Each model on each set of rows, in as many processes as there are cores."""
    from joblib import Parallel, delayed

    jobs = [(name, make, on, rows) for on, rows in sets for name, make in makers.items()]
    # The longest first, so that no core waits for one that was begun last.
    jobs.sort(key=lambda job: -len(job[3].y))
    # One core is kept busy by one process; a single model is not worth another process.
    found = Parallel(n_jobs=1 if len(jobs) < 3 else -1, return_as="generator_unordered")(
        delayed(_score)(name, make, on, rows, test, classes, seed) for name, make, on, rows in jobs
    )
    scores = {}
    for done, (name, on, result) in enumerate(found):
        progress("train", done + 1, len(jobs))
        scores[name, on] = result
    return [score for on, _ in sets for name in makers for score in scores[name, on]]


def _score(
    name: str, make: Maker, on: TrainedOn, rows: Rows, test: Rows, classes: int, seed: int
) -> tuple[str, TrainedOn, list[Score]]:
    scores = np.zeros((len(test.y), classes))
    present, counts = np.unique(rows.y, return_counts=True)
    known = Rows(rows.x, np.searchsorted(present, rows.y))
    found = _learned(make(seed, rows), known, test.x) if len(present) > 1 else None
    if found is None:
        scores[:, present[counts.argmax()]] = 1
    else:
        scores[:, present] = found
        scores[:, np.setdiff1d(np.arange(classes), present)] = found.min() - 1
    return name, on, of_scores(name, scores, test.y, on, len(rows.y))


def _learned(model: Any, rows: Rows, x: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """One score a class: probabilities, or distances from the boundaries where there are none.

    None if it cannot learn from such records, as LDA cannot from points that are all alike; it
    says the commonest class then.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that did not converge: their scores tell
        try:
            model.fit(rows.x, rows.y)
            if hasattr(model, "predict_proba"):
                found = np.asarray(model.predict_proba(x), np.float64)
            else:
                found = np.asarray(model.decision_function(x), np.float64)
        except (ValueError, np.linalg.LinAlgError):
            return None
    if found.ndim == 1:
        found = np.stack([-found, found], axis=1)
    return found if np.isfinite(found).all() else None


def _means(evaluator: str, scores: list[Score]) -> Iterator[Score]:
    """Of each metric over the classifiers that gave it."""
    for key in dict.fromkeys((s.metric, s.trained_on, s.records) for s in scores):
        values = [s.value for s in scores if (s.metric, s.trained_on, s.records) == key]
        yield Score(evaluator, key[0], float(np.mean(values)), key[1], key[2])
