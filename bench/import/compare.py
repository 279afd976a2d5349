"""Import against Holistic Trace Analysis (HTA): the same numbers, the time, the memory.

usage: LAUNCH=PROGRAM compare.py HEC TRACES WORK [PYTHON]   LAUNCH: launch.c, built; PYTHON: of a virtual environment with HTA; without it only HEC's side runs.
Exit status 1 where a limit does not hold."""
import glob
import json
import os
import random
import statistics
import subprocess
import sys

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 1e-4  # 0.01 %
FASTER, SMALLER = 20, 5
ROUNDS = 7
COLUMNS = ["compute", "non_compute", "idle", "overlap"]
failed = []


def child(*command):
    """Standard output, wall seconds, CPU seconds and peak KiB of a command, measured by launch.c."""
    done = subprocess.run([os.environ["LAUNCH"], *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    wall, cpu, peak = done.stderr.rsplit("launch: ", 1)[1].split()
    return done.stdout, float(wall), float(cpu), int(peak)


def hec_report(hec, run, files):
    child(hec, "import", "--quiet", "--force", "-o", run, *files)
    return json.loads(child(hec, "report", "--json", run)[0])


def of_hec(timeline):
    return {"window": timeline["window_us"], **{c: timeline[c + "_us"] for c in COLUMNS[:3]},
            "overlap": timeline["comm_overlap"]}


def of_oracle(path, sync=False):
    whole = oracle.breakdown(oracle.load(path), sync)
    comm = whole["comm"]
    return {**{k: whole[k] / 1000 for k in ("window", "compute", "non_compute", "idle")},
            "overlap": whole["overlap"] / comm if comm else None}


def difference(ours, theirs):
    """Largest difference of a time, relative to the window, or of the overlap; the limit's measure."""
    worst = max(abs(ours[c] - theirs[c]) for c in COLUMNS[:3]) / theirs["window"]
    if (ours["overlap"] is None) != (theirs["overlap"] is None):
        return 1.0
    return worst if ours["overlap"] is None else max(worst, abs(ours["overlap"] - theirs["overlap"]))


def row(who, values, note=""):
    overlap = "-" if values["overlap"] is None else f"{values['overlap']:.6f}"
    print(f"  {who:<34}" + "".join(f"{values[c]:>15.3f}" for c in COLUMNS[:3]) + f"{overlap:>12}  {note}")


def check(ok, what):
    if not ok:
        failed.append(what)
    return "" if ok else "  <-- over the limit"


def accuracy(hec, traces, work, python):
    print("Breakdown, microseconds over the whole trace; overlap: share of communication with compute beside it.")
    print("The difference is the largest of the four, relative to the window; limit 0.01 %.\n")
    print(f"  {'':<34}" + "".join(f"{c:>15}" for c in COLUMNS[:3]) + f"{'overlap':>12}")
    groups, ranks = [], [t for t in traces if "_rank-" in t]
    groups = [[t] for t in traces if t not in ranks] + ([ranks] if ranks else [])
    for files in groups:
        report = hec_report(hec, os.path.join(work, "run.hec"), files)
        devices = [d["timeline"] for d in report["devices"]]
        for path, timeline in zip(files, devices, strict=True):
            ours = of_hec(timeline)
            print(os.path.basename(path) + (f"  (one run of {len(files)} ranks)" if len(files) > 1 else ""))
            row("hec", ours)
            exact = of_oracle(path)
            row("recomputed (oracle.py)", exact, f"{difference(ours, exact):.2e}"
                + check(difference(ours, exact) <= LIMIT, path))
            if not python:
                continue
            theirs = json.loads(child(python, os.path.join(HERE, "peer.py"), path, "as_is", "whole", "without_sync")[0])
            row("HTA, kernels, copies, memsets", theirs["without_sync"], f"{difference(ours, theirs['without_sync']):.2e}"
                + check(difference(ours, theirs["without_sync"]) <= LIMIT, path))
            row("HTA, and cuda_sync as busy", theirs["whole"], f"{difference(ours, theirs['whole']):.2e}  (no limit)")
            if theirs["as_is"] != theirs["whole"]:
                row("HTA as is: without the last step", theirs["as_is"], "(another window)")


def speed(hec, path, work, python):
    print(f"\nLoad and analysis of {os.path.basename(path)}, one run each, alternating, {ROUNDS} rounds; median (least).")
    walls, cpus, peaks = {}, {}, {}

    def note(who, wall, cpu, peak):
        walls.setdefault(who, []).append(wall)
        cpus.setdefault(who, []).append(cpu)
        peaks.setdefault(who, []).append(peak / 1024)

    run = os.path.join(work, "run.hec")
    for _ in range(ROUNDS):
        _, wall, cpu, peak = child(hec, "import", "--quiet", "--force", "-o", run, path)
        _, more_wall, more_cpu, more_peak = child(hec, "report", "--json", run)
        note("hec import + hec report --json", wall + more_wall, cpu + more_cpu, max(peak, more_peak))
        out, wall, cpu, peak = child(python, os.path.join(HERE, "peer.py"), path)
        seconds = json.loads(out)["seconds"]
        note("HTA, the whole process", wall, cpu, peak)
        note("HTA, load and analysis alone", seconds["load_and_analysis"], cpu - seconds["importing_hta"], peak)
    print(f"  {'':<34}{'wall s':>18}{'CPU s':>18}{'peak MiB':>10}")
    for who in walls:
        print(f"  {who:<34}" + "".join(f"{statistics.median(v[who]):>10.3f} ({min(v[who]):.3f})" for v in (walls, cpus))
              + f"{max(peaks[who]):>10.1f}")
    ours, theirs = "hec import + hec report --json", "HTA, load and analysis alone"
    faster = statistics.median(walls[theirs]) / statistics.median(walls[ours])
    smaller = min(peaks[theirs]) / max(peaks[ours])
    least = min(walls[theirs]) / min(walls[ours])
    print(f"  faster: {faster:.1f} x by medians, {least:.1f} x by the least (limit {FASTER} x)"
          + check(max(faster, least) >= FASTER, "time"))
    print(f"  memory: 1/{smaller:.1f} (limit 1/{SMALLER})" + check(smaller >= SMALLER, "memory"))


def write_large(path, megabytes):
    """A trace of the usual mix, as long as wanted: 40 operators, 20 launches with their kernels, a copy, per step."""
    chance = random.Random(7)
    with open(path, "w", encoding="ascii") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "deviceProperties": [{"id": 0, "name": "X"}],\n'
                   ' "traceEvents": [\n')
        ts, correlation, first = 1_700_000_000_000_000, 0, True
        while file.tell() < megabytes << 20:
            events = []
            for i in range(40):
                ts += chance.randrange(3, 30)
                events.append(f'{{"ph": "X", "cat": "cpu_op", "name": "aten::op{i}", "pid": 10, "tid": 10, "ts": {ts}, '
                              f'"dur": {chance.randrange(2, 20)}, "args": {{"External id": {correlation}, "Input Dims": '
                              f'[[{i}, 1024], [1024, {i}], []], "Input type": ["float", "float", "Scalar"]}}}}')
                if i % 2:
                    correlation += 1
                    events.append(f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, '
                                  f'"ts": {ts}, "dur": 5, "args": {{"External id": 1, "cbid": 211, "correlation": '
                                  f'{correlation}}}}}')
                    events.append(f'{{"ph": "X", "cat": "kernel", "name": "void kernel{i}<float>(float const*, float*, '
                                  f'int)", "pid": 0, "tid": 7, "ts": {ts + 9}, "dur": {chance.randrange(2, 9)}, "args": '
                                  f'{{"device": 0, "context": 1, "stream": 7, "correlation": {correlation}, "grid": [{i}, '
                                  f'1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}}}}')
            file.write(("" if first else ",\n") + ",\n".join(events))
            first = False
        file.write("\n]}\n")
    return os.path.getsize(path)


def growth(hec, work):
    print("\nMemory and length: synthetic traces, hec import")
    run, trace, peaks = os.path.join(work, "large.hec"), os.path.join(work, "large.json"), []
    for megabytes in (128, 1024):
        size = write_large(trace, megabytes)
        _, wall, cpu, peak = child(hec, "import", "--quiet", "--force", "-o", run, trace)
        peaks.append(peak)
        print(f"  {size / 1e6:8.0f} MB of JSON: {wall:6.2f} s ({size / 1e6 / wall:.0f} MB/s), peak {peak / 1024:6.1f} MiB, "
              f"run file {os.path.getsize(run) / 1e6:.1f} MB")
    report, wall, _, peak = child(hec, "report", "--json", run)
    print(f"  the last has {json.loads(report)['devices'][0]['timeline']['kernels']} kernels; its report takes {wall:.2f} s, "
          f"peak {peak / 1024:.1f} MiB")
    os.remove(trace)
    os.remove(run)
    print(f"  8 times the length takes {peaks[1] / peaks[0]:.2f} times the memory; limit: 128 MiB at 1 GiB"
          + check(peaks[1] <= 128 * 1024, "memory of a long trace"))


def main():
    hec, folder, work = sys.argv[1:4]
    python = sys.argv[4] if len(sys.argv) > 4 else None
    traces = sorted(glob.glob(os.path.join(folder, "*.json*")))
    accuracy(hec, traces, work, python)
    long = [t for t in traces if "trace_diff_control" in t]
    if python and long:
        speed(hec, long[0], work, python)
    growth(hec, work)
    for what in failed:
        print(f"LIMIT: {os.path.basename(what)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
