#!/usr/bin/env python3
"""What CUPTI itself costs where launches bind: a process without it, then the same process with an empty client.

    bench/gpu/harmless/floor.py launch|infer CLIENT.so [--variant kernels|thread|device|ticks] [--seconds 10]

CLIENT.so is bench/gpu/trace/client.c: it has the kernel kind on and throws the records away, so nobody's tracer costs less.
The variants try what CUPTI offers: buffers by thread, buffers in device memory, host times by the processor's counter. Turns
with the client switched off again would not do: CUPTI that was once attached costs with every kind off, too.
"""
import argparse
import json
import os
import statistics
import sys
import time

import turns

# CUpti_ActivityAttribute by number: (value, bytes)
ATTRIBUTES = {"kernels": {}, "ticks": {}, "thread": {9: (1, 1)}, "device": {8: (0, 1)}}


def stretch(step, seconds):
    """Median seconds a step, over turns; and CPU seconds a step."""
    end, rows = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        rows.append(turns.turn(step))
    return [statistics.median(column) for column in zip(*rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=turns.PROGRAMS)
    parser.add_argument("client")
    parser.add_argument("--variant", choices=ATTRIBUTES, default="kernels")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    os.environ["CLIENT_KINDS"] = "10"
    step = turns.PROGRAMS[options.program]()
    from switch import Client

    stretch(step, turns.WARM_S)
    before = stretch(step, options.seconds)
    client = Client(options.client, ATTRIBUTES[options.variant], options.variant == "ticks")
    client.set(True)
    stretch(step, turns.WARM_S)
    after = stretch(step, options.seconds)
    client.set(False)
    ratios = [round(100 * (now / then - 1), 2) for now, then in zip(after, before)]
    print(json.dumps({"program": options.program, "variant": options.variant, "code": client.code,
                      "kernels": client.library.client_records(10), "ms_before": round(1e3 * before[0], 3),
                      "wall_percent": ratios[0], "cpu_percent": ratios[1]}))


if __name__ == "__main__":
    sys.exit(main())
