"""Time and memory of `hec report --json` by the length of a run; for the longest of `--html` with the size of its page, and of `hec whatif`.

usage: measure.py HEC WORK [JSON]   WORK: folder with make (make.c) and launch (bench/import/launch.c), built
Of each length the best of five is taken: the program does the same work every time, and what else the machine does only
adds. Exit status 1 where a limit does not hold."""
import json
import os
import subprocess
import sys

REPORT = ("report", "--json")
SIZES = [1, 2.5, 5, 10]  # million kernels
ROUNDS = 5
LIMIT_S, LIMIT_MB = 2.0, 500
PAGE_S, PAGE_MB = 3.0, 3.0
WHATIF_S, WHATIF_MB = 3.0, 1000
LIMIT_GROWTH = 1.25  # CPU time a kernel of the longest against the mean of the shorter ones


def measure(hec, work, run, *verb):
    """Wall and CPU seconds and peak MB of a verb, each the least of all rounds."""
    best = None
    for _ in range(ROUNDS):
        done = subprocess.run([f"{work}/launch", hec, *verb, run], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        if verb == REPORT and not json.loads(done.stdout)["devices"][0]["ledger"]:
            sys.exit("the report has no ledger")
        wall, cpu, peak = done.stderr.rsplit("launch: ", 1)[1].split()
        now = (float(wall), float(cpu), int(peak) * 1024 / 1e6)
        best = now if best is None else tuple(map(min, best, now))
    return best


def named(figures):
    return dict(zip(("wall_s", "cpu_s", "peak_mb"), figures))


def main():
    hec, work = sys.argv[1:3]
    rows = []
    for millions in SIZES:
        run = f"{work}/run.hec"
        made = subprocess.run([f"{work}/make", run, str(millions)], check=True, capture_output=True, text=True).stdout
        wall, cpu, peak = measure(hec, work, run, *REPORT)
        if millions == SIZES[-1]:
            page = named(measure(hec, work, run, "report", "-f", "--html", "-o", f"{work}/page.html"))
            page.update(mb=os.path.getsize(f"{work}/page.html") / 1e6, cpu_ratio=page["cpu_s"] / cpu)
            whatif = named(measure(hec, work, run, "whatif", "-e", "graphs"))
        rows.append({"kernels": int(made.split()[0]), "activities": int(made.split()[2]),
                     "file_bytes": os.path.getsize(run), "wall_s": round(wall, 3), "cpu_s": round(cpu, 3),
                     "peak_mb": round(peak, 1), "cpu_ns_per_kernel": round(cpu * 1e3 / millions, 1)})
        os.remove(run)
        print("{kernels:9d} kernels, {activities:9d} activities: {wall_s:6.3f} s, {cpu_s:6.3f} s of CPU, {peak_mb:5.1f} MB"
              " at most, {cpu_ns_per_kernel:6.1f} ns of CPU a kernel".format(**rows[-1]), flush=True)
    print("the page of it: {wall_s:.3f} s, {cpu_s:.3f} s of CPU ({cpu_ratio:.2f} times the report), {peak_mb:.1f} MB at most,"
          " a file of {mb:.2f} MB".format(**page))
    print("one what-if of it: {wall_s:.3f} s, {cpu_s:.3f} s of CPU, {peak_mb:.1f} MB at most".format(**whatif))
    before = [r["cpu_ns_per_kernel"] for r in rows[:-1]]
    growth = rows[-1]["cpu_ns_per_kernel"] / (sum(before) / len(before))
    last = rows[-1]
    checks = [("time", last["wall_s"], LIMIT_S, "s"), ("memory", last["peak_mb"], LIMIT_MB, "MB"),
              ("CPU time a kernel against the shorter runs", round(growth, 3), LIMIT_GROWTH, "x"),
              ("time of the page", round(page["wall_s"], 3), PAGE_S, "s"), ("the page", round(page["mb"], 2), PAGE_MB, "MB"),
              ("time of a what-if", round(whatif["wall_s"], 3), WHATIF_S, "s"),
              ("memory of a what-if", round(whatif["peak_mb"], 1), WHATIF_MB, "MB")]
    for what, value, limit, unit in checks:
        print(f"{what}: {value} {unit} (limit {limit}){'' if value <= limit else '  FAILED'}")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as out:
            json.dump({"runs": rows, "growth": round(growth, 3), "page": {key: round(value, 3) for key, value in page.items()},
                       "whatif": {key: round(value, 3) for key, value in whatif.items()},
                       "limits": {"wall_s": LIMIT_S, "peak_mb": LIMIT_MB, "growth": LIMIT_GROWTH, "page_s": PAGE_S,
                                  "page_mb": PAGE_MB, "whatif_s": WHATIF_S, "whatif_mb": WHATIF_MB}}, out, indent=1)
            out.write("\n")
    sys.exit(any(value > limit for _, value, limit, _ in checks))


main()
