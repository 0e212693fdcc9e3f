"""Convolutional networks trained on the records of a bundle, tested on real images.

A network that is trained on a few distilled points does much worse than kernel ridge regression on
them, because points are made for their kernel. `convnet` and `convnet-soft` show by how much.
"""

import numpy as np

from limbeck.errors import UserError
from limbeck.evaluate.metrics import of_scores
from limbeck.evaluate.score import Score
from limbeck.evaluate.task import Task
from limbeck.models.convnets import Training, predict, train

CONVNET, FAST_CONVNET = Training(), Training(width=32)
CNN = Training(network="cnn", steps=2000, batch=100, rate=1e-3, augment=False)
FAST_CNN = CNN._replace(steps=500)


def convnet(task: Task) -> list[Score]:
    """Train the ConvNet on the class of each record, by cross entropy."""
    return _evaluate(task, "convnet", FAST_CONVNET if task.fast else CONVNET)


def convnet_soft(task: Task) -> list[Score]:
    """Train the ConvNet on the weights of the points, by squared error."""
    return _evaluate(task, "convnet-soft", FAST_CONVNET if task.fast else CONVNET, soft=True)


def cnn(task: Task) -> list[Score]:
    """Train the CNN of G-PATE on the class of each record, by cross entropy."""
    return _evaluate(task, "cnn", FAST_CNN if task.fast else CNN)


def _evaluate(task: Task, name: str, training: Training, *, soft: bool = False) -> list[Score]:
    if not task.bundle.schema.is_image:
        raise UserError(f"'{name}' is for images; use logreg or tabular for a table")
    shape, one_hot = task.bundle.schema.image_shape, np.eye(task.classes, dtype=np.float32)
    scores = []
    for on, (x, labels) in task.sets:
        y = task.bundle.y_soft if soft and on == "release" else one_hot[labels]
        net = train(x, y, shape, training, task.seed, soft=soft, progress=task.progress)
        predicted = predict(net, task.test_rows.x, shape)
        scores += of_scores(name, predicted, task.test_rows.y, on, len(x))
    return scores
