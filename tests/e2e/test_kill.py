"""kill -9 of hec at random moments: the file opens, at most the last second is missing, the command is unharmed.

HEC_KILL_ROUNDS says how often (default 8, for CI; bench/kill runs 200)."""
import os
import random
import signal
import sqlite3
import subprocess
import time

ROUNDS = int(os.environ.get("HEC_KILL_ROUNDS", "8"))
SEED = int(os.environ.get("HEC_KILL_SEED", "1"))


def last_sample_s(path):
    with sqlite3.connect(path) as db:
        newest, = db.execute("SELECT max(t_ns) FROM sample").fetchone()
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return (newest or 0) / 1e9


def test_kill_at_random_moments(hec):
    rng = random.Random(SEED)
    for i in range(ROUNDS):
        path, mark = f"k{i}.hec", hec.folder / f"done{i}"
        hec_process = hec.popen("run", "--sim", "h200", "-o", path, "--", "sh", "-c",
                                f"echo $$; {hec.path} sim mixed --seconds 60 & sleep 3.2; kill $!; wait; echo ok > {mark}",
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        started = time.monotonic()
        shell = int(hec_process.stdout.readline())
        lived = rng.uniform(0.0, 3.0)
        time.sleep(max(0.0, started + lived - time.monotonic()))
        hec_process.send_signal(signal.SIGKILL)
        killed = time.monotonic() - started
        hec_process.wait()
        # the command goes on and ends by itself
        end = time.monotonic() + 10
        while not mark.exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert mark.exists(), f"round {i}: the command was harmed (shell {shell})"
        report = hec("report", path)
        assert report.returncode == 0, f"round {i}, killed at {killed:.2f} s: {report.stderr}"
        # one second between commits, and the sampling period of the newest value
        assert last_sample_s(hec.folder / path) >= killed - 1.3, f"round {i}"
        assert "cut off" in report.stdout, report.stdout
