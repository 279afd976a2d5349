"""The data that the public programs read: noise in the formats of MNIST and of a folder of JPEGs. It has the size and the cost
of the real thing; no model learns anything from it."""
import gzip
import pathlib
import shutil
import struct

import numpy
from PIL import Image

IMAGES = {"train": 60000, "t10k": 10000}
PICTURES = {"train": (10, 400), "val": (10, 20)}  # classes, of each
JAX = pathlib.Path("/tmp/jax_example_data")  # where jax/examples/datasets.py looks


def mnist(raw):
    """Files of MNIST (idx): unpacked for torchvision, packed for JAX's examples."""
    draw = numpy.random.default_rng(0)
    for folder in (raw, JAX):
        folder.mkdir(parents=True, exist_ok=True)
    for name, count in IMAGES.items():
        shown = draw.random((count, 28, 28)) < 0.2
        images = draw.integers(1, 256, (count, 28, 28), numpy.uint8) * shown.astype(numpy.uint8)
        labels = draw.integers(0, 10, count, numpy.uint8)
        for file, data in ((f"{name}-images-idx3-ubyte", struct.pack(">4i", 2051, count, 28, 28) + images.tobytes()),
                           (f"{name}-labels-idx1-ubyte", struct.pack(">2i", 2049, count) + labels.tobytes())):
            (raw / file).write_bytes(data)
            (JAX / f"{file}.gz").write_bytes(gzip.compress(data, 1))


def pictures(folder):
    """JPEGs of 500 x 375 for torchvision's ImageFolder, of smooth noise: plain noise would be ten times a photo's size."""
    draw = numpy.random.default_rng(1)
    small = [Image.fromarray(draw.integers(0, 256, (24, 32, 3), numpy.uint8)) for _ in range(40)]
    for part, (classes, each) in PICTURES.items():
        for c in range(classes):
            (folder / part / f"class{c}").mkdir(parents=True, exist_ok=True)
            for i in range(each):
                small[(c + i) % len(small)].resize((500, 375), Image.BICUBIC).save(folder / part / f"class{c}" / f"{i}.jpg", quality=90)


def make(gathered):
    if not (gathered / "data/jpeg").exists():
        mnist(gathered / "examples/data/MNIST/raw")
        pictures(gathered / "data/jpeg")
    words = gathered / "examples/word_language_model/data/wikitext-2"
    if not (words / "train.txt").exists():
        shutil.copy(words / "valid.txt", words / "train.txt")
