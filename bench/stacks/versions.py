#!/usr/bin/env python3
"""Whether stacks from outside name the lines of each version of Python.

usage: versions.py HEC PYTHON...      a PYTHON may be a command: "chroot /srv/sid /usr/bin/python3.14"

A program waits 31.1 ms on one line and 10.7 ms on another (74.4 and 25.6 %), and then computes in a loop that gives up no lock, before a
call that does. Prints for each interpreter its version, samples taken and dropped, the share of both lines, and that of the loop."""
import csv
import io
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

PROGRAM = '''
import functools, os, time
def long():
    time.sleep(0.0311)

class Program:
    def short(self):
        list(map(time.sleep, [0.0107]))

    def step(self):
        functools.reduce(lambda _, function: function(), [long, self.short], None)

def busy():
    end = time.perf_counter() + 0.003
    total = 0
    while time.perf_counter() < end:
        total += len(str(total))

for _ in range(100):
    Program().step()
for _ in range(600):
    busy()
    os.stat("/")
'''


def main():
    hec, *pythons = sys.argv[1:]
    if not pythons:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        for python in pythons:
            command = [*shlex.split(python), "-c", PROGRAM]
            version = subprocess.run([*command[:-1], "import sys; print(sys.version.split()[0])"], text=True, capture_output=True,
                                     check=True).stdout.strip()
            path = folder + "/run.hec"
            subprocess.run([hec, "run", "-q", "-f", "-o", path, "--", *command], check=True)
            text = subprocess.run([hec, "export", "--csv", "-o", "-", path], text=True, capture_output=True, check=True).stdout
            lines = [int(found[1]) for row in csv.DictReader(io.StringIO(text)) if row["kind"] == "stack"
                     and (found := re.search(r"\(<string>:(\d+)\)$", row["name"]))]
            waits = [line for line in lines if line in (4, 8)]
            rest = [line for line in lines if line >= 13]
            with sqlite3.connect(path) as file:
                taken, = file.execute("select value from meta where key = 'stacks.outside'").fetchone()
            print(json.dumps({"python": version, "taken": taken, "long_percent": round(100 * waits.count(4) / len(waits), 1),
                              "loop_percent": round(100 * sum(14 <= line <= 17 for line in rest) / len(rest), 1)}), flush=True)


main()
