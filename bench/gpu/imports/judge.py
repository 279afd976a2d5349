"""What hec says of the traces of make.py, beside what was measured.

usage: judge.py HEC DIRECTORY     prints a table, writes DIRECTORY/judged.json
"""
import json
import pathlib
import subprocess
import sys

hec, folder = sys.argv[1], pathlib.Path(sys.argv[2])
truth, judged = json.loads((folder / "truth.json").read_text()), {}
print(f"{'trace':16} {'cause':9} {'found':9} {'measured':>9}  predicted")
for name, true in truth.items():
    run = folder / f"{name}.hec"
    subprocess.run([hec, "import", "-q", "-f", "-o", run, folder / f"{name}.json.gz"], check=True)
    report = json.loads(subprocess.run([hec, "report", "--json", run], check=True, capture_output=True, text=True).stdout)
    run.unlink()
    finding = report["findings"][0] if report["findings"] else {"cause": "none", "predicted": {"seconds_fraction": [0, 0, 0]}}
    low, best, high = finding["predicted"]["seconds_fraction"]
    judged[name] = {**true, "found": finding["cause"], "predicted": [low, best, high],
                    "right": finding["cause"] == true["cause"], "holds": low <= true["saves"] <= high}
    print(f"{name:16} {true['cause']:9} {finding['cause']:9} {100 * true['saves']:7.1f} %  {100 * best:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
          f"{'' if judged[name]['right'] else '  WRONG'}{'' if judged[name]['holds'] else '  interval misses'}")
(folder / "judged.json").write_text(json.dumps(judged, indent=1) + "\n")
