"""cases.py FOLDER KIND: on the simulated machine of `hec run --sim`: the agent, a real Slurm and a real Prometheus, and what the agent says of
the cluster's jobs. Prints JSON. Each case is one thing that a site asks for; `good` says whether it is so."""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import cluster

sys.path.insert(0, str(cluster.ROOT / "tests" / "e2e"))
from agent_common import Page  # noqa: E402
from prometheus import Prometheus  # noqa: E402

HEC = os.environ["HEC"]
HERE = pathlib.Path(__file__).parent
USERS = ("games", "daemon")  # of Debian's base system
IDLE_WATTS = 120  # of the simulated H200 with a context
SCRAPE = 15
ENERGY = "hec_energy_joules_total"


class Site:
    def __init__(self, folder, kind):
        self.folder = pathlib.Path(folder)
        self.jobs, self.log = self.folder / "jobs", []
        self.began, self.bills = time.time(), []  # (jobs, joules)
        (self.folder / "run").mkdir()
        self.serve_world()
        self.listen_log()
        self.slurm = None
        jobs_socket = self.folder / "run" / "agent.sock"
        with open(self.folder / "agent.log", "w") as log:
            self.agent = subprocess.Popen([HEC, "agent", "--listen", "127.0.0.1:0", "--scrape-interval", str(SCRAPE), "--state-dir", f"{folder}/agent",
                                           "--jobs", jobs_socket, "--hpc-job-mapping-dir", self.jobs, "--window", "3", "--window-every", "6"], stderr=log)
        found = cluster.until(lambda: re.search(r"http://([\d.:]+)", (self.folder / "agent.log").read_text()), "the agent does not listen")
        self.address = found[1]
        self.slurm = cluster.Slurm(self.folder, kind, {"HEC_AGENT": self.address, "HEC_JOB_MAP": str(self.jobs),
                                                       "HEC_AGENT_SOCKET": str(jobs_socket), "HEC_ARRAY_TASKS": "1", "HEC_PREFIX": str(pathlib.Path(HEC).resolve().parents[1])})
        (self.folder / "prometheus").mkdir()
        self.prometheus = Prometheus(self.folder / "prometheus", [{"targets": [self.address]}], interval=f"{SCRAPE}s", rules_interval="60s")

    def serve_world(self):
        """Other users cannot open the machine by its path in another process, but by a descriptor that they are given."""
        world = os.open(os.environ["HEC_SIM_WORLD"], os.O_RDWR)
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(self.folder / "world.sock"))
        door.listen(64)
        os.chmod(self.folder / "world.sock", 0o666)

        def serve():
            while True:
                peer = door.accept()[0]
                with contextlib.suppress(OSError), peer:
                    socket.send_fds(peer, [b"w"], [world])

        threading.Thread(target=serve, daemon=True).start()

    def listen_log(self):
        """What the epilog says to syslog, where nobody else listens."""
        if os.path.exists("/dev/log"):
            raise RuntimeError("/dev/log is somebody's: this bench reads what the epilog logs")
        syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        syslog.bind("/dev/log")

        def read():
            while True:
                self.log.append(syslog.recv(4096).decode())

        threading.Thread(target=read, daemon=True).start()

    def close(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/dev/log")
        if self.slurm:
            self.slurm.close()
            self.prometheus.close()
        self.agent.terminate()
        self.agent.wait(30)

    def page(self, path="/metrics/now"):
        import urllib.request
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return Page(answer.read().decode())

    def play(self, case, seconds, *options, user=USERS[0], step=False, report=False):
        """A job that plays a case. Its id, and the file in which it says what it played."""
        said = self.folder / f"played-{time.monotonic_ns()}"
        said.touch(0o666)
        said.chmod(0o666)
        command = f"/usr/bin/python3 {HERE}/play.py {HEC} sim {case} --seconds {seconds} --json >{said}"
        script = f"{'srun ' if step else 'exec '}{command}\n" if not isinstance(step, int) or isinstance(step, bool) else f"srun {command}\n" * step
        env = {key: value for key, value in os.environ.items() if key not in ("HEC_SOCKET", "HEC_TRACE_SOCKET")}
        env["BENCH_WORLD"] = str(self.folder / "world.sock")
        if not report:
            env["CUDA_INJECTION64_PATH"] = "/nowhere"  # task_prolog.sh leaves it alone
        return self.slurm.submit(script, *options, user=user, env=env), said

    def joules(self, job, path="/metrics/now", **labels):
        return self.page(path).sum(ENERGY, hpc_job=job, **labels)

    def lag(self):
        """Until all joules are shown, and scraped."""
        time.sleep(2 * SCRAPE + 5)


def played(path):
    made = json.loads(path.read_text())
    return sum(each["joules"] for each in made["activities"].values())


def identity(site):
    """Twenty short jobs of two users, half of them as a step: none loses its id, no joule of theirs is somebody else's."""
    jobs = {}
    for number in range(20):
        user, step = USERS[number % 2], number % 4 > 1
        job, _ = site.play("fp32", 3, user=user, step=step)
        jobs[job] = (user, "0" if step else "batch")
    site.slurm.wait()
    time.sleep(8)
    page = site.page()
    lost = {job for job in jobs if not page.sum(ENERGY, hpc_job=job, part="active") > 500}
    strangers = [labels for labels, value in page.all(ENERGY, part="active") if labels.get("hpc_job") not in jobs and value > 0]
    wrong = [labels for labels, _ in page.all(ENERGY) if labels.get("hpc_job") in jobs and labels.get("user") != jobs[labels["hpc_job"]][0]]
    steps = {job for job, (_, step) in jobs.items() if page.sum(ENERGY, hpc_job=job, hpc_step=step, part="active") > 500}
    return {"jobs": len(jobs), "lost": sorted(lost), "active_of_others": strangers, "wrong_user": wrong, "steps_named": len(steps),
            "good": not lost and not strangers and not wrong and len(steps) == len(jobs)}


def short(site, count, seconds, gap):
    """Jobs shorter than a scrape. What is billed of them is asked at the end."""
    jobs = {}
    for number in range(count):
        job, said = site.play("fp32", seconds, user=USERS[number % 2])
        jobs[job] = said
        site.slurm.wait()
        time.sleep(gap)
    time.sleep(8)
    counted = sum(site.joules(job) for job in jobs)
    site.bills.append((list(jobs), counted))
    program = sum(played(said) for said in jobs.values())
    return {"jobs": count, "seconds": seconds, "counted_joules": counted, "played_joules": program, "good": counted > program}


def many(site):
    """Sixty jobs of 2 s, one behind the other: each is seen by its number when it ends, and no joule has a shared row."""
    jobs, lost, began = [], [], time.monotonic()
    for number in range(60):
        job, _ = site.play("fp32", 2, user=USERS[number % 2])
        jobs.append(job)
        site.slurm.wait()
        lost += [] if site.joules(job) > 500 else [job]
    took = time.monotonic() - began
    site.lag()
    billed = {sample["metric"]["hpc_job"] for sample in site.prometheus.ask(f'sum by (hpc_job) (max_over_time({ENERGY}{{part="active"}}[30m])) > 300')
              if "hpc_job" in sample["metric"]}
    shared = site.page().sum(ENERGY, command="(other)")
    return {"jobs": len(jobs), "seconds": took, "lost": lost, "not_in_prometheus": sorted(set(jobs) - billed), "joules_of_others": shared,
            "rows": len({tuple(sorted((key, value) for key, value in labels.items() if key != "part")) for labels, _ in site.page().all(ENERGY)}),
            "good": not lost and not set(jobs) - billed and shared == 0}


def bill(site):
    """Of those jobs, a while later: by increase(), which extrapolates half a scrape behind a series' end, and by what is exact."""
    site.lag()
    window, out = f"{int(time.time() - site.began)}s", []
    for jobs, counted in site.bills:
        series = f'{ENERGY}{{hpc_job=~"{"|".join(jobs)}"}}[{window}]'
        billed = [float(site.prometheus.ask(expression)[0]["value"][1]) / counted - 1
                  for expression in (f"sum(increase({series}))", f"sum(max_over_time({series}) - min_over_time({series}))")]
        out.append({"jobs": len(jobs), "increase_off": billed[0], "last_less_first_off": billed[1]})
    return {"bills": out, "good": all(abs(each["increase_off"]) <= 0.02 and abs(each["last_less_first_off"]) < 1e-3 for each in out)}


def steps(site):
    """A job of three steps, and an array of three tasks: labels."""
    job, _ = site.play("fp32", 4, step=3)
    site.slurm.wait()
    array, _ = site.play("fp32", 4, "--array=5-7", user=USERS[1])
    site.slurm.wait()
    time.sleep(8)
    page = site.page()
    named = sorted({labels.get("hpc_step") for labels, value in page.all(ENERGY, hpc_job=job, part="active") if value > 100})
    tasks = sorted({labels["hpc_array_task"] for labels, _ in page.all(ENERGY) if labels.get("hpc_array_task", "").startswith(f"{array}_")})
    return {"steps": named, "array": array, "array_tasks": tasks, "good": named == ["0", "1", "2"] and tasks == [f"{array}_{n}" for n in (5, 6, 7)]}


def epilog(site):
    """What the epilog logs of three jobs, against what each played."""
    out = []
    for seconds, step in ((10, False), (20, True), (45, False)):
        job, said = site.play("fp32", seconds, step=step)
        site.slurm.wait()
        line = cluster.until(lambda: next((line for line in site.log if f"job {job} of" in line), None), lambda: f"no line of {job}: {site.log}")
        logged = float(re.search(r": (\d+) J on this node", line)[1])
        time.sleep(5)
        out.append({"job": job, "logged_joules": logged, "counted_joules": site.joules(job), "played_joules": played(said)})
    # what is counted after that is of the seconds until the job's GPU is free
    return {"jobs": out, "good": all(0.99 * each["played_joules"] <= each["logged_joules"] <= each["counted_joules"] for each in out)}


def reports(site):
    """A job that reports by task_prolog.sh: windows, `hec record` by its number, by its owner and not by others; what it showed does not
    grow after its end."""
    job, _ = site.play("data-starved", 60, report=True)
    agent = f"--agent={site.folder}/run/agent.sock"
    seen = cluster.until(lambda: site.page().sum("hec_job_state_seconds_total", hpc_job=job), lambda: site.page().text, 90)
    file = site.folder / "recorded.hec"
    record = [HEC, "record", agent, "--job", job, "-s", "3"]
    mine = subprocess.run([*record, "-o", file], capture_output=True, text=True, timeout=120)
    cause = ""
    if mine.returncode == 0:
        made = json.loads(subprocess.run([HEC, "report", "--json", file], capture_output=True, text=True, timeout=120).stdout)
        cause = made["findings"][0]["cause"] if made.get("findings") else ""
    theirs = subprocess.run(["runuser", "-u", USERS[1], "--", *record, "-o", "/tmp/hec-theirs"], capture_output=True, text=True, timeout=120)
    site.slurm.wait()
    ended = time.monotonic()
    seconds = []
    while time.monotonic() - ended < 70:
        seconds.append(site.page().sum("hec_job_seconds_total", hpc_job=job))
        time.sleep(2)
    grew = [value for value in seconds if value]
    return {"job": job, "state_seconds": seen, "record": mine.returncode, "record_said": mine.stderr.strip()[-300:], "cause": cause,
            "record_by_another_user": theirs.returncode, "another_user_is_told": theirs.stderr.strip()[-300:],
            "seconds_at_the_end": grew[0] if grew else None, "seconds_70_s_later": grew[-1] if grew else None,
            "good": mine.returncode == 0 and theirs.returncode != 0 and bool(grew) and grew[-1] - grew[0] <= 3}


def allocated(site):
    """A job that has the GPU and does not use it: the device is allocated, its idle joules the job's."""
    job = site.slurm.submit("sleep 20\n", user=USERS[1])
    time.sleep(16)
    page = site.page()
    found = {"job": job, "idle_joules": page.sum(ENERGY, hpc_job=job, part="idle", user=USERS[1]),
             "state": page.sum("hec_device_state_seconds_total", state="idle_allocated"),
             "dcgm": [labels.get("hpc_job") for labels, _ in page.all("DCGM_FI_DEV_GPU_UTIL")]}
    site.slurm.wait()
    time.sleep(12)
    left = {path.name: path.read_text() for path in site.jobs.glob("[0-9]*")}
    return {**found, "map_after": left, "good": found["idle_joules"] > 500 and found["dcgm"] == [job] and not any(left.values())}


def share(site):
    """A job that has a context and does nothing, then two that overlap for 22 s: active joules against what each played above idle."""
    time.sleep(10)
    runs = []
    began = time.monotonic()
    for (case, seconds, after), user in zip((("idle-allocated", 12, 0), ("fp32", 30, 16), ("memory-bound", 30, 24)), (*USERS, USERS[0])):
        time.sleep(max(0, began + after - time.monotonic()))
        job, said = site.play(case, seconds, "--gpus=0", user=user)
        runs.append((case, seconds, job, said))
    site.slurm.wait()
    time.sleep(8)
    out = []
    for case, seconds, job, said in runs:
        made = json.loads(said.read_text())["activities"].values()
        true = sum(each["joules"] - IDLE_WATTS * each["seconds"] for each in made)
        active = site.joules(job, part="active")
        out.append({"job": job, "case": case, "played_dynamic_joules": true, "active_joules": active, "error": active / true - 1 if true > 1 else None})
    page = site.page()
    whole, parts = page.sum("hec_device_energy_joules_total"), page.sum(ENERGY)
    return {"jobs": out, "device_joules": whole, "sum_of_parts_joules": parts, "good": abs(parts / whole - 1) < 1e-3}


CASES = {"identity": identity, "short_12": lambda site: short(site, 9, 12, 1), "short_5": lambda site: short(site, 14, 5, 1), "steps": steps,
         "many": many, "epilog": epilog, "reports": reports, "allocated": allocated, "share": share, "bill": bill}


def main(folder, kind, *names):
    site = Site(folder, kind)
    out = {}
    try:
        time.sleep(10)  # the floor of the free device
        for name in names or CASES:
            out[name] = CASES[name](site)
            print(name, json.dumps(out[name]), file=sys.stderr, flush=True)
        with open(f"{folder}/result.json", "w") as file:
            json.dump(out, file, indent=1)
    finally:
        site.close()
    return 0 if all(each["good"] for each in out.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
