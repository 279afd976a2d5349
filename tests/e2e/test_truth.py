"""What `hec run` reports on the simulated GPU, against what the player of the workload knows to be true.

The window of a run is a little longer than the play: the player's own start and end. In that surplus nothing has a context,
so the device idles without one, and the truth of the window is

    joules of the play + (seconds of the run - seconds of the play) x idle power

exactly: the simulated device adds up in closed form."""
import concurrent.futures
import json
import shlex

import pytest

import conftest
from conftest import BINARY, Hec

SECONDS = 4
IDLE_W = {"h200": 82, "a100": 52, "p100": 31}  # sim/profiles.def, without a context
BOUND_SHARE = 0.03  # of a run of SECONDS at the lowest power (120 W)
DISAGREEMENT = 0.03
AT_ONCE = 4  # plays sleep, mostly
TOLD_BY_TELEMETRY = {"none", "copy", "launch", "host", "idle"}  # docs/findings.md
MIG = "MIG-51a1ed00-0000-4001-8000-{:012x}"


class Play(conftest.Play):
    def __init__(self, hec, case, *options, spec="h200", seconds=SECONDS, **more):
        super().__init__(hec, case, *options, spec=spec, seconds=seconds, **more)
        self.profile = spec.split(",")[0].split("x")[0]

    @property
    def used(self):
        found = [d for d in self.devices if d["used"]]
        assert len(found) == 1, [(d["index"], d["used_why"]) for d in self.devices]
        return found[0]

    @property
    def joules(self):
        return truth_of(self.truth, self.report, self.profile)


def truth_of(truth, report, profile="h200"):
    surplus = report["run"]["seconds"] - truth["seconds"]
    assert surplus >= 0
    return truth["joules"] + surplus * IDLE_W[profile]


def assert_true(device, joules, bound_share=BOUND_SHARE):
    """The figure is valid and the truth lies within the bound that it carries."""
    energy = device["energy"]
    assert energy["valid"], energy["why"]
    assert abs(energy["joules"] - joules) <= energy["bound_joules"], energy
    assert 0 < energy["bound_joules"] <= bound_share * energy["joules"], energy
    assert energy["coverage"] == pytest.approx(1), energy


def assert_counted(device):
    energy = device["energy"]
    assert energy["method"] == "simulated counter"
    assert energy["disagreement"] is not None and abs(energy["disagreement"]) < DISAGREEMENT
    assert energy["gaps"] == 0 and energy["resets"] == 0
    assert energy["quantum_seconds"] == pytest.approx(0.09994, rel=0.01)


CASES = conftest.cases()


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    """Every case once, some at a time."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("plays"))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        started = {name: pool.submit(Play, hec, name, "--marks", trace="off") for name in CASES}
        return {name: play.result() for name, play in started.items()}


@pytest.mark.parametrize("name", CASES)
def test_joules(plays, name):
    play = plays[name]
    assert_true(play.used, play.joules)
    assert_counted(play.used)
    assert play.report["totals"]["joules"] == pytest.approx(play.used["energy"]["joules"])
    assert play.report["run"]["simulated"] == "h200" and play.used["simulated"]


@pytest.mark.parametrize("name", CASES)
def test_what_telemetry_tells(plays, name):
    """Of the causes that telemetry alone can tell the right one, or none."""
    causes = {finding["cause"] for finding in plays[name].report["findings"]} & TOLD_BY_TELEMETRY
    assert causes == {CASES[name]["untraced"]} - {""}, plays[name].report["findings"]


@pytest.mark.parametrize("name", CASES)
def test_units(plays, name):
    """The program marks its steps; the report counts every one, also where they follow too fast for a sample each."""
    play, units = plays[name], plays[name].report["units"]
    if not play.truth["units"]:
        assert units["is_default"] and units["name"] == "run" and units["count"] == 1
        return
    assert not units["is_default"] and units["count"] == play.truth["units"]
    joules = play.report["totals"]["joules"]
    assert units["joules_per_unit"] == pytest.approx(joules / units["count"])
    assert abs(units["joules_per_unit"] - play.joules / units["count"]) <= units["joules_per_unit_bound"]
    assert units["per_second"] == pytest.approx(units["count"] / play.report["run"]["seconds"])


@pytest.mark.parametrize("name", CASES)
def test_split(plays, name):
    """Work and idle add up to the whole; idle with a context is right to within the windows of the hardware counters."""
    play, split = plays[name], plays[name].used["energy"]["split"]
    if split["idle_context_joules"] is None:
        assert split["work_joules"] is None and split["source"].startswith("unknown: ")
        return
    parts = split["work_joules"] + split["idle_context_joules"] + split["idle_joules"]
    assert parts == pytest.approx(play.used["energy"]["joules"])
    # One window of 120 ms more or less at each of the two edges of the run, and 5 % for activities that the
    # device's counters do not show as busy all the time.
    truth = play.truth["idle"]["joules"]
    assert split["idle_context_joules"] == pytest.approx(truth, rel=0.05, abs=0.05 * play.joules)


def test_a_run_without_marks_is_one_unit(hec):
    play = Play(hec, "healthy-train", seconds=1)
    assert play.report["units"]["is_default"] and "work " not in play.text.split("GPU 0")[0]


def test_no_gpm(hec):
    """An A100 has no GPM: the energy is as exact, findings less sure, the split labelled as an estimate."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        names = ("healthy-gemm", "data-starved", "checkpoint", "idle-allocated")
        for play in pool.map(lambda name: Play(hec, name, spec="a100", trace="off"), names):
            assert_true(play.used, play.joules)
            assert_counted(play.used)
            assert play.used["utilisation"]["sm"] is None and play.used["utilisation"]["gpu"] is not None
            assert all(finding["confidence"] <= 0.45 for finding in play.report["findings"] if finding["cause"] in TOLD_BY_TELEMETRY)
            assert "modelled, not measured" in play.text
            split = play.used["energy"]["split"]
            if split["idle_context_watts"] is not None:
                # the level is the device's idle power, whatever the coarse utilisation took for idle
                assert split["idle_context_watts"] == pytest.approx(66, rel=0.15)
                assert split["source"].startswith("estimated")


def test_no_energy_counter(hec):
    """A P100 has none: the figure is an integral of the power history, and its bound says that nothing checks it."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for play in pool.map(lambda name: Play(hec, name, spec="p100"), ("healthy-gemm", "mixed", "idle-allocated")):
            energy = play.used["energy"]
            assert energy["method"] == "simulated integral"
            assert energy["counter_joules"] is None and energy["disagreement"] is None and energy["counter_readings"] == 0
            assert_true(play.used, play.joules, bound_share=0.1)
            assert energy["bound_joules"] >= 0.05 * energy["joules"] * (1 - 1e-9), "nvml.h promises no more than 5 %"


@pytest.mark.parametrize("spec", ["h200,driver=450", "h200,nopower", "h200,cap=300",
                                  "h200,noise=20,sensor=1000:30,lose=20"])
def test_variants(hec, spec):
    play = Play(hec, "healthy-train", spec=spec)
    assert_true(play.used, play.joules, bound_share=0.06 if spec == "h200,nopower" else BOUND_SHARE)
    assert play.used["energy"]["method"] == "simulated counter"
    if spec == "h200,cap=300":
        assert play.used["power_w"]["limit"] == 300 and play.used["throttled"]["power"] > 0.5
        assert play.used["power_w"]["mean"] <= 310


# ---- several devices ----

def uuids(hec, spec):
    return [d["uuid"] for d in json.loads(hec.ok("devices", "--sim", spec, "--json").stdout)["devices"]]


def test_the_other_device_is_not_charged(hec):
    play = Play(hec, "mixed", spec="h200x2")
    assert play.used["index"] == 0
    assert_true(play.used, play.joules)
    other = play.devices[1]
    assert not other["used"] and other["used_why"] == "the command had no context on it"
    assert other["energy"]["joules"] == pytest.approx(82 * play.report["run"]["seconds"], rel=0.05)
    assert play.report["totals"]["devices_used"] == 1
    assert play.report["totals"]["joules"] == play.used["energy"]["joules"]


@pytest.mark.parametrize("how", ["index", "uuid", "beginning of the uuid", "ordinal"])
def test_visible_devices(hec, how):
    """The command's CUDA device 0 is the machine's device 1."""
    uuid = uuids(hec, "h200x2")[1]
    visible = {"index": "1", "uuid": uuid, "beginning of the uuid": uuid[:14], "ordinal": None}[how]
    play = Play(hec, "healthy-train", *([] if visible else ["--device", "1"]), spec="h200x2",
                env={"CUDA_VISIBLE_DEVICES": visible} if visible else None)
    assert play.used["index"] == 1 and play.used["uuid"] == uuid
    assert_true(play.used, play.joules)
    if visible:
        assert not play.devices[0]["visible"] and "CUDA_VISIBLE_DEVICES hides it" in play.devices[0]["used_why"]


def test_mig(hec):
    """A MIG instance is measured by its board, which the report says."""
    play = Play(hec, "healthy-train", spec="h200x2,mig=1", env={"CUDA_VISIBLE_DEVICES": MIG.format(1)})
    assert play.used["index"] == 0 and play.used["mig"]
    assert_true(play.used, play.joules)
    assert "whole board" in play.text
    assert not play.devices[1]["used"]


def test_two_players_on_two_devices(hec):
    """Both devices are used, and their energies and bounds are summed."""
    player = f"{shlex.quote(hec.path)} sim {{}} --json --seconds {{}} --device {{}} > {{}} &"
    script = player.format("healthy-train", 3, 0, "a.json") + player.format("data-starved", 4, 1, "b.json") + " wait"
    done = hec("run", "--sim", "h200x2", "-q", "-o", "two.hec", "--", "sh", "-c", script)
    assert done.returncode == 0 and not done.stderr
    report = hec.report("two.hec")
    truths = [json.loads((hec.folder / name).read_text()) for name in ("a.json", "b.json")]
    total = 0
    for device, truth in zip(report["devices"], truths):
        assert device["used"] and device["shared_with"] == 0
        assert_true(device, truth_of(truth, report))
        total += truth_of(truth, report)
    totals = report["totals"]
    assert totals["devices_used"] == 2
    assert totals["joules"] == pytest.approx(sum(d["energy"]["joules"] for d in report["devices"]))
    assert totals["bound_joules"] == pytest.approx(sum(d["energy"]["bound_joules"] for d in report["devices"]))
    assert abs(totals["joules"] - total) <= totals["bound_joules"]


def test_a_stranger_is_told(hec):
    """A process outside of the command on the same device: the energy is the device's, and the report says so. Whether it was at
    work, CUPTI and the engine's counter show together."""
    player = f"{shlex.quote(hec.path)} sim {{}} --seconds {{}} --device {{}} & "
    strangers = player.format("healthy-train", 3, 0) + player.format("idle-allocated", 3, 1)
    ours = player.format("data-starved", 2, 0) + player.format("data-starved", 2, 1) + "wait"
    hec.ok("run", "--sim", "h200x2", "-q", "-o", "outer.hec", "--", "sh", "-c",
           f"{strangers} {shlex.quote(hec.path)} run -q --trace=full -o inner.hec -- sh -c '{ours}'; wait")
    for device in hec.report("outer.hec")["devices"]:
        assert device["used"] and device["shared_with"] == 0, "all are the command's"
    report = hec.report("inner.hec")
    for device, others in zip(report["devices"], ("busy", "idle")):
        assert device["used"] and device["shared_with"] == 1, device["used_why"]
        assert device["others"] == others
        assert device["ledger_how"].startswith("rough: the joules are the device's") == (others == "busy")
    assert report["scale_out"]["verdict"] == "unknown"
    for finding in report["findings"]:
        assert finding["cause"] not in ("none", "idle")
        assert (finding["predicted"]["joules"] is None) == (finding["devices"] == [0])
    text = hec("report", "inner.hec").stdout
    assert "shared with 1 other process, at work: while CUPTI looked" in text
    assert "shared with 1 other process: the energy is the device's" in text
    assert "others were at work on GPU 0" in text
