"""kill -9 of hec, and of the program, at random moments: each run file can be read.

HEC_KILL_ROUNDS says how often each is killed (default 8, for CI; bench/kill does it 200 times), a few at a time: they sleep,
mostly."""
import concurrent.futures
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import BUILD, CLOCK, HANGS_S, assert_sound, rows

ROUNDS = int(os.environ.get("HEC_KILL_ROUNDS", "8"))
SEED = int(os.environ.get("HEC_KILL_SEED", "1"))
AT_ONCE = 4
REAL_S = 1.2  # longer than the command takes by the real clock, on a machine that does nothing else


@pytest.fixture
def every_round():
    """Calls play(round, moment) for each round, with moments between 0 and 1, of which early ones are likelier: starting takes
    little time and has much to break."""
    def call(play):
        rng = random.Random(SEED)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(play, range(ROUNDS), [rng.random() ** 2 for _ in range(ROUNDS)]))
    return call


def wait_for(path, seconds):
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def test_hec_is_killed(hec, every_round):
    """From before the command starts until after it has ended: it goes on and ends by itself, and at most the last second of
    the readings is missing. By the common clock, which the command writes down again and again: on a busy machine hec itself may
    not have come to a reading for longer."""
    env = {**os.environ, "LD_PRELOAD": CLOCK}
    tells = "while :; do date +%s.%N >{0}.new; mv {0}.new {0}; sleep 0.1; done"

    def play(i, moment):
        path, began, now, done = (hec.folder / f"{name}{i}" for name in ("k.hec", "began", "now", "done"))
        process = hec.popen("run", "--sim", "h200", "-o", path, "--", "sh", "-c",
                            f"date +%s.%N >{began}; ({tells.format(now)}) & tells=$!; {hec.path} sim mixed --seconds 60 & "
                            f"sleep 2.5; kill $tells $!; wait; echo >{done}", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        time.sleep(moment * REAL_S)
        was_done, killed_s = done.exists(), float(now.read_text()) if now.exists() else None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if killed_s or wait_for(began, 0.5):
            assert wait_for(done, HANGS_S), f"round {i}: the command was harmed"
        if not path.exists():
            assert not began.exists(), f"round {i}: the command began without a file"
            return "before the file"
        report = hec("report", path)
        assert report.returncode == 0, f"round {i}, killed after {moment * REAL_S:.2f} s: {report.stderr}"
        assert_sound(path)
        if was_done:
            return "after the command"
        assert "cut off" in report.stdout, f"round {i}: {report.stdout}"
        # one second between commits, and the sampling period of the newest value
        if killed_s:
            last_s = (rows(path, "SELECT max(t_ns) FROM sample")[0][0] or 0) / 1e9
            assert last_s >= killed_s - float(began.read_text()) - 1.2, f"round {i}"
        return "during the command"

    outcomes = every_round(play)
    for outcome in sorted(set(outcomes)):
        print(f"hec killed {outcome}: {outcomes.count(outcome)} files of {ROUNDS} as they should be")


# Played by a simulator that tells of its calls, and a program of its own whose calls pass through the tracer's functions.
PROGRAMS = ["{hec} sim mixed --marks --seconds 60", "{build}/tests/bin/cuda_program seconds=60 batch=20 sleep_us=500 pageable=4096"]


def test_the_program_is_killed(hec, every_round):
    """hec ends as its command did, and the file is whole."""
    def play(i, moment):
        path = hec.folder / f"p{i}.hec"
        program = PROGRAMS[i % len(PROGRAMS)].format(hec=hec.path, build=BUILD)
        process = hec.popen("run", "-q", "--sim", "h200", f"--trace={['full', 'auto'][i // 2 % 2]}", "-o", path, "--", "sh", "-c",
                            f"echo $$; exec {program} >/dev/null", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        pid = int(process.stdout.readline())
        time.sleep(moment * 1.2)
        os.kill(pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=HANGS_S)
        assert process.returncode == -signal.SIGKILL and errors == "", f"round {i}: {process.returncode} {errors}"
        assert_sound(path)
        run = hec.report(path)["run"]
        assert run["complete"] and run["exit_code"] == 128 + signal.SIGKILL, f"round {i}: {run}"
        assert not [name for name in os.listdir(hec.folder) if name.startswith(f"p{i}.hec-")], f"round {i}"

    every_round(play)
    print(f"program killed: {ROUNDS} files of {ROUNDS} whole")
