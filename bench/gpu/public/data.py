"""The data that the public programs read: noise in the formats of MNIST and of folders of JPEGs, which has the size and the cost
of the real thing, though no model learns anything from it; a GPT-2 of untrained weights, whose tokens are bytes; and bytes in place of
the tokens of tiktoken."""
import gzip
import importlib.util
import json
import pathlib
import struct

import numpy
from PIL import Image

IMAGES = {"train": 60000, "t10k": 10000}
FACADES = {"train": 400, "test": 106, "val": 100}  # as many as the real ones
PICTURES = {"train": (10, 4000), "val": (10, 20)}  # classes, of each: an epoch is to be long beside the start of its workers
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


def photos(folder, seed, size):
    """40 JPEGs of smooth noise: plain noise would be ten times a photo's size."""
    draw = numpy.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(40):
        picture = Image.fromarray(draw.integers(0, 256, (24, 32, 3), numpy.uint8))
        picture.resize(size, Image.BICUBIC).save(folder / f".{n}.jpg", quality=90)
    return [folder / f".{n}.jpg" for n in range(40)]


def pictures(folder):
    """JPEGs of 500 x 375 for torchvision's ImageFolder."""
    shown = photos(folder, 1, (500, 375))
    for part, (classes, each) in PICTURES.items():
        for c in range(classes):
            (folder / part / f"class{c}").mkdir(parents=True, exist_ok=True)
            for i in range(each):
                (folder / part / f"class{c}" / f"{i}.jpg").hardlink_to(shown[(c + i) % len(shown)])


def facades(folder):
    """Pairs of pictures for pix2pix: the two halves of JPEGs of 512 x 256."""
    shown = photos(folder, 2, (512, 256))
    for part, count in FACADES.items():
        (folder / part).mkdir(exist_ok=True)
        for i in range(count):
            (folder / part / f"{i}.jpg").hardlink_to(shown[i % len(shown)])


def language_model(folder, text):
    """A folder as `save_pretrained` leaves it (GPT-2, 124 million weights), and the text beside it in pieces, as JSON lines."""
    import tokenizers
    import transformers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = tokenizers.Tokenizer(tokenizers.models.BPE({c: i for i, c in enumerate([*alphabet, "<end>"])}, []))
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    model = folder / "gpt2"
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", pad_token="<end>").save_pretrained(model)
    transformers.set_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=256, eos_token_id=256, pad_token_id=256)).save_pretrained(model)
    plays = folder / "plays"
    plays.mkdir(exist_ok=True)
    pieces = (text[at:at + 1000] for at in range(0, len(text), 1000))
    (plays / "train.jsonl").write_text("".join(json.dumps({"text": piece}) + "\n" for piece in pieces))


# In place of tiktoken, which downloads its words: a token is a byte.
TIKTOKEN = '''class Bytes:
    def encode(self, text, allowed_special=()):
        return list(text.encode())

    def decode(self, tokens):
        return bytes(token % 256 for token in tokens).decode(errors="replace")


def get_encoding(name):
    return Bytes()
'''


def make(gathered, names):
    """For these programs (catalogue.py), below the gathered sources."""
    if not (gathered / "examples/data/MNIST").exists():
        mnist(gathered / "examples/data/MNIST/raw")
    if "imagenet_jpeg" in names and not (gathered / "data/jpeg").exists():
        pictures(gathered / "data/jpeg")
    if "pix2pix" in names and not (gathered / "PyTorch-GAN/data/facades").exists():
        facades(gathered / "PyTorch-GAN/data/facades")
    words = gathered / "examples/word_language_model/data/wikitext-2"
    if (words / "valid.txt").exists() and not (words / "train.txt").exists():
        (words / "train.txt").write_text(10 * (words / "valid.txt").read_text())  # an epoch as long as with the real one
    speed = gathered / "LLMs-from-scratch/ch05/10_llm-training-speed"
    if speed.exists():
        (speed / "tiktoken.py").write_text(TIKTOKEN)
    if "trl_sft" in names and importlib.util.find_spec("transformers") and not (gathered / "data/plays").exists():
        language_model(gathered / "data", (gathered / "char-rnn/data/tinyshakespeare/input.txt").read_text())
