"""The programs of the judge: how each is started, how often it runs, and what it needs."""
import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    auto: int  # runs that count up to issue 9's 600 in auto
    full: int  # and 300 in full; other modes run as often
    seconds: float = 4.0  # of steps in part `ends`
    gb: float = 2.0  # device memory it takes, so that programs that do not fit do not share a card
    status: int = 0  # how it ends by itself; -n: by signal n
    gpus: int = 1

    @property
    def binary(self):
        return self.name in ("cuda", "cuda_driver", "forks")


PROGRAMS = {p.name: p for p in (
    Program("resnet50", 120, 100, seconds=8.0, gb=24.0),
    Program("resnet18", 40, 20, gb=8.0),
    Program("transformer", 50, 24, gb=14.0),
    Program("launch", 60, 30),
    Program("infer", 40, 20),
    Program("ddp", 20, 10, gb=5.0, gpus=2),
    Program("workers", 50, 20, gb=3.0),
    Program("graphs", 40, 20),
    Program("jax", 30, 10),
    Program("cuda", 50, 20, seconds=3.0, gb=1.0),
    Program("cuda_driver", 30, 10, seconds=3.0, gb=1.0),
    Program("short", 30, 10, gb=1.0),
    Program("short-os-exit", 20, 8, gb=1.0, status=3),
    Program("short-exit", 20, 8, gb=1.0, status=7),
    Program("short-raise", 20, 8, gb=1.0, status=1),
    Program("short-term", 20, 8, gb=1.0, status=-15),
    Program("forks", 10, 6, gb=1.0),
)}
CHILDREN = 100  # of `forks` in part `ends`


def command(program, folder, seconds=None, steps=None, children=CHILDREN, more=()):
    """The command line of a program; `folder` has what libraries.py built."""
    seconds = seconds or program.seconds
    if program.name == "forks":
        return [folder / "forks", children, folder / "big.so", folder / "small.so"]
    if program.name == "cuda":
        return [folder / "cuda", seconds]
    if program.name == "cuda_driver":
        return [folder / "cuda_driver", folder / "kernels.ptx", seconds]
    length = ["--steps", steps] if steps else ["--seconds", seconds]
    return [sys.executable, HERE / "programs.py", program.name, *length, *more]
