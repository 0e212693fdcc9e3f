"""A linear judge of generated pictures: what it takes for another class is drawn again.

A generator with the right moments still makes pictures that look like another class than their own,
because two such mistakes can cancel in a mean. They mislead every model that is trained on them, a
flexible one most. A softmax regression with a strong penalty, trained on the generator's own
pictures, goes by what most pictures of a class have in common. It sees nothing but what the
generator made, so it costs no privacy.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# How many pictures it learns from, and the penalty for each pixel: small next to what one picture
# can weigh, large next to what few pictures have in common.
PICTURES = 10_000
PENALTY = 1 / 8000


class Judge(NamedTuple):
    """Weights and biases of a linear classifier."""

    weight: NDArray[np.float32]  # [d, c]
    bias: NDArray[np.float32]  # [c]

    def __call__(self, x: NDArray[np.floating]) -> NDArray[np.int64]:
        """The class that each record is taken for."""
        return np.argmax(x @ self.weight + self.bias, axis=1)


def learn(x: NDArray[np.floating], labels: NDArray[np.integer], classes: int) -> Judge:
    """From records and the classes that they were made for, of which none is missing.

    The penalty on the mean loss is λ‖w‖²/2 with λ in proportion to the number of pixels: the same
    picture in twice as many pixels has weights of half the size.
    """
    from sklearn.linear_model import LogisticRegression

    penalty = PENALTY * x.shape[1]
    model = LogisticRegression(C=1 / (penalty * len(x)), max_iter=300).fit(x, labels)
    weight, bias = model.coef_.T, model.intercept_
    if classes == 2:  # of two classes only the second is scored
        weight, bias = (np.concatenate([-part, part], axis=-1) for part in (weight, bias))
    return Judge(weight.astype(np.float32), bias.astype(np.float32))


def to_arrays(judge: Judge) -> dict[str, NDArray[np.float32]]:
    """By name, to be kept with the generator."""
    return {f"judge.{name}": array for name, array in judge._asdict().items()}


def from_arrays(arrays: dict[str, NDArray[Any]], width: int, classes: int) -> Judge | None:
    """The inverse; None where there is no judge.

    Raises
    ------
    ValueError : it is one of other records.
    """
    found = {name: arrays[key] for name in Judge._fields if (key := f"judge.{name}") in arrays}
    if not found:
        return None
    judge = Judge(**found)
    if (judge.weight.shape, judge.bias.shape) != ((width, classes), (classes,)):
        raise ValueError("the judge's arrays are not those of this schema")
    return judge
