"""Runs each of programs.py under hec in the default mode and prints what its report says first.

usage: run.py HEC OUT [NAME...]     OUT: a JSON report of each, and judged.md
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# what is right: the first cause, or None for no finding; what must not be said
RIGHT = {
    "recompile": {"cause": "compile"},
    "server": {"cause": "quiet"},
    "cupy_chain": {"not": ["healthy", "scale_out"]},
    "gaussian_process": {"not": ["fp32 without tensor cores"]},
    "dense": {"headline": "healthy"},
    "diverging": {"caveat": "nan"},
    "loader_without_path": {"cause": "data"},
}
FLAGS = {"loader_without_path": ["-E"]}  # of Python: the environment's PYTHONPATH is not looked at
hec, out = sys.argv[1], pathlib.Path(sys.argv[2])
rows = []
for name in sys.argv[3:] or RIGHT:
    run, right = out / f"{name}.hec", RIGHT[name]
    done = subprocess.run([hec, "run", "-f", "-o", run, "--", sys.executable, *FLAGS.get(name, []), HERE / "programs.py", name],
                          capture_output=True, text=True, timeout=240)
    if not run.exists():
        rows.append(f"| {name} | not run: {done.stderr[-200:]!r} | |")
        continue
    report = json.loads(subprocess.run([hec, "report", "--json", run], capture_output=True, text=True, check=True).stdout)
    (out / f"{name}.json").write_text(json.dumps(report))
    text = subprocess.run([hec, "report", run], capture_output=True, text=True, check=True).stdout
    (out / f"{name}.txt").write_text(text)
    first = report["findings"][0]["cause"] if report["findings"] else None
    causes = [(f["cause"], f["title"]) for f in report["findings"]]
    everything = " ".join([report["headline"]] + [title for _, title in causes]).lower()
    good = (("cause" not in right or first == right["cause"])
            and all(word not in everything for word in right.get("not", []))
            and right.get("headline", "") in report["headline"]
            and right.get("caveat", "") in json.dumps(report["caveats"]).lower()
            and report["scale_out"]["verdict"] not in right.get("not", []))
    rows.append(f"| {name} | {'right' if good else '**wrong**'} (exit {done.returncode}) | {report['headline']} |")
    print(rows[-1], flush=True)
(out / "judged.md").write_text("| program | judged | headline |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n")
