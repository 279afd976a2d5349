"""What a mark costs in Python; started by the `marks` benchmark (see marks.c), with HEC off and on."""

import statistics
import sys
import time

import hec

BURSTS, CALLS = 41, 4000


def measure(mode, label, function, *arguments, pause=0.0):
    """Median ns a call over bursts that fit the ring, each burst's empty loop taken off."""
    costs = []
    for _ in range(BURSTS):
        time.sleep(pause)
        start = time.perf_counter()
        for _ in range(CALLS):
            pass
        empty = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(CALLS):
            function(*arguments)
        costs.append((time.perf_counter() - start - empty) / CALLS * 1e9)
    print(f"{mode:<8} {label:<32} {statistics.median(costs):8.2f} ns", flush=True)


def empty(units):
    pass


def phase():
    with hec.phase("data"):
        pass


def step():
    hec.step(samples=128)


def main():
    mode = sys.argv[1]
    pause = 0.005 if hec.active() else 0
    measure(mode, "Python empty function call", empty, 1)
    measure(mode, "Python time.monotonic_ns", time.monotonic_ns)
    measure(mode, "Python hec.step(1)", hec.step, 1, pause=pause)
    measure(mode, "Python hec.step(samples=128)", step, pause=pause)
    measure(mode, "Python with hec.phase(...)", phase, pause=pause)
    measure(mode, "Python hec.knob(...)", hec.knob, "batch", 1, pause=pause)


if __name__ == "__main__":
    main()
