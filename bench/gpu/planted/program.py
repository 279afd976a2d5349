"""One planted program: `program.py NAME [--fixed | --fix CAUSE]`. Prints JSON: units of work done and the seconds they took.

Warm-up (3 steps) is not counted. --scale does a part of the work; --device cpu --tiny tries the logic without a GPU. --serve waits
for orders instead (serve.py): with the joules of --card (the first of several ranks') where one is named; else HEC records the
program, and it does nothing before its first order.
"""
import argparse
import json
import os
import time

import torch

import busy
import pairs
import ranks
import starved
from common import PROGRAMS, Setup
from serve import first_order, serve

assert busy and pairs and ranks and starved  # imported for what they register


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--fixed", action="store_true", help="all that is planted in it")
    parser.add_argument("--fix", metavar="CAUSE", help="one of two that are planted")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--card", type=int)
    options = parser.parse_args()
    torch.manual_seed(0)
    rank = int(os.environ.get("LOCAL_RANK", 0))
    order = first_order(rank) if options.serve and options.card is None else None
    if options.device == "cuda":
        torch.cuda.set_device(rank)
    function, work = PROGRAMS[options.name]
    step, units = function(Setup(options.fixed, options.device, options.tiny, options.fix))
    steps = 2 if options.tiny else max(1, round(options.scale * work / units))
    finish = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for _ in range(0 if work == 1 else 3):
        step()
    finish()
    if options.serve:
        serve(step, units, finish, options.card, order, torch.distributed if torch.distributed.is_initialized() else None)
    else:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        seconds = time.perf_counter() - start
        if rank == 0:
            print(json.dumps({"name": options.name, "fixed": options.fixed, "units": steps * units, "seconds": seconds}), flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
