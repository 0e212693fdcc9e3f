"""Lines that load a bundle, to be copied; they run in the folder of the release."""

import json
from dataclasses import dataclass

from limbeck.data.schema import Schema
from limbeck.release.bundle import Bundle, Generated


@dataclass(frozen=True)
class Lines:
    """Python for one library."""

    library: str
    name: str
    code: str


def lines(bundle: Bundle) -> list[Lines]:
    """Limbeck itself first; then without it, for whoever has only the files."""
    schema, generated = bundle.schema, isinstance(bundle, Generated)
    texts = _images(schema, generated) if schema.is_image else _table(schema, generated)
    return [
        Lines(library, name, code.strip("\n"))
        for (library, name), code in zip(LIBRARIES, texts, strict=True)
    ]


LIBRARIES = (
    ("Limbeck", "limbeck"),
    ("pandas", "pandas"),
    ("scikit-learn", "sklearn"),
    ("PyTorch", "torch"),
    ("Hugging Face", "datasets"),
)


def _images(schema: Schema, generated: bool) -> tuple[str, ...]:
    height, width, channels = schema.image_shape
    grey = channels == 1
    shape = f"[n, {height}, {width}]" if grey else f"[n, {height}, {width}, {channels}]"
    first = "[:, None]" if grey else ".permute(0, 3, 1, 2)"  # PyTorch has the channels first
    rows = f"images of whole numbers 0 to 255, {shape}"
    x = IMAGES_TORCH.format(first=first, shape=f"[n, {channels}, {height}, {width}]")
    return (
        GENERATED_LIMBECK.format(file="more.npz") if generated else LIMBECK.format(rows=rows),
        IMAGES_PANDAS.format(label=_quoted(schema.label)),
        IMAGES_SKLEARN,
        x + (TORCH_CLASSES if generated else TORCH_WEIGHTS),
        IMAGES_DATASETS.format(weights="" if generated else ', "weights": data["y_soft"]'),
    )


def _table(schema: Schema, generated: bool) -> tuple[str, ...]:
    rows = "a data frame with the columns of the schema"
    return (
        GENERATED_LIMBECK.format(file="more.csv") if generated else LIMBECK.format(rows=rows),
        TABLE_PANDAS.format(weights="" if generated else ", a weight a class"),
        TABLE_SKLEARN.format(columns=len(schema.columns), label=_quoted(schema.label)),
        TABLE_TORCH + (TORCH_CLASSES if generated else TORCH_WEIGHTS),
        TABLE_DATASETS,
    )


def _quoted(text: str) -> str:
    """A Python literal, in the quotes of the other lines."""
    return json.dumps(text, ensure_ascii=False)


LIMBECK = """
import limbeck

bundle = limbeck.load(".")
bundle.x, bundle.y, bundle.to_frame()
# new_rows: {rows}
bundle.classifier().predict(new_rows)
"""

GENERATED_LIMBECK = """
import limbeck

bundle = limbeck.load(".")
bundle.x, bundle.y, bundle.to_frame()
more = bundle.sample(1000)  # or in a shell: limbeck sample . -n 1000 -o {file}
"""

TABLE_PANDAS = """
import pandas as pd

frame = pd.read_parquet("data.parquet")  # the columns, the label{weights}
"""

TABLE_SKLEARN = """
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

frame = pd.read_parquet("data.parquet")
columns = make_column_transformer(
    (StandardScaler(), make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
)
model = make_pipeline(columns, LogisticRegression())
model.fit(frame.iloc[:, :{columns}], frame[{label}])
"""

TABLE_TORCH = """
import numpy as np
import torch

data = np.load("data.npz")
x = torch.from_numpy(data["x"])  # encoded rows: numbers scaled by their bounds, categories one-hot
"""

TABLE_DATASETS = """
from datasets import load_dataset

dataset = load_dataset("parquet", data_files="data.parquet", split="train")
"""

IMAGES_PANDAS = """
import numpy as np
import pandas as pd

data = np.load("data.npz")
frame = pd.DataFrame(data["x"].reshape(len(data["x"]), -1))  # a column a pixel
frame[{label}] = data["y"]
"""

IMAGES_SKLEARN = """
import numpy as np
from sklearn.linear_model import LogisticRegression

data = np.load("data.npz")
x = data["x"].reshape(len(data["x"]), -1) / 255
model = LogisticRegression().fit(x, data["y"])
"""

IMAGES_TORCH = """
import numpy as np
import torch

data = np.load("data.npz")
x = torch.from_numpy(data["x"]){first} / 255  # {shape}
"""

TORCH_WEIGHTS = """\
weights = torch.from_numpy(data["y_soft"])  # one a class, as CrossEntropyLoss takes them
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, weights), batch_size=32)
"""

TORCH_CLASSES = """\
classes, places = np.unique(data["y"], return_inverse=True)
y = torch.from_numpy(places)  # whole numbers, as CrossEntropyLoss takes them
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
"""

IMAGES_DATASETS = """
import numpy as np
from datasets import Dataset

data = np.load("data.npz")
columns = {{"image": data["x"], "label": data["y"]{weights}}}
dataset = Dataset.from_dict({{name: array.tolist() for name, array in columns.items()}})
"""
