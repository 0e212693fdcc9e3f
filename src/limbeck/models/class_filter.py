"""A linear classifier of generated images, by which misclassified ones are drawn again.

A generator with the right moments still makes images that look like another class than their own,
because two such errors can cancel in a mean. They mislead every model that is trained on them,
flexible ones most of all. A softmax regression with a strong penalty, trained on the generator's
own images, depends on what most images of a class have in common. It sees only generated images,
so it costs no privacy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

# The number of images it is trained on, and the penalty per pixel, which is small beside the weight
# of one image and large beside what few images have in common.
IMAGES = 10_000
PENALTY = 1 / 8000


class ClassFilter(NamedTuple):
    """Weights and biases of a linear classifier."""

    weight: NDArray[np.float32]  # [d, c]
    bias: NDArray[np.float32]  # [c]

    def __call__(self, x: NDArray[np.floating]) -> NDArray[np.int64]:
        """The predicted class of each record."""
        return np.argmax(x @ self.weight + self.bias, axis=1)


def learn(x: NDArray[np.floating], labels: NDArray[np.integer], classes: int) -> ClassFilter:
    """Train on records and the classes that they were generated for, of which none is missing.

    The penalty on the mean loss is λ‖w‖²/2 with λ in proportion to the number of pixels: the same
    image in twice as many pixels has weights of half the size.
    """
    penalty = PENALTY * x.shape[1]
    model = LogisticRegression(C=1 / (penalty * len(x)), max_iter=300).fit(x, labels)
    weight, bias = model.coef_.T, model.intercept_
    if classes == 2:  # scikit-learn scores only the second of two classes
        weight, bias = (np.concatenate([-part, part], axis=-1) for part in (weight, bias))
    return ClassFilter(weight.astype(np.float32), bias.astype(np.float32))


def to_arrays(class_filter: ClassFilter) -> dict[str, NDArray[np.float32]]:
    """The arrays by name, to be saved with the generator."""
    return {f"class_filter.{name}": array for name, array in class_filter._asdict().items()}


def from_arrays(
    arrays: dict[str, NDArray[np.generic]], width: int, classes: int
) -> ClassFilter | None:
    """The inverse of `to_arrays`; None where the generator has no filter.

    Raises
    ------
    LookupError, ValueError : it is incomplete, or a filter of other records.
    """
    names = [f"class_filter.{name}" for name in ClassFilter._fields]
    if not set(names) & set(arrays):
        return None
    weight, bias = (np.asarray(arrays[name], np.float32) for name in names)
    if (weight.shape, bias.shape) != ((width, classes), (classes,)):
        raise ValueError("the class filter does not fit this schema")
    return ClassFilter(weight, bias)
