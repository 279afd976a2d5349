"""What the experiment of unmixing plays on a GPU: `program.py mix|alone NAME,NAME... --log FILE`.

mix:   --seconds of segments of 10 to 150 ms, each of one activity drawn at random (--seed), synchronised between.
alone: each activity by itself for --seconds, in --rounds rounds of which each second one goes backwards, so that the warmth
       that one leaves for the next is shared out.

FILE is JSON: "segments" is a list of [name, start_ns, end_ns, operations] by CLOCK_MONOTONIC. An operation's time is taken
first, so that a segment launches what fits and then waits once. --device cpu tries the logic without a GPU, on tiny tensors.
"""
import argparse
import json
import random
import time

import torch

SHORTEST_S, LONGEST_S = 0.01, 0.15


def activities(names, device):
    """name -> one operation. Results go to tensors of their own: values that shrink would draw less power by and by."""
    tiny = device == "cpu"
    side, elements, copied = (64, 1 << 12, 1 << 12) if tiny else (8192, 1 << 28, 1 << 26)
    torch.backends.cuda.matmul.allow_tf32 = False

    def product(dtype):
        a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.matmul(a, b, out=c)

    def elementwise():
        x = torch.randn(elements, device=device, dtype=torch.bfloat16)
        y = torch.empty_like(x)
        return lambda: torch.mul(x, 1.0001, out=y)

    def small():  # launch-bound; a softmax, because element-wise kernels would be a class with those above
        x = torch.randn(8, 128, device=device)
        return lambda: torch.softmax(x, 1)

    def copy():
        host = torch.randint(0, 256, (copied,), dtype=torch.uint8)
        host = host if tiny else host.pin_memory()
        there = torch.empty_like(host, device=device)
        return lambda: there.copy_(host, non_blocking=True)

    makers = {"bf16_gemm": lambda: product(torch.bfloat16), "fp32_gemm": lambda: product(torch.float32),
              "elementwise": elementwise, "small": small, "copy": copy, "idle": lambda: None}
    return {name: makers[name]() for name in names}


def seconds_each(operation, finish):
    """Of one operation, queued behind others; the last of three turns (the first loads code)."""
    count = 1
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            operation()
        finish()
        took = (time.perf_counter() - start) / count
        count = max(1, round(0.03 / took))
    return took


def play(operation, each_s, seconds, finish):
    """One segment: how many operations."""
    if operation is None:
        time.sleep(seconds)
        return 0
    count = max(1, round(seconds / each_s))
    for _ in range(count):
        operation()
    finish()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mix", "alone"))
    parser.add_argument("names")
    parser.add_argument("--log", required=True)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.manual_seed(0)
    names, draw = options.names.split(","), random.Random(options.seed)
    finish = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    made = activities(names, options.device)
    each = {name: seconds_each(operation, finish) if operation else None for name, operation in made.items()}
    segments = []

    def segment(name, seconds):
        start = time.monotonic_ns()
        count = play(made[name], each[name], seconds, finish)
        segments.append([name, start, time.monotonic_ns(), count])

    if options.what == "mix":
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            segment(draw.choice(names), draw.uniform(SHORTEST_S, LONGEST_S))
    else:
        for turn in range(options.rounds):
            for name in names[::-1] if turn % 2 else names:
                end = time.monotonic() + options.seconds
                while time.monotonic() < end:
                    segment(name, LONGEST_S)
    with open(options.log, "w") as log:
        json.dump({"what": options.what, "operation_ms": {n: s and 1e3 * s for n, s in each.items()}, "segments": segments}, log)


if __name__ == "__main__":
    main()
