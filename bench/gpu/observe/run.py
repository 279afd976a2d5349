"""Accuracy and cost of `hec run` on a real GPU: one script, run once, results as JSON and Markdown.

    python3 bench/gpu/observe/run.py --hec HEC --out FOLDER [--seconds 12] [--parts accuracy,start,cost,overhead]

accuracy: real programs under `hec run`, with an independent witness of the energy counter (watch.c) beside them.
cost:     hec's own CPU time beside a program and no witness.
start:    what `hec run -- true` takes longer than `true`.
overhead: the slowdown of the observed loop, on and off interleaved inside one process (overhead.py).
"""
import argparse
import bisect
import json
import math
import os
import pathlib
import platform
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["resnet18", "resnet18_bf16", "resnet18_pageable", "transformer", "gemm", "copies", "small_kernels",
            "loader", "idle_context", "jax_mlp"]
QUANTUM_S = 0.1


def sh(command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


def meta(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return dict(db.execute("SELECT key, value FROM meta"))


def witness_joules(edges, start_ns, end_ns):
    """The counter between two times: as a plain reader would have it (the value current at each end), and interpolated
    between the edges around each end. Joules."""
    times = [(before + after) / 2 for before, after, _ in edges]

    def raw(t):
        return edges[bisect.bisect_right(times, t) - 1][2]

    def smooth(t):
        i = bisect.bisect_right(times, t)
        if i == 0 or i == len(times):
            return math.nan
        share = (t - times[i - 1]) / (times[i] - times[i - 1])
        return edges[i - 1][2] + share * (edges[i][2] - edges[i - 1][2])

    return (raw(end_ns) - raw(start_ns)) / 1e3, (smooth(end_ns) - smooth(start_ns)) / 1e3


def accuracy(hec, out, seconds, watch, programs):
    rows = []
    for name in programs:
        run_file = out / f"{name}.hec"
        edges_path = out / f"{name}.edges"
        with open(edges_path, "w") as edges_file:
            watcher = subprocess.Popen([watch, "0"], stdout=edges_file)
            time.sleep(0.5)
            done = sh([hec, "run", "-f", "-q", "-o", str(run_file), "--", sys.executable, str(HERE / "programs.py"), name, str(seconds)])
            time.sleep(0.3)
            watcher.terminate()
            watcher.wait()
        units = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("units ")]
        report = sh([hec, "report", "--json", *(["--units", units[0]] if units else []), str(run_file)])
        row = {"program": name, "status": done.returncode, "stderr": done.stderr[-400:]}
        if report.returncode == 0:
            row.update(compare(json.loads(report.stdout), meta(run_file), edges_path))
        else:
            row["error"] = report.stderr
        edges_path.unlink()
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def compare(report, facts, edges_path):
    device = report["devices"][0]
    energy = device["energy"]
    edges = [tuple(map(int, line.split())) for line in edges_path.read_text().splitlines()]
    start = int(facts["start_mono_ns"])
    raw, smooth = witness_joules(edges, start, start + int(facts["duration_ns"]))
    mean_w = device["power_w"]["mean"]
    quantum_j = QUANTUM_S * mean_w
    row = {"seconds": report["run"]["seconds"], "joules": energy["joules"], "bound": energy["bound_joules"],
           "valid": energy["valid"], "why": energy.get("why"), "method": energy["method"],
           "witness_raw": raw, "witness_interpolated": smooth, "quantum_j": quantum_j,
           "disagreement": energy["disagreement"], "coverage": energy["coverage"], "mean_w": mean_w,
           "finding": report["findings"][0]["cause"] if report["findings"] else None,
           "evidence": [fact["text"] for finding in report["findings"][:1] for fact in finding["evidence"]],
           "utilisation": device["utilisation"], "units": report.get("units"),
           "self": report["self"], "split": energy["split"]}
    if energy["joules"] is not None:
        row["error_raw_quanta"] = (energy["joules"] - raw) / quantum_j
        row["error_interpolated_quanta"] = (energy["joules"] - smooth) / quantum_j
        row["inside_bound"] = abs(energy["joules"] - smooth) <= energy["bound_joules"]
    return row


def start_cost(hec, out, rounds=30):
    """Interleaved, so that a drift of the machine meets both alike. Milliseconds."""
    times = {"true": [], "hec run -- true": []}
    run_file = out / "true.hec"
    for _ in range(rounds):
        for name, command in (("true", ["true"]), ("hec run -- true", [hec, "run", "-f", "-q", "-o", str(run_file), "--", "true"])):
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times[name].append(1e3 * (time.perf_counter() - begin))
    to_command = []
    for _ in range(10):
        sh([hec, "run", "-f", "-q", "-o", str(run_file), "--", "sleep", "0.5"])
        to_command.append(int(meta(run_file)["start_cost_ns"]) / 1e6)
    run_file.unlink(missing_ok=True)
    return {"median_ms": {k: statistics.median(v) for k, v in times.items()},
            "before_the_command_starts_ms": {"median": statistics.median(to_command), "max": max(to_command)}}


def cost(hec, out, seconds):
    """CPU time of hec beside a real program and no witness (whose polling contends for the driver): the whole run, and
    the steady state from the 5th second on."""
    run_file = out / "cost.hec"
    sh([hec, "run", "-f", "-q", "-o", str(run_file), "--", sys.executable, str(HERE / "programs.py"), "resnet18", str(seconds)])
    report = json.loads(sh([hec, "report", "--json", str(run_file)]).stdout)
    with sqlite3.connect(f"file:{run_file}?mode=ro", uri=True) as db:
        series = db.execute("SELECT t_ns, value FROM sample WHERE metric = 'self_cpu' AND t_ns >= 5e9 ORDER BY t_ns").fetchall()
    (t0, cpu0), (t1, cpu1) = series[0], series[-1]
    return {"seconds": report["run"]["seconds"], "cpu_share": report["self"]["cpu_share"],
            "steady_cpu_share": (cpu1 - cpu0) / 1e6 / ((t1 - t0) / 1e9), "rss_max_bytes": report["self"]["rss_max_bytes"],
            "file_bytes": report["self"]["file_bytes"]}


def overhead(hec, out, name, pairs, seconds):
    run_file = out / f"overhead-{name}.hec"
    done = sh([hec, "run", "-f", "-q", "-o", str(run_file), "--", sys.executable, str(HERE / "overhead.py"), name, str(pairs), str(seconds)])
    result = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": done.stderr[-500:]}
    run_file.unlink(missing_ok=True)
    return result


def machine():
    query = "name,driver_version,power.limit"
    smi = sh(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]).stdout.strip().splitlines()
    versions = sh([sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda)"]).stdout.strip()
    return {"date": time.strftime("%Y-%m-%d"), "gpu": smi[0] if smi else "none", "torch_cuda": versions,
            "python": platform.python_version(), "kernel": platform.release(), "cpus": os.cpu_count()}


def markdown(result):
    lines = ["# `hec run` on a real GPU: accuracy and cost", ""]
    lines += [f"- {key}: {value}" for key, value in result["machine"].items()]
    lines += [f"- command: `{result['command']}`", ""]
    if "accuracy" in result:
        lines += ["Joules by HEC against an independent reading of the counter over the same window. A quantum is 0.1 s × mean W.", "",
                  "| program | s | mean W | HEC J | ± bound | witness J | error, quanta | integral vs counter | valid | first finding |",
                  "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
        for r in result["accuracy"]:
            if r.get("joules") is None:
                lines.append(f"| {r['program']} | | | | | | | | no: {r.get('why') or r.get('error')} | |")
                continue
            lines.append(f"| {r['program']} | {r['seconds']:.1f} | {r['mean_w']:.0f} | {r['joules']:.1f} | {r['bound']:.1f} | "
                         f"{r['witness_interpolated']:.1f} | {r['error_interpolated_quanta']:+.3f} | {100 * r['disagreement']:+.2f} % | "
                         f"{r['valid']} | {r['finding']} |")
        lines.append("")
    if "start" in result:
        s = result["start"]
        lines += [f"Start: {s['median_ms']['true']:.1f} ms for `true`, {s['median_ms']['hec run -- true']:.1f} ms for `hec run -- true` "
                  f"(medians); the command starts {s['before_the_command_starts_ms']['median']:.1f} ms after hec "
                  f"(largest {s['before_the_command_starts_ms']['max']:.1f}).", ""]
    if "cost" in result:
        c = result["cost"]
        lines += [f"HEC's CPU over {c['seconds']:.0f} s: {100 * c['cpu_share']:.2f} % of a core; from the 5th second on "
                  f"{100 * c['steady_cpu_share']:.2f} %. Memory {c['rss_max_bytes'] / 1e6:.1f} MB, run file {c['file_bytes'] / 1e3:.0f} kB.", ""]
    for o in result.get("overhead", []):
        if "error" in o:
            lines.append(f"Overhead: failed: {o['error']}")
        else:
            lines.append(f"Overhead, {o['loop']} loop: {o['slowdown_percent']:+.3f} % (95 % interval {o['ci95_percent'][0]:+.3f} to "
                         f"{o['ci95_percent'][1]:+.3f} %; {o['pairs']} interleaved pairs of {o['block_s']} s blocks).")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hec", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--parts", default="accuracy,start,cost,overhead")
    parser.add_argument("--pairs", type=int, default=30)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    watch = str(options.out / "watch")
    subprocess.run(["cc", "-O2", "-o", watch, str(HERE / "watch.c"), "-ldl"], check=True)
    result = {"machine": machine(), "command": " ".join(["python3", "bench/gpu/observe/run.py", *sys.argv[1:]])}
    parts = options.parts.split(",")
    if (options.out / "observe.json").exists():  # parts may be measured in several calls
        result = {**json.loads((options.out / "observe.json").read_text()), **result}
    if "accuracy" in parts:
        result["accuracy"] = accuracy(options.hec, options.out, options.seconds, watch, options.programs.split(","))
    if "start" in parts:
        result["start"] = start_cost(options.hec, options.out)
    if "cost" in parts:
        result["cost"] = cost(options.hec, options.out, 30)
    if "overhead" in parts:
        result["overhead"] = [overhead(options.hec, options.out, "resnet18", options.pairs, 2.0),
                              overhead(options.hec, options.out, "launch", 6 * options.pairs, 0.25)]
    os.unlink(watch)
    (options.out / "observe.json").write_text(json.dumps(result, indent=1))
    (options.out / "observe.md").write_text(markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
