#!/usr/bin/env python3
"""What it costs to read stacks from outside, and what the program notices: in turns, on one program that runs all the time.

usage: cost.py HEC [--python PYTHON] [--turns N] [--seconds S]

The program works in blocks and notes when each ended. hec is attached to it in every other turn. Prints for each program the share of a
core that the reading took (the CPU time of that thread; later: without the first 1.5 s, in which the interpreter is found), and how much more CPU time a block of the program took with it than without: the
median ratio of neighbouring turns, with the 95 % interval of a bootstrap."""
import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = {
    "pure Python": '''
def block():
    total = 0
    for number in range(40000):
        total += len(str(number))
''',
    "calls, 40 deep": '''
def down(depth, number):
    return down(depth - 1, number) + 1 if depth else len(str(number))
def block():
    for number in range(1500):
        down(40, number)
''',
    "json and regular expressions": '''
import json, re
text = json.dumps([{"name": "n%d" % i, "value": i, "list": list(range(10))} for i in range(200)])
def block():
    for _ in range(5):
        found = json.loads(text)
        re.sub(r"n(\\d+)", lambda match: match[1], text)
''',
    "PyTorch, batch 1": '''
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]).eval()
one = torch.randn(1, 64)
def block():
    with torch.no_grad():
        for _ in range(40):
            model(one)
''',
    "PyTorch, 20 threads that sleep 40 deep": '''
import threading, time, torch
def wait():
    while True:
        time.sleep(0.005)
def down(depth, function):
    return down(depth - 1, function) if depth else function()
for _ in range(20):
    threading.Thread(target=down, args=(40, wait), daemon=True).start()
torch.set_num_threads(1)
model = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]).eval()
one = torch.randn(1, 64)
def block():
    with torch.no_grad():
        for _ in range(40):
            model(one)
''',
    "eight threads that wait": '''
import threading, time
def wait():
    while True:
        time.sleep(0.005)
for _ in range(8):
    threading.Thread(target=wait, daemon=True).start()
def block():
    total = 0
    for number in range(40000):
        total += len(str(number))
''',
}
LOOP = '''
import os, sys, time
print("ready", flush=True)
out = os.fdopen(int(sys.argv[1]), "wb", 0)
while True:
    block()
    out.write(time.thread_time_ns().to_bytes(8, "little"))
'''


class Program:
    def __init__(self, python, text):
        self.read, write = os.pipe()
        os.set_blocking(self.read, False)
        self.process = subprocess.Popen([python, "-c", text + LOOP, str(write)], pass_fds=[write], stdout=subprocess.PIPE)
        os.close(write)
        if self.process.stdout.readline() != b"ready\n":
            sys.exit("the program did not start")

    def blocks(self):
        """CPU time of those that ended since the last call, in ns."""
        data = b""
        while True:
            try:
                part = os.read(self.read, 1 << 20)
            except BlockingIOError:
                break
            data += part
        ends = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]
        return [later - earlier for earlier, later in zip(ends, ends[1:])]

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.read)


def threads(pid):
    """CPU time in ns, and how often each waited, by thread."""
    seen = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as times, open(f"/proc/{pid}/task/{tid}/status") as status:
            waits = [line.split()[1] for line in status if line.startswith("voluntary_ctxt_switches")]
            seen[tid] = (int(times.read().split()[0]), int(waits[0]))
    return seen


def attached(hec, pid, seconds, path):
    """Of the thread that reads: CPU time in s and the time that it is of, all in all and without the first 1.5 s; how often it woke up in
    these; samples."""
    process = subprocess.Popen([hec, "attach", "-q", "-f", "-s", str(seconds), "-o", path, str(pid)])
    time.sleep(1.5)
    first, began = threads(process.pid), time.monotonic()
    time.sleep(seconds - 2)
    last, ended = threads(process.pid), time.monotonic()
    if process.wait():
        sys.exit("hec attach failed")
    reader = max(set(first) & set(last), key=lambda tid: last[tid][1] - first[tid][1])
    with sqlite3.connect(path) as file:
        meta = dict(file.execute("select key, value from meta"))
        samples, = file.execute("select coalesce(sum(n), 0) from activity_block where kind = 'stack'").fetchone()
    return (float(meta["self_cpu_seconds.stacks"]), float(meta["duration_ns"]) / 1e9, (last[reader][0] - first[reader][0]) / 1e9, ended - began,
            last[reader][1] - first[reader][1], samples)


def measure(hec, python, text, turns, seconds, folder):
    program = Program(python, text)
    time.sleep(1)
    program.blocks()
    medians, sums = [[], []], [0.0] * 6
    for turn in range(2 * turns):
        on = (turn + turn // 2) % 2  # 0 1 1 0: a drift cancels
        if on:
            took = attached(hec, program.process.pid, seconds, os.path.join(folder, "run.hec"))
            sums = [sum(pair) for pair in zip(sums, took)]
        else:
            time.sleep(seconds)
        medians[on].append(statistics.median(program.blocks()))
    program.end()
    ratios = [on / off for off, on in zip(*medians)]
    draws = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(4000))
    cpu, total, steady_cpu, steady, wakeups, samples = sums
    return {"core_percent": 100 * cpu / total, "later_core_percent": 100 * steady_cpu / steady, "wakeups_per_s": wakeups / steady,
            "us_a_wakeup": 1e6 * steady_cpu / wakeups, "samples_per_s": samples / total, "turns": turns,
            "slower_percent": [round(100 * (x - 1), 2) for x in (draws[100], statistics.median(ratios), draws[-101])]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hec")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROGRAMS.items():
            if "torch" in text and subprocess.run([given.python, "-c", "import torch"], capture_output=True).returncode:
                continue
            print(json.dumps({"program": name, **measure(given.hec, given.python, text, given.turns, given.seconds, folder)}), flush=True)


main()
