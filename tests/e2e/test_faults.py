"""What goes wrong on a machine: each fault is told in one clear sentence, no figure is wrong because of it, and the
command never notices."""
import concurrent.futures
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

from conftest import assert_sound, HANGS_S, messages_of, until

IDLE_W = 82  # of the simulated H200 without a context
STATUS = 7   # the exit status of every command here: it has to come through


class Faulty:
    """A run of a player under a fault: its truth, its report, and what hec said."""

    def __init__(self, hec, spec, seconds=3, case="healthy-train", name=None, arguments=(), **options):
        name = name or re.sub(r"[^A-Za-z0-9]+", "-", spec)
        self.hec, self.path = hec, f"{name}.hec"
        player = f"{shlex.quote(hec.path)} sim {case} --json --seconds {seconds} > {name}.json; exit {STATUS}"
        begun = time.monotonic()
        self.done = hec("run", "--sim", spec, *arguments, "-o", self.path, "--", "sh", "-c", player, **options)
        self.took = time.monotonic() - begun
        assert_kept(self.done)
        self.truth = json.loads((hec.folder / f"{name}.json").read_text())
        self.report = hec.report(self.path)
        self.devices = self.report["devices"]
        self.brief = flat(self.done.stderr)
        self.joules = self.truth["joules"] + IDLE_W * (self.report["run"]["seconds"] - self.truth["seconds"])
        assert self.report["run"]["exit_code"] == STATUS and self.report["run"]["complete"]

    @functools.cached_property
    def text(self):
        return flat(self.hec.ok("report", self.path).stdout)

    @property
    def energy(self):
        return self.devices[0]["energy"]

    def events(self, kind):
        return [e for e in self.report["events"] if e["kind"] == kind]


def together(hec, specs, **options):
    """A run for every specification, some at a time: they sleep, mostly."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        started = {spec: pool.submit(Faulty, hec, spec, **options) for spec in specs}
        return {spec: run.result() for spec, run in started.items()}


def flat(text):
    """Without the breaks of lines."""
    return re.sub(r"\s+", " ", text)


def assert_kept(done, status=STATUS):
    """The command's exit status; no crash and no sanitizer report among the messages, each of which is one line."""
    assert done.returncode == status, done.stderr
    assert len(messages_of(done.stderr)) <= 2, done.stderr


def assert_invalid(energy, *words):
    assert not energy["valid"] and energy["joules"] is None
    for word in words:
        assert word in energy["why"], energy["why"]


def assert_true(run, device=0):
    energy = run.devices[device]["energy"]
    assert energy["valid"], energy["why"]
    assert abs(energy["joules"] - run.joules) <= energy["bound_joules"], (run.joules, energy)


def assert_never_wrong(run):
    """Valid and true, or invalid with a reason; no other way."""
    if run.energy["valid"]:
        assert_true(run)
    else:
        assert run.energy["joules"] is None and len(run.energy["why"]) > 20 and run.report["totals"]["joules"] is None


# ---- the device ----

def test_lost(hec):
    run = Faulty(hec, "h200x2,lost@1.5:0")
    assert_invalid(run.energy, "the device was lost at ")
    lost_s = float(re.search(r"lost at ([0-9.]+) s", run.energy["why"]).group(1))
    assert 1.4 <= lost_s <= 2.6, "it is noticed at the next call"
    # what was read until then: the power history comes once a second
    seconds = float(re.search(r"in the ([0-9.]+) s until its last reading", run.energy["why"]).group(1))
    assert 0 < seconds <= 1.7
    # 680 W with short pauses, but before the play, which takes a part of the surplus that depends on the machine
    surplus = min(run.report["run"]["seconds"] - run.truth["seconds"], seconds)
    watts = run.truth["joules"] / run.truth["seconds"]
    least = IDLE_W * surplus + watts * (seconds - surplus)
    assert 0.97 * least <= run.energy["partial_joules"] <= 1.03 * watts * seconds
    assert run.report["totals"]["joules"] is None
    assert len(run.events("device_lost")) == 1
    assert "invalid: the device was lost at" in run.brief and "fell off" in run.text
    other = run.devices[1]["energy"]
    assert other["valid"] and other["joules"] == pytest.approx(IDLE_W * run.report["run"]["seconds"], rel=0.05)


def test_lost_beside_another_that_works(hec):
    """The device that is used goes on to be measured when its neighbour falls off."""
    run = Faulty(hec, "h200x2,lost@1:1")
    assert_true(run)
    assert not run.devices[1]["energy"]["valid"] and not run.devices[1]["used"]
    assert run.report["totals"]["joules"] == run.energy["joules"]


@pytest.mark.parametrize("trace", ["off", "auto"])
def test_nothing_known_is_not_nothing_used(hec, trace):
    """No reading at all: the report must not say that the command used no GPU. A trace tells that it did."""
    reasons = {
        "h200,lost@0": "unknown: the device was lost",
        "h200,hang=nvmlDeviceGetTotalEnergyConsumption": "unknown: the GPU driver did not answer",
        "h200,hang=nvmlInit_v2": "unavailable: the GPU driver did not answer",
        "h200,fail=nvmlDeviceGetHandleByIndex_v2": "unknown: cannot be opened: an internal error of the driver",
        "h200,fail=nvmlInit_v2": "unavailable: the NVIDIA driver does not start",
        "h200,fail=nvmlDeviceGetCount_v2": "unavailable: the NVIDIA driver cannot list its GPUs",
    }
    for spec, run in together(hec, reasons, seconds=1, arguments=["--trace", trace]).items():
        assert run.report["totals"]["joules"] is None
        assert "used no GPU" not in run.brief and "no GPU was found" not in run.brief
        assert "had no context" not in run.text
        reason = reasons[spec] if trace == "off" else reasons[spec].replace("unknown: ", "invalid: ")
        assert "energy " + reason in run.brief, run.brief
        for device in run.devices:
            assert device["used"] == (trace == "auto")
            assert ("unknown" if trace == "off" else "calls give it work") in device["used_why"]


def test_reset(hec):
    runs = together(hec, ["h200,reset@1.5", "h200,reset@0.3", "h200,reset@2.9", "h200,reset@2.5,nopower"])
    for run in runs.values():
        assert_never_wrong(run)
    middle = runs["h200,reset@1.5"]
    assert_true(middle)
    assert middle.energy["resets"] == 1 and len(middle.events("counter_reset")) == 1
    assert "1 reset of the counter" in middle.text and "GPU 0: the energy counter went back" in middle.brief


def test_slow(hec):
    runs = together(hec, ["h200,slow=nvmlDeviceGetTotalEnergyConsumption:200", "h200,slow=nvmlDeviceGetSamples:900@1",
                          "h200,slow=nvmlGpmSampleGet:300", "h200,slow=nvmlDeviceGetComputeRunningProcesses_v3:500",
                          "h200,slow=nvmlDeviceGetTotalEnergyConsumption:1500@1"])
    for run in runs.values():
        assert_never_wrong(run)
    event, = runs["h200,slow=nvmlDeviceGetSamples:900@1"].events("device_slow")
    assert "the power history" in event["text"] and event["device"] == 0


def test_hang(hec):
    """A driver that stops answering during the run: hec gives it up and returns, and the run file is whole."""
    run = Faulty(hec, "h200,hang=nvmlDeviceGetTotalEnergyConsumption@2")  # the power history is read every second
    assert run.took < 30, "the call itself would take 60 s"
    assert_invalid(run.energy, "cover only", "nothing was read from")
    assert_sound(hec.folder / run.path)
    assert any("did not answer" in e["text"] for e in run.events("gap"))
    assert run.energy["partial_joules"] < run.joules


SENSORS = {
    "nvmlDeviceGetTotalEnergyConsumption": "the energy counter",
    "nvmlDeviceGetSamples": None,  # then power is polled, which a note tells
    "nvmlDeviceGetFieldValues": "the instant power",
    "nvmlDeviceGetUtilizationRates": "the utilisation",
    "nvmlDeviceGetComputeRunningProcesses_v3": "the compute processes",
    "nvmlGpmSampleGet": "the hardware counters (GPM)",
    "nvmlDeviceGetTemperature": "the temperature",
    "nvmlDeviceGetClockInfo": "clock",
    "nvmlDeviceGetEnforcedPowerLimit": "limit",
}



@pytest.mark.parametrize("at", ["", "@1"])
def test_sensors_that_fail(hec, at):
    """One fails from the start or during the run: the others are recorded, and the energy stays true."""
    runs = together(hec, [f"h200,fail={name}{at}" for name in SENSORS])
    runs = dict(zip(SENSORS, runs.values()))
    for name, run in runs.items():
        assert_never_wrong(run)
        failed = run.events("sensor_failed")
        for event in failed:
            assert event["device"] == 0 and event["text"].startswith("reading the ") and "failed: " in event["text"]
        if SENSORS[name]:
            assert any(SENSORS[name] in event["text"] for event in failed), (name, run.report["events"])
        assert len(failed) <= 3, "told once, not at every attempt"
        assert run.devices[0]["used"], (name, run.devices[0]["used_why"])
    if not at:
        alone = runs["nvmlDeviceGetTotalEnergyConsumption"].energy
        assert alone["valid"] and alone["method"] == "simulated integral" and alone["bound_joules"] >= 0.05 * alone["joules"]
        gpm = runs["nvmlGpmSampleGet"].devices[0]
        assert gpm["utilisation"]["sm"] is None and gpm["utilisation"]["gpu"] is not None
        assert runs["nvmlDeviceGetUtilizationRates"].devices[0]["utilisation"]["gpu"] is None, "missing is not zero"
        assert "assumed" in runs["nvmlDeviceGetComputeRunningProcesses_v3"].devices[0]["used_why"]


def test_old_driver(hec):
    run = Faulty(hec, "h200,driver=450")
    assert_true(run)
    assert run.devices[0]["utilisation"]["sm"] is None
    assert run.events("sensor_failed") == [], "what a driver does not have has not failed"


def test_no_counter_and_no_history(hec):
    """Nothing but polled means of a second: three seconds are too short, and the sentence says why."""
    run = Faulty(hec, "p100,nopower")
    assert_invalid(run.energy, "too short to measure", "no energy counter")


def test_no_library(hec):
    """No driver at all: a library path that leads nowhere changes nothing about that."""
    done = hec("run", "-o", "n.hec", "--", "sh", "-c", f"sleep 0.3; exit {STATUS}", env={"LD_LIBRARY_PATH": "/nonexistent"})
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    assert_kept(done)
    assert "unavailable" in done.stderr and "libnvidia-ml" in done.stderr
    assert hec.report("n.hec")["totals"]["joules"] is None


@pytest.mark.parametrize("seconds", [0.1, 0.15, 0.25, 0.5])
def test_shorter_than_the_counter(hec, seconds):
    """Runs around the counter's step of 0.1 s: true within a wide bound, or invalid because too short; never 0."""
    run = Faulty(hec, "h200", seconds=seconds)
    assert_never_wrong(run)
    if not run.energy["valid"]:
        assert "too short to measure" in run.energy["why"]
        assert run.energy["partial_joules"] is None or run.energy["partial_joules"] > 0
    else:
        assert run.energy["joules"] > 0


def test_nothing_measured_is_not_zero(hec):
    done = hec("run", "--sim", "h200", "-o", "t.hec", "--", "sh", "-c", f"exit {STATUS}")
    assert_kept(done)
    energy = hec.report("t.hec")["devices"][0]["energy"]
    assert energy["joules"] is None or energy["joules"] > 0


# ---- around the command ----

def test_stale_socket(hec):
    """HEC_SOCKET left over from a run that is gone: a program's marks go nowhere, and quietly."""
    stale = {"HEC_SOCKET": str(hec.folder / "gone")}
    done = hec("run", "--sim", "h200", "-q", "-o", "s.hec", "--", hec.path, "sim", "healthy-train", "--seconds", "1",
               "--marks", env=stale)
    assert done.returncode == 0 and done.stderr == ""
    assert hec.report("s.hec")["units"]["count"] > 1000, "hec's own socket comes before an inherited one"
    inside = hec("run", "--sim", "h200", "-q", "-o", "i.hec", "--", "sh", "-c",
                 f"HEC_SOCKET=/gone {shlex.quote(hec.path)} sim healthy-train --seconds 0.5 --marks; exit {STATUS}")
    assert_kept(inside)
    assert inside.stderr == "" and hec.report("i.hec")["units"]["is_default"]


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(hec, streams):
    """hec's files never take the number of a closed stream, and the command finds the streams as it would without."""
    look = "for fd in 0 1 2; do test -e /proc/$$/fd/$fd && echo $fd; done > "
    line = f"{shlex.quote(hec.path)} run --sim h200 -o c.hec -- sh -c '{look} with; exit {STATUS}'"
    done = subprocess.run(["sh", "-c", f"sh -c '{look} without' {streams}; {line} {streams}"], cwd=hec.folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANGS_S)
    assert_kept(done)
    assert (hec.folder / "with").read_text() == (hec.folder / "without").read_text()
    assert_sound(hec.folder / "c.hec")
    assert hec("report", "c.hec").returncode == 0


def test_report_into_a_closed_pipe(hec):
    done = subprocess.run(["bash", "-c", f"{shlex.quote(hec.path)} run --sim h200 -o p.hec -- sh -c 'exit {STATUS}' 2>&1 | "
                           "true; exit ${PIPESTATUS[0]}"], cwd=hec.folder, capture_output=True, text=True, timeout=HANGS_S)
    assert_kept(done)


def test_hec_itself_stopped(hec):
    """SIGSTOP of hec alone, once its readings have begun, for longer than the driver's power history reaches: the counter bridges
    it, the gap is told. In real time: who is stopped takes no part in a common clock."""
    process = hec.popen("run", "--sim", "h200", "-q", "-o", "z.hec", "--", "sh", "-c",
                        f"{shlex.quote(hec.path)} sim healthy-train --seconds 14 --json; exit {STATUS}",
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: (hec.folder / "z.hec").exists() and any(
        device["energy"]["valid"] and device["energy"]["method"] == "simulated counter" for device in hec.report("z.hec")["devices"]))
    process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == STATUS and err == ""
    truth, report = json.loads(out), hec.report("z.hec")
    energy = report["devices"][0]["energy"]
    joules = truth["joules"] + IDLE_W * (report["run"]["seconds"] - truth["seconds"])
    assert energy["valid"] and energy["method"] == "simulated counter", energy["why"]
    assert abs(energy["joules"] - joules) <= energy["bound_joules"]
    assert energy["gaps"] >= 1 and 1 < energy["gap_seconds"] < 4
    assert re.search(r"\d gaps?, [0-9.]+ s", flat(hec("report", "z.hec").stdout))


def test_many_short_processes(hec):
    done = hec("run", "--sim", "h200", "-q", "-o", "m.hec", "--", "sh", "-c",
               f"for i in $(seq 300); do /bin/true & done; wait; sleep 0.3; exit {STATUS}")
    assert_kept(done)
    host = hec.report("m.hec")["host"]
    assert host["tree_processes"] >= 1 and host["tree_cpu_seconds"] > 0.05, "reaped children count through their parent"


def test_descendants_that_outlive_the_command(hec):
    """The window ends with the command; what lives on is told, and still charged for what it did until then."""
    done = hec("run", "--sim", "h200", "-o", "o.hec", "--", "sh", "-c",
               f"{shlex.quote(hec.path)} sim healthy-train --seconds 30 >/dev/null 2>&1 & echo $!; sleep 1.5; exit {STATUS}",
               stdin=subprocess.DEVNULL)
    player = int(done.stdout)
    try:
        assert_kept(done)
        os.kill(player, 0)
        report = hec.report("o.hec")
        assert 1.5 <= report["run"]["seconds"] < 10
        assert report["devices"][0]["used"] and report["devices"][0]["energy"]["valid"]
        assert report["devices"][0]["power_w"]["median"] == pytest.approx(674, rel=0.02)
        assert f"1 process of the command still running when it ended: hec ({player})" in flat(done.stderr)
    finally:
        os.kill(player, signal.SIGKILL)
