"""hec calibrate where there is no GPU and on the simulated one, and what it makes of files that anybody may have written."""
import copy
import json
import os

import pytest

GOOD = {
    "schema": "hec.calibration/1", "name": "NVIDIA H200", "driver": "580.1", "measured": "2026-11-21T04:51:49+00:00",
    "hec_version": "0.1.0", "cuda_major": 9, "cuda_minor": 0, "sms": 132, "sm_max_mhz": 1980.0, "power_limit_w": 700.0,
    "shared": False, "simulated": False,
    "peaks": {
        "bf16": {"value": 9.5e14, "unit": "FLOP/s", "low": 9.4e14, "high": 9.6e14, "runs": 9, "method": "wgmma",
                 "throttled": True, "sm_mhz": 1795.0, "sustained": 8.9e14, "sustained_mhz": 1650.0,
                 "sustained_throttled": True},
        "launch": {"value": 2471.0, "unit": "ns", "low": 2400.0, "high": 2600.0, "runs": 9, "method": "mean of 200",
                   "throttled": False},
        "of a later version": {"value": -1},
    },
}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "calibrations"


@pytest.fixture
def show(hec, place):
    """Write a calibration of the simulated GPU (text, bytes or an object) and show it."""
    devices = json.loads(hec("devices", "--sim", "h200", "--json").stdout)["devices"]
    uuid = devices[0]["uuid"]

    def run(content, *arguments):
        place.mkdir(exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps({"uuid": uuid, **content})
        if isinstance(content, str):
            content = content.encode()
        path = place / f"{uuid}.json"
        if content is not None:
            path.write_bytes(content)
        return hec("calibrate", "--sim", "h200", "--show", *arguments, env={"HEC_CALIBRATION_DIR": str(place)})

    run.path = place / f"{uuid}.json"
    run.uuid = uuid
    return run


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia/version"), reason="there is a GPU here")
def test_without_gpu(hec, place):
    for arguments in ((), ("--json",), ("--show",)):
        done = hec("calibrate", *arguments, env={"HEC_CALIBRATION_DIR": str(place)})
        assert done.returncode == 66
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1 and "NVIDIA driver" in done.stderr
    assert not place.exists()


def test_a_simulated_gpu_is_refused(hec, place, tmp_path):
    """A simulated peak is no measurement, and nothing of it reaches the user's folder."""
    done = hec("calibrate", "--sim", "h200", env={"XDG_DATA_HOME": str(tmp_path / "data"), "HEC_CALIBRATION_DIR": ""})
    assert done.returncode == 69
    assert done.stdout == "" and "simulated" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
    done = hec("calibrate", "--sim", "h200x2", "--json", "--force", env={"HEC_CALIBRATION_DIR": str(place)})
    assert done.returncode == 69 and done.stderr.count("\n") == 2
    assert not place.exists()


def test_usage(hec):
    assert hec("calibrate", "something").returncode == 2
    assert hec("calibrate", "--device", "x").returncode == 2
    assert hec("calibrate", "--sim", "h200", "--device", "-1").returncode == 2
    assert hec("calibrate", "--sim", "h200", "--device", "1").returncode == 66
    assert "calibrate" in hec("--help").stdout


def test_show(show):
    done = show(GOOD, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == "hec.calibrate/1"
    expected = copy.deepcopy(GOOD)
    del expected["peaks"]["of a later version"]
    assert told["devices"] == [{"uuid": show.uuid, **expected}]
    done = show(None)
    assert "950.0 TFLOP/s" in done.stdout and "96 %" in done.stdout
    assert "890.0 TFLOP/s  without a pause" in done.stdout and "clocks lowered" in done.stdout
    assert done.stdout.count("unknown") == 17  # missing is not zero


def test_show_before_calibrating(show):
    done = show(None)
    assert done.returncode == 66 and "not calibrated yet" in done.stderr


def with_peak(**changes):
    changed = copy.deepcopy(GOOD)
    changed["peaks"]["bf16"].update(changes)
    return changed


def without(key):
    changed = copy.deepcopy(GOOD)
    del changed[key]
    return changed


@pytest.mark.parametrize("content, status", [
    ("", 65), ("{", 65), ("[]", 65), ("null", 65), ("{}", 65), ("[" * 20000, 65), (b"\xff\xfe\x00", 65),
    (json.dumps(GOOD) + "x", 65), ('{"schema": "hec.calibration/1", "schema": "hec.calibration/1"}', 65),
    ({**GOOD, "schema": "hec.calibration/2"}, 65), ({**GOOD, "schema": "hec.run/1"}, 65), ({**GOOD, "schema": 1}, 65),
    ({**GOOD, "uuid": "GPU-00000000-0000-0000-0000-000000000000"}, 65),
    ({**GOOD, "name": "N" * 1000}, 65), ({**GOOD, "name": 5}, 65), ({**GOOD, "sms": 0}, 65), ({**GOOD, "sms": 1.5}, 65),
    ({**GOOD, "cuda_major": 10**15}, 65), ({**GOOD, "shared": "no"}, 65), ({**GOOD, "peaks": []}, 65),
    (without("simulated"), 65), (without("peaks"), 65),
    (with_peak(value=0), 65), (with_peak(value=-1), 65), (with_peak(value=1e30), 65), (with_peak(value="1"), 65),
    (with_peak(value=None), 65), (with_peak(low=9.7e14), 65), (with_peak(high=1), 65), (with_peak(unit="OP/s"), 65),
    (with_peak(runs=0), 65), (with_peak(runs=10**9), 65), (with_peak(method="m" * 200), 65),
    (with_peak(throttled=1), 65), (with_peak(sustained=-1), 65), (with_peak(sustained_throttled=None), 65),
    (b" " * 300000, 65),
], ids=lambda value: None if len(str(value)) < 60 else "long")
def test_damaged_files(show, content, status):
    done = show(content)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_no_escape_reaches_the_terminal(show):
    done = show({**GOOD, "measured": "\x1b[2Jnow", "driver": "a\nb"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout and "a\nb" not in done.stdout


def test_what_others_may_change_is_not_believed(show, place):
    assert show(GOOD).returncode == 0
    for path in (place, show.path):
        path.chmod(0o777)
        done = show(None)
        assert done.returncode == 77 and "nothing there is trusted or kept" in done.stderr and done.stdout == ""
        path.chmod(0o700)
    assert show(None).returncode == 0


def test_not_a_file(show, place):
    place.mkdir()
    os.mkfifo(show.path)
    assert show(None).returncode == 65
    show.path.unlink()
    show.path.mkdir()
    assert show(None).returncode in (65, 74)
