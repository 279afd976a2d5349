"""Marks of a program in Python.

    hec run --knob batch=64 -- python3 marks.py
    hec sweep -k batch batch=16..64*2 -- python3 marks.py     # which batch takes least time a sample

Alone it does the same work, and the marks do nothing.
"""

import time

import hec


@hec.phase("data")
def load(samples: int) -> None:
    """Stands for reading and decoding a batch."""
    time.sleep(20e-6 * samples)


def train(samples: int) -> float:
    """Stands for the forward and backward pass."""
    return sum(1.0 / i for i in range(1, 1000 * samples))


def main() -> None:
    batch = hec.knob("batch", 32, 1, 128)  # `hec try -- python3 marks.py` looks for the best one between the two
    steps = hec.knob("steps", 20)
    for _ in range(steps):
        load(batch)
        with hec.phase("train"):
            train(batch)
        hec.units("token", 512 * batch)
        hec.step(samples=batch)  # the step ends here
    print(f"{steps} steps of {batch} samples, {'observed' if hec.active() else 'not observed'}")


if __name__ == "__main__":
    main()
