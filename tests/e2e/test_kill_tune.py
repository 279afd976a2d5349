"""kill -9 of hec, of the guardian of limits, and of the program, at random moments of `hec run --tune`: the limit is what it was, who was
not killed is unharmed, and the run file can be read.

HEC_KILL_ROUNDS says how many runs (default 6, for CI; `bench/kill/run --tune` does 500), a few at a time."""
import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import time

from conftest import BINARY, CLOCK, Hec, until

ROUNDS = int(os.environ.get("HEC_KILL_ROUNDS", "6"))
SEED = int(os.environ.get("HEC_KILL_SEED", "1"))
AT_ONCE = 3
CASES = ["healthy-train", "fp32", "memory-bound", "mixed", "checkpoint", "comm-exposed"]
FAULTS = ["", "", ",lost@20", ",norights"]
OWN_W = 456


def of_round(folder, name, verb):
    """Processes of that name and verb (None: any) whose state lies in the folder."""
    mark, found = f"HEC_STATE_DIR={folder}".encode(), []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "comm").read_text() == name + "\n" and mark in (process / "environ").read_bytes() \
                    and verb in (None, (process / "cmdline").read_bytes().split(b"\0")[1]):
                found.append(int(process.name))
        except (OSError, IndexError):  # it has ended
            continue
    return found


def begin(hec, folder, case, fault):
    """The machine's state, and hec with its program on it, by the common clock."""
    env = {**os.environ, "HEC_STATE_DIR": str(folder), "LD_PRELOAD": CLOCK}
    machine = f"h200,cap={OWN_W},state={folder / 'machine'}"
    return hec.popen("run", "-q", "-f", "-o", "run.hec", "--tune", "--max-harm", 20, "--trace=off", "--sim", machine + fault, "--", BINARY,
                     "sim", "--marks", "--seconds", 40, case, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), env, machine


def test_limits_are_back_whoever_is_killed(hec, tmp_path):
    process, _, _ = begin(hec, hec.folder, CASES[0], "")
    began = time.monotonic()
    assert process.wait() == 0
    whole_s = time.monotonic() - began

    def play(number):
        rng = random.Random(f"{SEED} {number}")
        folder = tmp_path / str(number)
        folder.mkdir(mode=0o700)
        mine = Hec(hec.path, folder)
        case, fault = rng.choice(CASES), rng.choice(FAULTS)
        process, env, machine = begin(mine, folder, case, fault)
        time.sleep(1.2 * whole_s * rng.random())  # so many at once take longer
        guardians, programs = of_round(folder, "hec-power", None), of_round(folder, "hec", b"sim")
        kills = {"hec": [process.pid], "guardian": guardians, "program": programs}
        names = rng.sample(sorted(kills), rng.choice((1, 1, 2, 3)))
        ended = process.poll() is not None
        for pid in (pid for name in names for pid in kills[name]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until(lambda: process.poll() is not None, why=lambda: f"round {number}: hec hangs, {names} were killed")
        if "hec" not in names and "program" not in names and not ended:
            assert process.returncode == 0, f"round {number}: {process.returncode}, {names} were killed"
        until(lambda: not of_round(folder, "hec-power", None), why=lambda: f"round {number}: a guardian stays, {names} were killed")
        until(lambda: not of_round(folder, "hec", b"sim"), why=lambda: f"round {number}: the program hangs, {names} were killed")
        if ("hec" in names and "guardian" in names) or "lost" in fault:  # nobody could put it back
            mine("doctor", "--restore", env=env)
        assert not list(folder.glob("power-*.json")), f"round {number}: {names} were killed"
        assert limit_of(mine, machine, env) == OWN_W, f"round {number}: {names} were killed"
        if (folder / "run.hec").exists():
            report = mine("report", "run.hec")
            assert report.returncode == 0, f"round {number}: {report.stderr}"
        return "after the end" if ended else " and ".join(sorted(names)) + (" while it ran" if guardians else "")

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(play, range(ROUNDS)))
    for outcome in sorted(set(outcomes)):
        print(f"killed {outcome}: {outcomes.count(outcome)} of {ROUNDS} as they should be")


def limit_of(hec, machine, env):
    hec.ok("run", "-q", "-f", "-o", "limit.hec", "--sim", machine, "--", BINARY, "sim", "fp32", "--seconds", 0.3, env=env)
    return hec.report("limit.hec")["devices"][0]["power_w"]["limit"]
