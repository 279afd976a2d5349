#!/usr/bin/env python3
"""What one reading of a process's stacks takes without waking up, of the sources of one tree or more, in turns on one program that runs all
the time.

usage: reading.py [--python PYTHON] [--turns N] [--readings N] TREE...

Prints for each program and tree, in us of CPU: the 10th and 25th percentile and the median of a reading (the median of the turns), calls of
process_vm_readv and samples a reading, and how many were dropped. On a busy machine the lower percentiles are the ones to compare."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

PRELUDE = '''
import sys, threading, time
def down(depth, function):
    return down(depth - 1, function) if depth else function()
def start(count, function):
    for _ in range(count):
        threading.Thread(target=down, args=(40, function), daemon=True).start()
def wait():
    while True:
        time.sleep(0.005)
def hold():
    threading.Event().wait()
def compute():
    while True:
        for number in range(40000):
            len(str(number))
def infer():
    import torch
    torch.set_num_threads(1)
    layers = [layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
    model, one = torch.nn.Sequential(*layers).eval(), torch.randn(1, 64)
    with torch.no_grad():
        while True:
            model(one)
'''
PROGRAMS = {
    "pure Python": "compute()",
    "40 frames deep": "down(40, compute)",
    "20 threads that sleep, 40 deep": "start(20, wait); down(40, compute)",
    "PyTorch, batch 1, 40 deep": "down(40, infer)",
    "PyTorch, 20 threads that sleep, 40 deep": "start(20, wait); down(40, infer)",
    "PyTorch, 20 threads that hold, 40 deep": "start(20, hold); down(40, infer)",
}
SOURCES = [f"observe/stacks/{name}.c" for name in ("sampler", "walk", "names", "interpreter", "layout", "decode", "elf")] + \
          [f"base/{name}.c" for name in ("clock", "error", "list", "buf", "hash", "text")]


def build(tree, out):
    source = pathlib.Path(tree) / "src"
    told = "int most" in (source / "observe/stacks/sampler.h").read_text()
    subprocess.run(["cc", "-O3", "-D_GNU_SOURCE", *(["-DMOST=HEC_STACKS_THREADS,"] if told else []), f"-I{source}",
                    str(pathlib.Path(__file__).with_name("reading.c")), *(str(source / name) for name in SOURCES), "-o", out, "-lm", "-lpthread"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="+")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--readings", type=int, default=500)
    given = parser.parse_args()
    has_torch = subprocess.run([given.python, "-c", "import torch"], capture_output=True).returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        for number, tree in enumerate(given.tree):
            build(tree, f"{folder}/{number}")
        for name, text in PROGRAMS.items():
            if "PyTorch" in name and not has_torch:
                continue
            program = subprocess.Popen([given.python, "-c", PRELUDE + text])
            rows = [[] for _ in given.tree]
            try:
                subprocess.run(["sleep", "8" if "PyTorch" in name else "1"], check=True)
                for turn in range(given.turns):
                    for number in sorted(range(len(given.tree)), reverse=turn % 2 == 1):
                        done = subprocess.run([f"{folder}/{number}", str(program.pid), str(given.readings)], capture_output=True, text=True, check=True)
                        rows[number].append([float(word) for word in done.stdout.split()])
            finally:
                program.kill()
                program.wait()
            for tree, turns in zip(given.tree, rows):
                p10, p25, median, calls, samples, torn = (statistics.median(column) for column in zip(*turns))
                print(json.dumps({"program": name, "tree": tree, "us": [p10, p25, median], "calls": calls, "samples": samples,
                                  "dropped": sum(turn[-1] for turn in turns), "turns": given.turns}), flush=True)


main()
