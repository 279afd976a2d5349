"""The judge in bench/gpu/harmless: its statistics, its counting, and its forking program on the simulated GPU."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/gpu/harmless"))

import catalogue  # noqa: E402
import ends  # noqa: E402
import figures  # noqa: E402
import libraries  # noqa: E402
import playing  # noqa: E402
import slow  # noqa: E402
import tables  # noqa: E402
from warm_python import HANGS_S  # noqa: E402

GOOD = {"status": 0, "stdout": "done\n", "stderr": "", "hung": False, "seconds": 1.0}


def one(**values):
    return {**GOOD, **values}


def turns(slowdowns, noise=0.0):
    """Rounds of a program of 10 ms a step on a machine whose speed drifts from round to round."""
    rng = random.Random(5)
    rounds = []
    for slowdown in slowdowns:
        speed = 10 * rng.uniform(0.8, 1.3)
        rounds.append({"none": {"ms": speed}, "auto": {"ms": speed * (1 + slowdown) * (1 + rng.gauss(0, noise))}})
    return rounds


def test_slowdown_is_of_pairs():
    cost = figures.slowdown(turns([0.05] * 9), "auto")
    assert cost["ratio"] == pytest.approx(0.05) and cost["ci95"] == pytest.approx([0.05, 0.05]) and cost["pairs"] == 9


def test_slowdown_has_an_interval():
    cost = figures.slowdown(turns([0.05] * 15, noise=0.02), "auto")
    low, high = cost["ci95"]
    assert low < 0.05 < high and 0.005 < high - low < 0.06


def test_a_round_without_times_counts_nothing():
    rounds = turns([0.1, 0.1]) + [{"none": {"ms": None}, "auto": {"ms": 3}}, {"none": {"ms": 3}}]
    assert figures.slowdown(rounds, "auto")["pairs"] == 2
    assert figures.slowdown(rounds, "full") is None


def test_claims():
    rounds = turns([0.05] * 4)
    told = [(0.05, 0.04, 0.06), (0.01, 0.0, 0.02), (None, None, None), (0.03, None, None)]
    for values, (overhead, low, high) in zip(rounds, told):
        values["auto"]["claim"] = {"overhead": overhead, "low": low, "high": high}
    claims = figures.claims(rounds, "auto", {"ratio": 0.05, "ci95": [0.015, 0.08]})
    assert (claims["contain"], claims["overlap"], claims["unknown"], claims["alone"], claims["runs"]) == (1, 2, 1, 1, 4)


@pytest.mark.parametrize("run, found", [
    (one(), []), (one(status=1), ["status"]), (one(status=139), ["signal"]), (one(stdout="done"), ["stdout"]),
    (one(stderr="double free\n", status=134), ["signal", "stderr"]), (one(hung=True, status=-9), ["hung"])])
def test_what_is_abnormal(run, found):
    assert figures.abnormal(run, GOOD) == found


def test_a_signal_is_as_a_shell_tells_it():
    assert figures.abnormal(one(status=143), one(status=-15)) == []
    assert figures.abnormal(one(status=0), one(status=-15)) == ["status"]


def test_what_varies_by_itself_is_compared_without_numbers():
    run, reference = one(stderr="pid 12 at 0xffa\n"), one(stderr="pid 7 at 0x3b\n")
    assert figures.abnormal(run, reference) == ["stderr"]
    assert figures.abnormal(run, {**reference, "varies": True}) == []


def test_adding_up_over_calls():
    total = {}
    for _ in range(2):
        for found in ([], ["signal", "stderr"], []):
            figures.add(total, found, {"found": found} if found else None)
        total = json.loads(json.dumps(total))
    assert (total["runs"], total["abnormal"], total["kinds"], len(total["cases"])) == (6, 2, {"signal": 2, "stderr": 2}, 2)


def test_bound_of_what_was_never_seen():
    assert figures.upper_bound(0, 600) == pytest.approx(0.00498, abs=1e-5)
    assert figures.upper_bound(2, 28) == pytest.approx(0.208205, abs=1e-5)  # the beta distribution's quantile
    assert figures.upper_bound(0, 0) == figures.upper_bound(5, 5) == 1


def test_the_program_furthest_behind_is_next():
    wanted = {("auto", "a"): 100, ("auto", "b"): 10}
    assert figures.next_of(wanted, {("auto", "a"): 50, ("auto", "b"): 4}, lambda key: True) == ("auto", "b")
    assert figures.next_of(wanted, {("auto", "a"): 30, ("auto", "b"): 4}, lambda key: True) == ("auto", "a")
    assert figures.next_of(wanted, {("auto", "a"): 30, ("auto", "b"): 4}, lambda key: key[1] == "b") == ("auto", "b")
    assert figures.next_of(wanted, {("auto", "a"): 100, ("auto", "b"): 10}, lambda key: True) is None


class Player:
    """Plays nothing. Every third run under hec in mode full dies; the device memory in use is watched."""

    def __init__(self):
        self.built, self.lock, self.count, self.in_use, self.most = pathlib.Path("built"), threading.Lock(), 0, 0.0, 0.0

    def play(self, command, limit_s, gpus, hec=None):
        program = next((p for p in catalogue.PROGRAMS.values() if p.name in map(str, command)), None)
        status = figures.shell_status(program.status) if hec else program.status
        with self.lock:
            self.in_use += program.gb
            self.most = max(self.most, self.in_use)
            self.count += bool(hec and "--trace=full" in hec)
            dies = hec and "--trace=full" in hec and self.count % 3 == 0
        time.sleep(0.002)
        with self.lock:
            self.in_use -= program.gb
        return {"status": 139 if dies else status, "stdout": "done\n", "stderr": "", "hung": False, "seconds": 0.0,
                "folder": pathlib.Path("no such folder")}

    def backtrace(self, run, command, left_s):
        return "#0 free"

    def forget(self, run):
        pass


def test_ends_counts_each_program_and_mode():
    options = argparse.Namespace(only=["resnet50", "launch", "short-term", "ddp"], modes=["auto", "full"], scale=0.1, seconds=0,
                                 seconds_limit=30, jobs=4, hec_options=[], more=[], save=lambda: None)
    result, player = {}, Player()
    for _ in range(2):  # the second call finds everything done
        ends.measure(player, options, result, [80.0])
    counts = {mode: {name: total["runs"] for name, total in programs.items()} for mode, programs in result["modes"].items()}
    assert counts == {"auto": {"resnet50": 12, "launch": 6, "short-term": 2}, "full": {"resnet50": 10, "launch": 3, "short-term": 1}}
    assert sum(total["abnormal"] for total in result["modes"]["full"].values()) == 14 // 3
    assert sum(total["abnormal"] for total in result["modes"]["auto"].values()) == 0
    assert player.most <= 80
    text = "\n".join(tables.ends_rows(result))
    assert "| **all** | full | 14 | 4 |" in text


def test_a_program_that_fails_by_itself_is_left_out():
    class Failing(Player):
        def play(self, *arguments, **options):
            return {**super().play(*arguments, **options), "status": 1}

    options = argparse.Namespace(only=["launch"], modes=["auto"], scale=0.1, seconds=0, seconds_limit=30, jobs=2, hec_options=[],
                                 more=[], save=lambda: None)
    result = {}
    ends.measure(Failing(), options, result, [80.0])
    assert result["modes"] == {} and "left out" in "\n".join(tables.ends_rows(result))


@pytest.mark.parametrize("script, status, hung", [("echo out; exit 3", 3, False), ("kill -TERM $$", -15, False),
                                                  ("sleep 1000 & sleep 1000", None, True)])
def test_playing(tmp_path, script, status, hung):
    player = playing.Player("hec", tmp_path, tmp_path)
    run = player.play(["sh", "-c", script], 0.5 if hung else 60)
    assert run["hung"] == hung and (hung or run["status"] == status)
    assert run["stdout"] == ("out\n" if "echo" in script else "")
    player.forget(run)
    assert not list(tmp_path.glob("run-*"))


def test_variants_start_from_no_hec():
    assert [name for name in slow.VARIANTS if not slow.VARIANTS[name]] == ["none", "client"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    libraries.build("forks", folder)
    return folder


def test_the_library_has_its_relocations(built):
    done = subprocess.run(["readelf", "-rW", built / "big.so"], text=True, capture_output=True, check=True)
    assert sum("R_X86_64_64" in line for line in done.stdout.splitlines()) == libraries.RELOCATIONS + 1


@pytest.mark.parametrize("mode", ["off", "auto", "full"])
def test_forked_children_load_libraries(built, tmp_path, mode):
    hec = os.environ.get("HEC", str(ROOT / "build/bin/hec"))
    command = catalogue.command(catalogue.PROGRAMS["forks"], built, children=150)
    done = subprocess.run([hec, "run", "-q", "-o", tmp_path / "forks.hec", "--sim", "h200", f"--trace={mode}", "--",
                           *map(str, command)], text=True, capture_output=True, timeout=HANGS_S)
    assert (done.stdout, done.stderr, done.returncode) == ("hung 0 of 150\n", "", 0)
