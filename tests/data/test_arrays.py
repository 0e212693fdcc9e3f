"""`.npz` files are streamed, and what they claim of themselves is not believed."""

import io
import pickle
import struct
import zipfile

import numpy as np
import pytest

from limbeck.data import arrays
from limbeck.data.source import open_source
from limbeck.errors import UserError

N = 10
X = np.random.default_rng(0).integers(0, 256, (N, 4, 5), dtype=np.uint8)
Y = np.array(["cat", "dog"] * (N // 2))


@pytest.fixture
def npz(tmp_path):
    """Writes arrays to a file and gives its path."""

    def write(**content):
        np.savez_compressed(tmp_path / "d.npz", **content)
        return tmp_path / "d.npz"

    return write


def npy_header(shape, descr="|u1"):
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"shape": shape, "fortran_order": False, "descr": descr}
    )
    return written.getvalue()


def test_images_arrive_in_bounded_batches(npz, pictures, read_all):
    batches = read_all(npz(x=X, y=Y), pictures, size=3)
    assert [len(y) for _, y in batches] == [3, 3, 3, 1]
    np.testing.assert_allclose(np.concatenate([x for x, _ in batches]) * 255, X.reshape(N, 20))
    assert np.concatenate([y for _, y in batches]).tolist() == [0, 1] * 5


def test_the_split_chooses_the_arrays(npz, pictures):
    path = npz(x_train=X, y_train=Y, x_test=X[:4], y_test=Y[:4])
    rows = {
        split: sum(len(y) for _, y in open_source(path, pictures, split).batches())
        for split in ("train", "test", None)
    }
    assert rows == {"train": 10, "test": 4, None: 10}


def test_a_matrix_is_a_table_in_the_order_of_the_schema(npz, patients, read_all):
    schema = type(patients).from_dict(
        patients.to_dict() | {"columns": {"a": {"kind": "numeric", "minimum": 0, "maximum": 2}}}
    )
    [(x, y)] = read_all(npz(x=np.array([[1.0], [5.0]]), y=np.array([0, 1])), schema)
    assert x.tolist() == [[0.5], [1.0]]
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"x": X}, "holds x, but needs x and y"),
        ({"a": X, "b": Y}, "holds a, b, but needs"),
        ({"x": X, "y": Y[:9]}, "different lengths"),
        ({"x": X, "y": Y.reshape(5, 2)[:, :1].repeat(2, 0)}, "shape \\[n\\]"),
        ({"x": X[:, :3], "y": Y}, "3×5.*declares 4×5"),
        ({"x": X / 255, "y": Y}, "type float64.*uint8"),
        ({"x": X.astype(int) + 256, "y": Y}, "outside 0..255"),
        ({"x": np.asfortranarray(X), "y": Y}, "C order"),
        ({"x": np.uint8(3), "y": Y}, "records along its first axis"),
        ({"x": X[:0], "y": Y[:0]}, "no rows"),
        ({"x": X, "y": np.where(np.arange(N) == 7, "Zebulon", Y)}, "data row 8: .*not declared"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(npz, pictures, read_all, content, complaint):
    with pytest.raises(UserError, match=complaint) as caught:
        read_all(npz(**content), pictures)
    assert str(caught.value).startswith("d.npz: ")
    assert "Zebulon" not in str(caught.value)


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_pickled_objects_are_never_loaded(npz, pictures, read_all):
    with pytest.raises(UserError, match="Python objects"):
        read_all(npz(x=np.array([Bomb()] * N, dtype=object), y=Y), pictures)


def test_a_pickle_in_place_of_a_zip_or_of_an_array(tmp_path, pictures, read_all):
    (tmp_path / "d.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match=r"not an \.npz file"):
        read_all(tmp_path / "d.npz", pictures)
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Bomb()))
        archive.writestr("y.npy", pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="not a NumPy array"):
        read_all(tmp_path / "d.npz", pictures)


def test_damaged_archives_are_refused(npz, pictures, read_all):
    path = npz(x=X, y=Y)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:80] + b"\x55" * 40 + whole[120:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"not an \.npz file, or a damaged one|not a NumPy"):
            read_all(path, pictures)


def zip_of(path, x, y, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("x.npy", x)
        archive.writestr("y.npy", y)


def test_a_header_that_claims_more_than_the_member_holds(tmp_path, pictures, read_all):
    labels = npy_header((10**12,), "<i8")
    zip_of(tmp_path / "d.npz", npy_header((10**12, 4, 5)) + b"\0" * 100, labels)
    with pytest.raises(UserError, match="claims more records than the file holds"):
        read_all(tmp_path / "d.npz", pictures)


def test_a_bomb_is_refused_by_its_declared_size(npz, pictures, read_all, monkeypatch):
    monkeypatch.setattr(arrays, "UNSUSPICIOUS", 2**16)
    monkeypatch.setattr(arrays, "LARGEST_RATIO", 100)
    zeros = np.zeros((10_000, 4, 5), np.uint8)
    with pytest.raises(UserError, match="zip bomb"):
        read_all(npz(x=zeros, y=np.full(10_000, "cat")), pictures, size=4096)
    monkeypatch.setattr(arrays, "LARGEST", 2**16)
    with pytest.raises(UserError, match="would unpack to more than"):
        read_all(npz(x=zeros, y=np.full(10_000, "cat")), pictures, size=4096)


def test_an_honest_file_passes_the_same_limits(npz, pictures, read_all, monkeypatch):
    monkeypatch.setattr(arrays, "UNSUSPICIOUS", 2**10)
    noise = np.random.default_rng(0).integers(0, 256, (1000, 4, 5), dtype=np.uint8)
    assert read_all(npz(x=noise, y=np.full(1000, "cat")), pictures, size=4096)


@pytest.mark.parametrize("claimed", [200, 2**31])
def test_a_false_size_in_the_directory_is_not_believed(tmp_path, pictures, read_all, claimed):
    """The directory's size of `x.npy` is rewritten, so that it and the contents disagree."""
    path = tmp_path / "d.npz"
    contents = npy_header((1000, 4, 5)) + b"\7" * 20_000
    zip_of(path, contents, npy_header((1000,)) + b"\0" * 1000)
    true_size = struct.pack("<I", len(contents))
    path.write_bytes(path.read_bytes().replace(true_size, struct.pack("<I", claimed)))
    with pytest.raises(UserError, match=r"^d\.npz: "):
        read_all(path, pictures, size=4096)


def test_only_a_batch_is_decompressed_at_a_time(npz, pictures, monkeypatch):
    asked = []
    read = arrays._read

    def recording(path, stream, header, count):
        asked.append(count)
        return read(path, stream, header, count)

    monkeypatch.setattr(arrays, "_read", recording)
    next(iter(open_source(npz(x=X, y=Y), pictures).batches(3)))
    assert asked == [3, 3]
