"""Power caps and clocks as levers, on the simulated GPU: what they cost, and that they are gone afterwards, however hec went."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import BINARY, until


@pytest.fixture
def machine(hec):
    """A simulated machine whose limit somebody has set to 456 W before."""
    return f"h200,cap=456,state={hec.folder / 'machine'}"


def limit(hec, machine):
    hec.ok("run", "-q", "-f", "-o", "limit.hec", "--sim", machine, "--", BINARY, "sim", "fp32", "--seconds", 0.3)
    return hec.report("limit.hec")["devices"][0]["power_w"]["limit"]


def play(hec, *words, case="healthy-train", seconds=0.6):
    done = hec.ok("run", "-q", "-f", "-o", "run.hec", "--sim", *words, "--", BINARY, "sim", case, "--seconds", seconds, "--json")
    return json.loads(done.stdout), hec.report("run.hec")


def test_a_cap_has_its_price_and_its_gain(hec):
    full, _ = play(hec, "h200")
    low, run = play(hec, "h200", "--with", "power_cap=350")
    assert run["devices"][0]["power_w"]["limit"] == 350
    assert [(lever["name"], lever["attest"], lever["text"]) for lever in run["levers"]] == [("power_cap", "set", "350 W")]
    assert 0.4 * full["steps"] < low["steps"] < 0.9 * full["steps"]
    assert low["work"]["joules"] / low["steps"] < 0.85 * full["work"]["joules"] / full["steps"]


def test_a_lock_of_clocks(hec):
    low, run = play(hec, "h200", "--with", "clock=1200", case="fp32")
    assert run["levers"][0]["text"] == "1200 MHz"
    full, _ = play(hec, "h200", case="fp32")
    assert low["steps"] < 0.8 * full["steps"]


def test_what_is_refused(hec, machine):
    for words, status, sentence in (
        (["--with", "power_cap"], 2, "power_cap=W"),
        (["--with", "power_cap=0"], 2, "takes =W"),
        (["--sim", machine, "--with", "power_cap=100"], 2, "200 W to 700 W"),
        (["--sim", machine, "--with", "clock=9000"], 2, "1 MHz to 1980 MHz"),
        (["--sim", machine + ",norights", "--with", "power_cap=300"], 77, "root"),
        (["--sim", machine + ",outside=400", "--with", "power_cap=450"], 1, "from outside the driver"),
        (["--with", "power_cap=300"], 77, "--allow-power"),
    ):
        done = hec("run", *words, "--", "touch", "ran")
        assert done.returncode == status and sentence in done.stderr, (words, done)
    assert not (hec.folder / "ran").exists()
    assert limit(hec, machine) == 456


def guardian(hec):
    """Of this test's hec: it is known by where it keeps its state."""
    mark = f"HEC_STATE_DIR={os.environ['HEC_STATE_DIR']}".encode()
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_bytes() == b"hec-power\n" and mark in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None


@pytest.fixture
def started(hec, machine):
    """hec runs a command under a cap; the command says so, and ends when its input does."""
    process = hec.popen("run", "-q", "-f", "-o", "long.hec", "--sim", machine, "--with", "power_cap=300", "--", "sh", "-c",
                        "echo on; read line", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "on\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_lease(hec, machine, started, number):
    second = hec("run", "--sim", machine, "--with", "power_cap=400", "--", "true")
    assert second.returncode == 75 and f"process {started.pid} (" in second.stderr
    started.send_signal(number)
    started.wait()
    until(lambda: guardian(hec) is None)
    assert limit(hec, machine) == 456


def test_without_guardian_hec_puts_back(hec, machine, started):
    os.kill(guardian(hec), signal.SIGKILL)
    started.communicate("")
    assert started.returncode == 1, "the command's: it read no line"
    assert limit(hec, machine) == 456


def test_without_hec_and_guardian_doctor_puts_back(hec, machine, started):
    assert limit(hec, machine) == 300
    os.kill(guardian(hec), signal.SIGKILL)
    started.kill()
    started.wait()
    assert limit(hec, machine) == 300
    before = hec("doctor")
    assert "300 W instead of 456 W" in " ".join(before.stdout.split()) and "doctor --restore" in before.stdout
    after = hec("doctor", "--restore")
    assert "456 W is back" in " ".join(after.stdout.split()), after
    assert limit(hec, machine) == 456
    assert "changed none" in hec("doctor").stdout


def test_trials_under_a_cap(hec, machine):
    hec.ok("ab", "--sim", machine, "--in-place", "--pairs", 2, "--warm-up", 0, "-o", "receipt.json", "--with", "power_cap=200", "--",
           BINARY, "sim", "healthy-train", "--marks", "--seconds", 2)
    trials = json.loads((hec.folder / "receipt.json").read_text())["trials"]
    watts = {side: [t["run"]["joules"] / t["run"]["seconds"] for t in trials if t["side"] == side] for side in "AB"}
    assert max(watts["B"]) < 0.75 * min(watts["A"])
    assert limit(hec, machine) == 456
