"""jobs.py FOLDER RESULT: on the simulated machine of `hec run --sim`: the agent, two Slurm jobs that share the device, and the
joules that the agent gives each job against those that its program played."""
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

HEC = os.environ["HEC"]
# case, seconds, begins after: one that has the device and does nothing, then two that overlap for 22 s
LOADS = [("idle-allocated", 12, 0), ("fp32", 30, 16), ("memory-bound", 30, 24)]
IDLE_WATTS = 120  # of the simulated H200 with a context


def metrics(url):
    """{(name, (label, value)...): value}"""
    found = {}
    for line in urllib.request.urlopen(url + "/metrics", timeout=10).read().decode().splitlines():
        match = re.fullmatch(r'(\w+)\{(.*)\} (\S+)', line)
        if match:
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            found[(match[1], *sorted(labels.items()))] = float(match[3])
    return found


def job_script(folder, case, seconds):
    path = f"{folder}/{case}.sh"
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\nexec {HEC} sim {case} --seconds {seconds} --json >{folder}/{case}.json\n")
    return path


def main(folder, result):
    agent = subprocess.Popen([HEC, "agent", "--listen", "127.0.0.1:0", "--scrape-interval", "0",
                              "--state-dir", f"{folder}/agent"], stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://[\d.:]+", agent.stderr.readline())[0]
    time.sleep(10)  # the floor of the free device
    jobs = {}
    began = time.monotonic()
    for case, seconds, after in LOADS:
        time.sleep(max(0, began + after - time.monotonic()))
        jobs[case] = subprocess.run(
            ["sbatch", "--parsable", "-n1", "-o", f"{folder}/{case}.out", job_script(folder, case, seconds)],
            check=True, capture_output=True, text=True).stdout.strip()
    while subprocess.run(["squeue", "-h"], check=True, capture_output=True, text=True).stdout.strip():
        time.sleep(0.5)
    time.sleep(3)
    page = metrics(url)
    agent.terminate()
    agent.wait()
    rows, whole = {}, sum(value for key, value in page.items() if key[0] == "hec_device_energy_joules_total")
    parts = 0.0
    for key, value in page.items():
        if key[0] != "hec_energy_joules_total":
            continue
        labels = dict(key[1:])
        parts += value
        rows.setdefault(labels.get("hpc_job", "-"), {}).setdefault(labels["part"], 0.0)
        rows[labels.get("hpc_job", "-")][labels["part"]] += value
    out = {"device_joules": whole, "sum_of_parts_joules": parts, "parts_by_job": rows, "jobs": {}}
    for case, job in jobs.items():
        with open(f"{folder}/{case}.json") as file:
            truth = json.load(file)
        played = sum(each["joules"] - IDLE_WATTS * each["seconds"] for each in truth["activities"].values())
        active = rows.get(job, {}).get("active", 0.0)
        out["jobs"][job] = {"case": case, "played_dynamic_joules": played, "active_joules": active,
                            "idle_joules": rows.get(job, {}).get("idle", 0.0)}
        if played > 1:
            out["jobs"][job]["error"] = active / played - 1
    text = json.dumps(out, indent=1) + "\n"
    with open(f"{folder}/result.json", "w") as file:
        file.write(text)
    if result != "/dev/stdout":
        with open(result, "w") as file:
            file.write(text)
    good = abs(parts / whole - 1) < 1e-3 and set(jobs.values()) <= set(rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
