"""Ranks of jobs of torch.distributed (rank_jobs.py) are killed, or leave, at random moments under `hec run` and `hec try`; so is hec:
nothing hangs, no process is left, each run file can be read.

HEC_KILL_ROUNDS says how many jobs lose a rank (default 10, for CI; `bench/kill/run --ranks 2` plays 500), HEC_KILL_RANKS how many
ranks they have. One run of hec has several jobs, one after the other."""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from conftest import HANGS_S, assert_sound, until

ROUNDS = int(os.environ.get("HEC_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("HEC_KILL_SEED", "1"))
RANKS = int(os.environ.get("HEC_KILL_RANKS", "2"))
PYTHON = os.environ.get("HEC_TORCH_PYTHON", sys.executable)
JOBS = 4  # a run
AT_ONCE = 2
PROGRAM = pathlib.Path(__file__).with_name("rank_jobs.py")


@pytest.fixture(scope="module", autouse=True)
def torch():
    if subprocess.run([PYTHON, "-c", "import torch.distributed as d; raise SystemExit(not d.is_gloo_available())"],
                      capture_output=True).returncode:
        pytest.skip(f"no PyTorch with gloo in {PYTHON} (Debian and Ubuntu: python3-torch)")


def alive(mark):
    """Processes of a run, by what their environment has."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and "Z" not in (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]:
                found.append(folder.name)
        except OSError:
            continue
    return found


class Round:
    def __init__(self, hec, at, jobs):
        self.hec, self.name, self.jobs = hec, f"r{at}", jobs
        self.log, self.path = hec.folder / f"{self.name}.log", hec.folder / f"{self.name}.hec"
        self.mark = f"HEC_KILL_MARK={hec.folder.name}-{self.name}"

    def start(self, *arguments, seed):
        key, value = self.mark.split("=")
        return self.hec.popen(*arguments, "--sim", "h200x2", "--", PYTHON, PROGRAM, RANKS, self.jobs, seed, self.log,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, key: value, "OMP_NUM_THREADS": "1"})

    def killed(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def check_end(self, jobs):
        killed = self.killed()
        assert len(killed) >= jobs and not any(job["hung"] for job in killed), killed
        until(lambda: not alive(self.mark), lambda: f"{self.name}: processes are left")  # the kernel may be at ending them
        return killed

    def check_file(self, cut_off):
        run = self.hec.report(self.path)["run"]
        assert_sound(self.path)
        assert run["complete"] != cut_off and run["exit_code"] == (None if cut_off else 0), f"{self.name}: {run}"
        if not cut_off:
            assert not [name for name in os.listdir(self.hec.folder) if name.startswith(f"{self.path.name}-")], self.name


def run_round(hec, at, jobs, rng):
    """hec ends as its command did, and the file is whole."""
    this = Round(hec, at, jobs)
    process = this.start("run", "-q", f"--trace={rng.choice(['auto', 'full'])}", "-o", this.path, seed=rng.randrange(1 << 30))
    _, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0, f"{this.name}: {process.returncode} {errors}"
    this.check_file(cut_off=False)
    return this.check_end(jobs)


def hec_round(hec, at, jobs, rng):
    """hec is killed as well: the jobs go on and end."""
    this = Round(hec, at, jobs)
    process = this.start("run", "-q", "-o", this.path, seed=rng.randrange(1 << 30))
    end = time.monotonic() + HANGS_S
    while len(this.killed()) < jobs // 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(rng.random())
    process.send_signal(signal.SIGKILL)
    process.wait()
    while alive(this.mark) and time.monotonic() < end:
        time.sleep(0.1)
    process.stderr.close()
    this.check_file(cut_off=True)
    return this.check_end(jobs)


def try_round(hec, at, jobs, rng):
    """In each trial; one that takes too long is ended before its job has."""
    this = Round(hec, at, 1)
    process = this.start("try", "--in-place", "-f", "--levers", "tf32", "--budget-seconds", "20", "-o", hec.folder / f"{this.name}.json",
                         seed=rng.randrange(1 << 30))
    _, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode in (0, 1, 3, 69) and "hec: " in errors, f"{this.name}: {process.returncode} {errors}"  # 69: too slow to try
    return this.check_end(0)


def test_ranks_are_killed(hec):
    rng = random.Random(SEED)
    plays, left = [], ROUNDS
    while left > 0:
        kind = hec_round if len(plays) % 5 == 1 else try_round if len(plays) % 10 == 7 else run_round
        jobs = min(left, JOBS if kind is not hec_round else 2)
        plays.append((kind, len(plays), jobs, random.Random(rng.random())))
        left -= jobs
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        played = list(pool.map(lambda play: (play[0].__name__, play[0](hec, *play[1:])), plays))
    jobs = [(kind, job) for kind, done in played for job in done]
    counts = collections.Counter((kind, job["fate"], "stepping" if job["stepped"] else "starting") for kind, job in jobs)
    for (kind, fate, when), count in sorted(counts.items()):
        print(f"{kind} {fate} {when}: {count}")
    print(f"{len(jobs)} jobs of {RANKS} ranks, each lost one: all ended, {max(job['seconds'] for _, job in jobs):.1f} s at most")
