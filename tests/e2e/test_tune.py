"""hec run --tune on the simulated GPU: it keeps a limit that saves, says what it did, and leaves the machine as it was."""
import os
import signal
import subprocess

import pytest

from conftest import BINARY, until
from test_power import guardian, limit, machine  # noqa: F401: a fixture


def tuned(hec, machine, case="healthy-train", seconds=150, options=()):
    done = hec("run", "-f", "-o", "run.hec", "--trace=off", "--tune", *options, "--sim", machine, "--", BINARY, "sim", "--marks",
               "--seconds", seconds, case)
    assert done.returncode == 0, done
    events = [event["text"] for event in hec.report("run.hec")["events"] if event["kind"] == "tune"]
    return " ".join(done.stderr.split()), events


def watts(event):
    return int(event.removeprefix("limit of ").split(" W")[0])


def test_a_limit_that_saves_is_kept_and_gone_afterwards(hec, machine):
    said, events = tuned(hec, machine, options=["--max-harm", 5])
    kept, net = [event for event in events[:-1] if " kept: " in event], events[-1]
    assert kept and f"limit of {watts(kept[-1])} W kept to the end: net " in net and "Tuned" in said and net in said, (said, events)
    assert 200 <= watts(kept[-1]) < 456 and "fewer joules a step" in kept[-1]
    tried = [watts(event) for event in events[:-1] if " kept: " not in event]
    assert tried[0] > tried[1] and set(tried) >= {watts(kept[-1])}
    assert limit(hec, machine) == 456


def test_trying_costs_no_more_than_it_may(hec, machine):
    """At a hundredth of the time nothing is tried before some 50 s have passed."""
    _, events = tuned(hec, machine, seconds=40)
    assert events == []
    _, events = tuned(hec, machine, seconds=40, options=["--max-harm", 20])
    assert events
    for short in (["--hours", 0.006], ["--steps", 600]):  # some 20 s: too short to pay for anything
        _, events = tuned(hec, machine, seconds=40, options=["--max-harm", 20, *short])
        assert events == []
    _, events = tuned(hec, machine, seconds=40, options=["--max-harm", 20, "--hours", 1])
    assert events


def test_why_nothing_was_tried(hec, machine):
    done = hec("run", "-q", "-f", "-o", "run.hec", "--tune", "--sim", machine, "--", "true")
    assert done.returncode == 0 and "nothing was tried: the command reported no steps" in done.stderr, done
    for gpus in ("h200", "h200x2"):  # two GPUs draw more than the lowest limit, but neither of them does
        done = hec("run", "-q", "-f", "-o", "run.hec", "--tune", "--sim", machine.replace("h200", gpus, 1), "--", BINARY, "sim", "--marks",
                   "--seconds", 20, "small-kernels")
        assert done.returncode == 0 and "nothing was tried: the command draws less than the lowest limit" in done.stderr, done


def test_what_is_refused(hec, machine):
    for words, status, sentence in (
        (["--tune"], 77, "--allow-power"),
        (["--tune=numerics", "--sim", machine], 2, "exact alone"),
        (["--tune", "--sim", machine, "--with", "power_cap=400"], 2, "so does --with"),
        (["--max-harm", "2", "--sim", machine], 2, "go with --tune"),
        (["--tune", "--max-harm", "0", "--sim", machine], 2, "--max-harm"),
        (["--hours", "2", "--sim", machine], 2, "go with --tune"),
        (["--tune", "--hours", "0", "--sim", machine], 2, "--hours"),
        (["--tune", "--sim", machine + ",norights"], 0, ""),
    ):
        done = hec("run", *words, "--", "touch", f"ran{status}")
        assert done.returncode == status and sentence in done.stderr, (words, done)
        assert (hec.folder / f"ran{status}").exists() == (status == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_limit_that_is_being_tried_goes_with_hec(hec, machine, number):
    process = hec.popen("run", "-q", "-f", "-o", "long.hec", "--tune", "--max-harm", 20, "--trace=off", "--sim", machine, "--", BINARY, "sim",
                        "--marks", "--seconds", 600, "healthy-train", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: limit(hec, machine) != 456)
        os.kill(process.pid, number)
        process.wait()
        until(lambda: guardian(hec) is None)
        assert limit(hec, machine) == 456
    finally:
        process.kill()
        process.wait()
