"""A folder of class folders: classes and sizes come from the schema, never from the folder."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from limbeck.data.schema import ImageShape, Schema
from limbeck.errors import UserError


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(0, 256, (4, 5), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{i}.png")
    return tmp_path / "pets"


def huge_png(path, side):
    """A PNG whose header claims side × side pixels."""

    def chunk(name, body):
        crc = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + crc

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def test_images_arrive_class_by_class_in_bounded_batches(folder, pictures, read_all):
    batches = read_all(folder, pictures, size=3)
    assert [len(y) for _, y in batches] == [3, 3, 3, 1]
    assert np.concatenate([y for _, y in batches]).tolist() == [0] * 5 + [1] * 5
    first = np.asarray(Image.open(folder / "cat" / "0.png"), dtype=np.float32)
    np.testing.assert_allclose(batches[0][0][0], first.ravel() / 255)


def test_images_are_converted_to_the_declared_channels(folder, read_all):
    colour = Schema(classes=("cat", "dog"), image=ImageShape(4, 5, 3))
    x, _ = read_all(folder, colour)[0]
    assert x.shape == (3, 60)
    np.testing.assert_array_equal(x[:, 0::3], x[:, 1::3])


def test_a_class_without_a_folder_has_no_rows(folder, read_all):
    schema = Schema(classes=("bird", "cat", "dog"), image=ImageShape(4, 5))
    assert {int(n) for _, y in read_all(folder, schema) for n in y} == {1, 2}


def test_an_undeclared_folder_is_refused(folder, pictures, read_all):
    (folder / "zebra").mkdir()
    with pytest.raises(UserError, match="folder 'zebra' is not a class of the schema"):
        read_all(folder, pictures)


def test_a_folder_without_class_folders_or_images(tmp_path, pictures, read_all):
    with pytest.raises(UserError, match="no class folders"):
        read_all(tmp_path, pictures)
    (tmp_path / "cat").mkdir()
    with pytest.raises(UserError, match="no rows"):
        read_all(tmp_path, pictures)


def test_other_files_and_hidden_folders_are_left_alone(folder, pictures, read_all):
    (folder / ".cache").mkdir()
    (folder / "README").write_text("hello")
    (folder / "cat" / "notes.txt").write_text("hello")
    assert sum(len(y) for _, y in read_all(folder, pictures)) == 10


def test_a_damaged_image_is_named(folder, pictures, read_all):
    path = folder / "dog" / "3.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match=r"pets: dog/3\.png: not a readable image"):
        read_all(folder, pictures)
    path.write_bytes(b"hello")
    with pytest.raises(UserError, match=r"pets: dog/3\.png: not a readable image"):
        read_all(folder, pictures)


def test_an_image_of_another_size_is_named_with_both_sizes(folder, pictures, read_all):
    Image.new("L", (7, 6)).save(folder / "cat" / "2.png")
    with pytest.raises(UserError, match=r"cat/2\.png: the image is 6×7.*declares 4×5"):
        read_all(folder, pictures)


@pytest.mark.parametrize("side", [10_000, 30_000])
def test_a_decompression_bomb_is_refused_before_its_pixels_are_read(
    folder, pictures, read_all, side
):
    huge_png(folder / "cat" / "2.png", side)
    with pytest.raises(UserError, match=r"cat/2\.png: far too large"):
        read_all(folder, pictures)


def test_a_deep_image_is_refused_rather_than_cut(folder, pictures, read_all):
    Image.fromarray(np.full((4, 5), 40_000, np.uint16)).save(folder / "cat" / "2.png")
    with pytest.raises(UserError, match=r"cat/2\.png: has more than 8 bits a pixel"):
        read_all(folder, pictures)


def test_a_table_schema_does_not_fit_a_folder(folder, patients, read_all):
    with pytest.raises(UserError, match=r"no \[image\]"):
        read_all(folder, patients)
