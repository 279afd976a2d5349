"""The node agent on the simulated GPU: what it serves, what its counters do when it or a device goes and comes back."""
import base64
import contextlib
import ctypes
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import pwd
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import time

import conftest
import pytest
from agent_common import SANITIZED, Agent, Machine, hostile
from on_machine import on_machine, play

ROOT = pathlib.Path(__file__).parents[2]

STATES = {"busy", "idle_allocated", "idle_free", "unobserved"}
ENERGY, JOULES, SECONDS = ("hec_device_energy_joules_total", "hec_device_state_joules_total",
                           "hec_device_state_seconds_total")


VENDORS_LIST = """\
DCGM_FI_DEV_SM_CLOCK, gauge, clock
DCGM_FI_DEV_MEMORY_TEMP, gauge, memory temp
DCGM_FI_DEV_GPU_TEMP, gauge, temp
DCGM_FI_DEV_POWER_USAGE, gauge, power
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, energy
DCGM_FI_DEV_GPU_UTIL, gauge, util
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, mem util
DCGM_FI_DEV_FB_FREE, gauge, free
DCGM_FI_DEV_FB_USED, gauge, used
DCGM_FI_DRIVER_VERSION, label, driver
DCGM_FI_DEV_NAME, label, name
DCGM_FI_DEV_BRAND, label, brand
DCGM_FI_DEV_SERIAL, label, serial
DCGM_FI_DEV_COUNT, counter, devices
DCGM_FI_DEV_FAN_SPEED, gauge, fan
DCGM_FI_PROCESS_NAME, label, process
DCGM_FI_PROF_PCIE_TX_BYTES, counter, tx
DCGM_FI_PROF_PCIE_RX_BYTES, counter, rx
DCGM_FI_DEV_SLOWDOWN_TEMP, gauge, slowdown
DCGM_FI_DEV_POWER_MGMT_LIMIT, gauge, limit
DCGM_FI_DEV_PSTATE, gauge, pstate
DCGM_FI_DEV_FB_TOTAL, gauge,
DCGM_FI_DEV_FB_RESERVED, gauge,
DCGM_FI_DEV_FB_USED_PERCENT, gauge,
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, gauge, throttle
DCGM_FI_CUDA_DRIVER_VERSION, label,
DCGM_FI_DEV_MINOR_NUMBER, label,
"""
LABELS = (("DCGM_FI_DRIVER_VERSION", "580.159.04"), ("DCGM_FI_DEV_NAME", "NVIDIA H200"), ("DCGM_FI_DEV_SERIAL", "1650223000001"),
          ("DCGM_FI_CUDA_DRIVER_VERSION", "13000"), ("DCGM_FI_DEV_MINOR_NUMBER", "1"))


@pytest.fixture
def started(hec):
    """Starts agents that serve all there is, and sees that they end well."""
    with contextlib.ExitStack() as stack:
        def start(*arguments, **options):
            agent = Agent(hec, "--all-series", *arguments, **options)
            stack.callback(lambda: agent.process.poll() is None and agent.stop())
            return agent
        yield start


@pytest.fixture
def machine(hec):
    with contextlib.ExitStack() as stack:
        def make(spec):
            made = Machine(hec, spec)
            stack.callback(made.close)
            return made
        yield make


def assert_adds_up(page):
    """Every joule of a counter is in one state, and somebody's or nobody's."""
    for labels, joules in page.all(ENERGY):
        states = page.all(JOULES, gpu=labels["gpu"])
        assert {found["state"] for found, _ in states} >= STATES
        assert sum(value for _, value in states) == pytest.approx(joules, abs=1e-6, rel=1e-9)
        assert page.sum("hec_energy_joules_total", gpu=labels["gpu"]) == pytest.approx(joules, abs=1e-6, rel=1e-9)


def assert_grew(before, after):
    """No counter is lower, and none is gone."""
    kinds = {line.split()[2] for line in before.text.splitlines() if line.startswith("# TYPE") and line.endswith(" counter")}
    later = {(name, tuple(labels.items())): value for name, labels, value in after.samples}
    for name, labels, value in before.samples:
        # dcgm-exporter's own begin again with the driver; what is of the process, with the process
        if name in kinds and name.startswith("hec_") and not name.startswith("hec_agent_"):
            assert later[name, tuple(labels.items())] >= value, (name, labels)


def test_serves(started):
    agent = started("--sim", "h200x2", "--state-dir", "kept")
    agent.until(lambda page: len(page.all(ENERGY)) == 2)
    status, headers, text = agent.ask(headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    status, headers, text = agent.ask(headers={"Accept": "text/plain"})
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8" and "# EOF" not in text
    agent.until_ready()
    assert agent.ask("/healthz")[0] == 200
    status, headers, text = agent.ask("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html") and '"kind":"live"' in text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "frame-ancestors 'none'" in policy
    for kind, inlined in (("script", text.rsplit("<script>", 1)[1].split("</script>")[0]),
                          ("style", text.split("<style>")[1].split("</style>")[0])):
        digest = base64.b64encode(hashlib.sha256(inlined.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy and "unsafe" not in policy
    status, headers, text = agent.ask("/live.json")
    live = json.loads(text)
    assert status == 200 and headers["Content-Type"] == "application/json" and headers["Cache-Control"] == "no-store"
    assert [(device["index"], device["name"], device["up"]) for device in live["devices"]] == [(i, "NVIDIA H200", True) for i in (0, 1)]
    assert live["interval_s"] == 0.2 and live["jobs"] == [] and live["tenants"] == [] and live["trouble"] is None
    assert agent.ask("/metrics", "HEAD")[::2] == (200, "")
    assert agent.ask("/nothing")[0] == 404 and agent.ask("/../etc/passwd")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        status, headers, _ = agent.ask(method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    connection = http.client.HTTPConnection(agent.host, agent.port, timeout=conftest.HANGS_S)
    for _ in range(3):
        connection.request("GET", "/metrics")
        sock = connection.sock
        assert connection.getresponse().read() and connection.sock is sock, "the connection is kept"
    connection.close()
    page = agent.until(lambda page: page.sum("hec_agent_dropped_total", what="http_requests") == 7)
    assert page.one("hec_build_info") == 1
    assert 0 < page.one("hec_agent_resident_bytes") and 0 < page.one("hec_agent_cpu_seconds_total") < 20
    assert page.one("DCGM_FI_DEV_POWER_USAGE", gpu="1") == 82
    assert_adds_up(page)
    assert agent.stop() == 0
    assert agent.said.count("\n") == 1, "nothing is said but where it listens"


def test_options_of_dcgm_exporter(started, hec):
    (hec.folder / "fields.csv").write_text("DCGM_FI_DEV_GPU_TEMP, gauge, how warm\nDCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, licence\n")
    agent = started("--sim", "h200", "-f", "fields.csv", "-o", "-n", "-c", 300, "-k")
    page = agent.until(lambda page: page.all("DCGM_FI_DEV_GPU_TEMP"))
    assert "# HELP DCGM_FI_DEV_GPU_TEMP how warm" in page.text
    assert page.all("dcgm_gpu_temp") and not page.all("DCGM_FI_DEV_POWER_USAGE")
    assert "Hostname" not in page.text
    assert not page.all("DCGM_FI_DEV_VGPU_LICENSE_STATUS"), "not measured: absent"
    assert page.one("hec_agent_interval_seconds") == 0.2, "--interval before -c"


THEIRS = re.findall(r'HEC_EXPORTER_OPTION\("([^"]*)", (0|\'.\'), (\w+), "([^"]*)"', (ROOT / "src/cli/exporter.def").read_text(encoding="utf-8"))


def test_every_option_of_dcgm_exporter_is_taken(started, hec):
    """What has no counterpart is said in a sentence, once; switches as Go writes them; a blank of the model's name becomes a dash."""
    assert len(THEIRS) == 26
    words = [word for name, letter, kind, _ in THEIRS for word in ([f"--{name}", "7"] if kind == "VALUE" else [f"-{name}=true"])]
    agent = started("--sim", "h200", *words, "--kubernetes=true", "-use-old-namespace=false", "-no-hostname=1", "-address", ":0")
    page = agent.until(lambda page: page.all("DCGM_FI_DEV_GPU_TEMP"))
    labels, _ = page.all("DCGM_FI_DEV_GPU_TEMP")[0]
    assert labels["modelName"] == "NVIDIA-H200" and "Hostname" not in page.text and not page.all("dcgm_gpu_temp")
    for name, _, kind, _ in THEIRS:
        assert agent.said.count(f"agent: --{name}: ") == (kind != "AS"), agent.said
    here = started("--sim", "h200", "-sf", "-p", "f", "-x7", "--dump-enabled=false",
                   env={**{variable: "true" for *_, variable in THEIRS if variable}, "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME": "t"})
    page = here.until(lambda page: page.all("DCGM_FI_DEV_GPU_TEMP"))
    assert page.all("DCGM_FI_DEV_GPU_TEMP")[0][0]["modelName"] == "NVIDIA-H200"
    for name, letter, kind, variable in THEIRS:
        assert here.said.count(f"agent: {variable}: ") == (kind != "AS"), here.said
        assert here.said.count(f"agent: --{name}: ") == (letter != "0")


# the names of its etc/1.x-compatibility-metrics.csv, 4.5
OLD_FIELDS = """sm_clock memory_clock memory_temp gpu_temp power_usage total_energy_consumption pcie_tx_throughput pcie_rx_throughput
pcie_replay_counter gpu_utilization mem_copy_utilization enc_utilization dec_utilization xid_errors fb_free fb_used
nvlink_bandwidth_total fi_prof_gr_engine_active fi_prof_pipe_tensor_active fi_prof_dram_active fi_prof_pcie_tx_bytes
fi_prof_pcie_rx_bytes""".split()


def test_devices_jobs_and_files_of_dcgm_exporter(started, hec):
    """-d shows fields of some devices, and HEC's own of all; files of jobs by GPU become hpc_job, a series each; the old file is taken."""
    jobs = hec.folder / "map"
    jobs.mkdir(mode=0o755)
    for name, text in (("0", "41 ada\n42\n"), ("1", "0\n"), ("2", "43\n")):
        (jobs / name).write_text(text)
        (jobs / name).chmod(0o644)
    (hec.folder / "old.csv").write_text("".join(f"dcgm_{name}, gauge, as before\n" for name in OLD_FIELDS))
    agent = started("--sim", "h200x3", "-f", "old.csv", "-d", "g:0-1", "-r", "localhost:5555", "-m", "gpu:fields",
                    env={"DCGM_HPC_JOB_MAPPING_DIR": "map"})
    page = agent.until(lambda page: all(page.all(f"dcgm_{name}", gpu="1") for name in OLD_FIELDS)  # a rate takes two readings of a device
                       and page.sum(SECONDS, gpu="2", state="idle_allocated") > 0)
    for name in OLD_FIELDS:
        assert {(labels["gpu"], labels.get("hpc_job")) for labels, _ in page.all(f"dcgm_{name}")} == {("0", "41"), ("0", "42"), ("1", None)}, name
    assert len(page.all("hec_device_power_watts")) == 3
    assert page.sum(SECONDS, gpu="1", state="idle_allocated") == 0 and page.sum(SECONDS, gpu="0", state="idle_allocated") > 0
    assert page.all("hec_energy_joules_total", gpu="0", hpc_job="41", user="ada", part="idle")
    assert "-m gpu:fields: HEC reads no ConfigMap" in agent.said and "does not know" not in agent.said


MORE_FIELDS = """DCGM_FI_DEV_POWER_VIOLATION, counter, held down by power
DCGM_FI_DEV_THERMAL_VIOLATION, counter, held down by heat
DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF, gauge, limit by default
"""


def test_variables_of_dcgm_exporter(started, hec):
    """They stand for its options, and HEC's own go before."""
    (hec.folder / "fields.csv").write_text("DCGM_FI_DEV_GPU_TEMP, gauge, how warm\n")
    agent = started("--sim", "h200", env={"DCGM_EXPORTER_COLLECTORS": "fields.csv", "DCGM_EXPORTER_USE_OLD_NAMESPACE": "true",
                                          "DCGM_EXPORTER_NO_HOSTNAME": "false", "DCGM_EXPORTER_INTERVAL": "30000"})
    page = agent.until(lambda page: page.all("DCGM_FI_DEV_GPU_TEMP"))
    assert "# HELP DCGM_FI_DEV_GPU_TEMP how warm" in page.text and page.all("dcgm_gpu_temp") and "Hostname" in page.text
    assert not page.all("DCGM_FI_DEV_POWER_USAGE") and page.one("hec_agent_interval_seconds") == 0.2, "--interval before the variable"
    for name, value, words in (("DCGM_EXPORTER_COLLECTORS", "none.csv", "cannot open none.csv"),
                               ("DCGM_EXPORTER_WEB_CONFIG_FILE", "none.yml", "cannot open none.yml"),
                               ("DCGM_EXPORTER_INTERVAL", "soon", "collect-interval needs a number")):
        done = hec("agent", "--sim", "h200", "--listen", "0", "--jobs", "", env={name: value})
        assert done.returncode != 0 and words in done.stderr, done.stderr
    done = hec("agent", "--sim", "h200", "--listen", "0", "--web-config-file", "none.yml")
    assert done.returncode != 0 and "cannot open none.yml" in done.stderr


def test_fields_of_a_vendors_list(started, hec, machine):
    """A list as an observability vendor recommends it: what the driver says is served in DCGM's units, and what is missing is said."""
    here = machine("h200x2")
    (hec.folder / "fields.csv").write_text(VENDORS_LIST + "DCGM_FI_DEV_NVLINK_COUNT, counter, links\n" + MORE_FIELDS)
    agent = started("--sim", "h200x2", "-f", "fields.csv", env=here.env)
    page = agent.until(lambda page: page.all("DCGM_FI_DEV_PSTATE") and page.all("DCGM_FI_PROF_PCIE_TX_BYTES"))
    names = [line.split(",")[0] for line in VENDORS_LIST.splitlines()]
    absent = {"DCGM_FI_DEV_BRAND", "DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_PROCESS_NAME"}
    labels, total = page.all("DCGM_FI_DEV_FB_TOTAL", gpu="1")[0]
    assert {name for name in names if not page.all(name) and name not in labels} == absent
    for name, text in LABELS:
        assert labels[name] == text
    used, free, reserved = (page.one(f"DCGM_FI_DEV_FB_{part}", gpu="1") for part in ("USED", "FREE", "RESERVED"))
    assert total == pytest.approx(used + free + reserved, abs=0.01) and 140000 < total < 144000
    assert page.one("DCGM_FI_DEV_FB_USED_PERCENT", gpu="1") == pytest.approx(used / (used + free), abs=1e-6)
    for name, value in (("COUNT", 2), ("POWER_MGMT_LIMIT", 700), ("PSTATE", 0), ("SLOWDOWN_TEMP", 89),
                        ("CLOCK_THROTTLE_REASONS", 1), ("POWER_MGMT_LIMIT_DEF", 700)):
        assert page.one(f"DCGM_FI_DEV_{name}", gpu="1") == value, name
    for name, reason in (("POWER", "power"), ("THERMAL", "thermal")):
        assert page.one(f"DCGM_FI_DEV_{name}_VIOLATION", gpu="1") == pytest.approx(
            1e9 * page.one("hec_device_throttled_seconds_total", gpu="1", reason=reason), abs=1)
    while agent.said.count("\n") < 4:
        time.sleep(0.05)
    lines = agent.said.splitlines()
    assert sum("hec does not know 1 of its fields, which are absent: DCGM_FI_DEV_NVLINK_COUNT" in line for line in lines) == 1
    for gpu in (0, 1):
        said = [line for line in lines if f"GPU {gpu} does not give these fields, which are absent: " in line]
        assert len(said) == 1 and set(said[0].rsplit(": ", 1)[1].split(", ")) == absent, agent.said


def test_series_that_nobody_asks_for(hec, machine):
    """They are served with --all-series alone; what has a figure by default has the same there."""
    here = machine("h200")
    pages = []
    for options in ((), ("--all-series",)):
        agent = Agent(hec, *options, env=here.env)
        pages.append(agent.until(lambda page: page.all("DCGM_FI_PROF_PCIE_TX_BYTES") and page.all("hec_device_verdict")))
        assert agent.stop() == 0
    usual, whole = ({name for name, _, _ in page.samples} for page in pages)
    more = {f"DCGM_FI_DEV_{name}" for name in ("MEM_CLOCK", "PCIE_REPLAY_COUNTER", "ENC_UTIL", "DEC_UTIL", "FB_RESERVED",
                                               "CORRECTABLE_REMAPPED_ROWS", "MEM_COPY_UTIL", "NVLINK_BANDWIDTH_TOTAL")}
    more |= {f"hec_device_{name}" for name in ("energy_resets_total", "power_watts", "power_limit_watts", "energy_age_seconds",
                                               "seconds_total", "throttled_seconds_total", "throttle_lost_joules_total",
                                               "xid_errors_total")}
    assert usual < whole and whole - usual - {"hec_device_idle_power_watts"} == more  # that one once the device has idled
    assert len(pages[0].all(JOULES)) == 3 and len(pages[1].all(JOULES)) == 4, "it was never unobserved"


def test_a_page_is_packed_where_that_is_asked_for(started):
    agent = started("--sim", "h200")
    agent.until(lambda page: page.all(ENERGY))
    for accept, packed in ((None, False), ("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("xgzip", False),
                           ("identity", False)):
        connection = http.client.HTTPConnection(agent.host, agent.port, timeout=conftest.HANGS_S)
        for path in ("/metrics", "/live.json"):
            connection.request("GET", path, headers={"Accept-Encoding": accept} if accept else {})
            response = connection.getresponse()
            body = response.read()
            assert (response.getheader("Content-Encoding") == "gzip") == packed, (accept, path)
            text = gzip.decompress(body) if packed else body
            assert text.startswith(b"{" if path == "/live.json" else b"# HELP ")
            assert not packed or len(body) < len(text) / (1 if path == "/live.json" else 2)
            assert path == "/live.json" or "Accept-Encoding" in response.getheader("Vary")
        connection.close()


def test_what_the_agent_says_of_its_process(started):
    agent = started("--sim", "h200")
    page = agent.until(lambda page: page.all(ENERGY))
    assert 0 < page.one("process_cpu_seconds_total") < 20 and 0 < page.one("process_resident_memory_bytes") < 1e9
    assert page.one("process_resident_memory_bytes") < page.one("process_virtual_memory_bytes")
    assert 5 < page.one("process_open_fds") < page.one("process_max_fds")
    assert abs(page.one("process_start_time_seconds") - time.time()) < 600


@on_machine("h200x3")
def test_who_wastes(started, hec):
    """Of jobs that do not report: what each draws while its device waits, and why, as likely as counters can tell; one of a kind a row."""
    players = [play(hec, case, 120, "--device", gpu) for gpu, case in enumerate(("data-starved", "healthy-train", "host-bound"))]
    agent = started()
    likely = {"data-starved": "starved", "healthy-train": "none", "host-bound": "starved"}  # for what, no counter says

    def causes(page):
        return {labels["command"].split()[2]: labels["cause"] for labels, _ in page.all("hec_tenant_verdict", by="telemetry")}

    page = agent.until(lambda page: causes(page) == likely and page.sum("hec_wasted_joules_total", cause="starved") > 500)
    assert {labels["verdict"] for labels, _ in page.all("hec_device_verdict", by="telemetry")} == {"starved", "healthy"}
    assert 0 < min(sure for _, sure in page.all("hec_tenant_verdict")) and max(sure for _, sure in page.all("hec_tenant_verdict")) < 0.8
    live = agent.live()
    worst, _, best = live["tenants"]
    assert [row["wasted_joules"] for row in live["tenants"]] == sorted((row["wasted_joules"] for row in live["tenants"]), reverse=True)
    assert "healthy-train" in best["command"] and best["says"] == "healthy" and best["advice"] is None
    assert "data-starved" in worst["command"] and worst["says"].startswith("starved") and worst["worked_share"] + 0.2 < best["worked_share"]
    for row in (worst, best):
        assert row["worked_joules"] + row["wasted_joules"] == pytest.approx(row["joules"], abs=0.01)
        assert sum(row["wasted_by_cause"].values()) == pytest.approx(row["wasted_joules"], abs=0.01)
    (team,) = live["teams"]
    assert team["wasted_joules"] == pytest.approx(sum(row["wasted_joules"] for row in live["tenants"]), abs=0.01)
    watts = [dict(zip(live["causes"]["names"], cell)) for cell in live["causes"]["watts"]]
    assert max(cell["idle_allocated"] or 0 for cell in watts) > 100, "no chart that is all busy"
    assert_adds_up(page)
    for player in players:
        player.kill()
        player.wait(conftest.HANGS_S)


def test_refuses(hec):
    for arguments, words in ((["--interval", "0"], "--interval needs a number from 0.2"),
                             (["--listen", "nowhere:x"], "--listen needs ADDRESS:PORT"),
                             (["--web-config", "none.yml"], "cannot open none.yml"),
                             (["--collectors", "none.csv"], "cannot open none.csv"),
                             (["--user", "no-such-user"], "there is no user"),
                             (["-r", "gpu7:5555"], "-r gpu7:5555: HEC reads the GPUs of its own machine"),
                             (["-d", "i:0"], "GPU instances are shown all or none"), (["-d", "g:3-1"], "-d takes f, g, i"),
                             (["-d", "g+g"], "-d takes f, g, i"), (["-d", ""], "-d takes f, g, i"), (["-d", "g:0,"], "-d takes f, g, i"),
                             (["-d", "g:64"], "-d takes f, g, i"), (["-d", "x"], "-d takes f, g, i"),
                             (["more"], "takes no operand")):
        done = hec("agent", "--sim", "h200", "--listen", "0", *arguments)
        assert done.returncode != 0 and words in done.stderr, done.stderr


@on_machine("h200x2")
def test_a_load(started, hec):
    agent = started("--state-dir", "kept")
    player = play(hec, "healthy-train", 1.5)
    page = agent.until(lambda page: page.sum(JOULES, gpu="0", state="busy") > 300)
    assert_adds_up(page)
    assert page.sum(SECONDS, gpu="0", state="busy") > 0.3
    assert page.sum(JOULES, gpu="1", state="busy") == 0 and page.sum(JOULES, gpu="1", state="idle_free") > 20
    assert page.one("DCGM_FI_PROF_SM_ACTIVE", gpu="0") > 0.3 if page.all("DCGM_FI_PROF_SM_ACTIVE") else True
    active = page.sum("hec_energy_joules_total", gpu="0", part="active", command="hec")
    assert active > 100
    (labels, bound), = page.all("hec_energy_error_joules")  # alone: what the idle floor may be off, or as much as idling may draw
    assert labels in [found for found, _ in page.all("hec_energy_joules_total")] and labels["part"] == "active"
    assert 0 < bound <= active
    live = agent.live()
    (tenant,), (busy, idle) = live["tenants"], live["devices"]
    assert ": hec sim healthy-train" in tenant["name"] and tenant["devices"] == [0] and tenant["joules"] > 100
    assert 0 < tenant["error_joules"] <= tenant["joules"]
    assert max(watts or 0 for watts in busy["power_history_w"]) > 200 and busy["limit_w"] == 700 and busy["joules"] > 300
    assert idle["power_w"] == 82 and set(idle["power_history_w"]) <= {82, None} and 0 < idle["memory_total_bytes"]
    def watts():
        causes = agent.live()["causes"]
        return [dict(zip(causes["names"], cell)) for cell in causes["watts"]]
    assert max(cell["busy"] or 0 for cell in watts()) > 150
    conftest.until(lambda: watts()[-1]["idle_free"] == pytest.approx(82, rel=0.2), why=watts)  # a cell of a late reading has more
    assert player.wait(conftest.HANGS_S) == 0
    agent.until(lambda page: page.one("DCGM_FI_DEV_GPU_UTIL", gpu="0") == 0)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@on_machine("h200x2")
def test_counters_go_on(started, how):
    """Over a restart, killed or not: what was drawn meanwhile is unobserved, and nothing is lost."""
    first = started("--state-dir", "kept")
    before = first.until(lambda page: all(value > 40 for _, value in page.all(ENERGY)) and page.all(ENERGY))
    assert first.stop(how) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    raw = before.one("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0")
    time.sleep(0.6)
    second = started("--state-dir", "kept")
    after = second.until(lambda page: page.sum(JOULES, gpu="0", state="unobserved") > 0.6 * 80
                         and page.all("hec_device_throttled_seconds_total", gpu="1"))
    assert_grew(before, after)
    assert_adds_up(after)
    grown = after.one("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0") - raw
    assert after.one(ENERGY, gpu="0") - before.one(ENERGY, gpu="0") == pytest.approx(grown / 1e3, abs=0.01)
    assert 0.6 <= after.sum(SECONDS, gpu="0", state="unobserved") <= 30
    assert after.one("hec_device_energy_resets_total", gpu="0") == 0


SLOW_DISK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int renameat(int from, const char *old, int to, const char *now) {
    usleep(300000);
    return ((int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat"))(from, old, to, now);
}
"""


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="has to be loaded first")
def test_counters_go_on_where_a_disk_is_slow(started, machine, tmp_path):
    """Samples come in while the state is written: what is shown is no newer than it."""
    here, library = machine("h200x2"), tmp_path / "slow_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=SLOW_DISK, text=True, check=True)
    for grown in (1, 50, 100):
        agent = started("--state-dir", "kept", env={**here.env, "LD_PRELOAD": str(library)})
        page = agent.until(lambda page, grown=grown: all(value > grown for _, value in page.all(ENERGY)) and page.all(ENERGY)
                           and all(page.all("hec_device_throttled_seconds_total", gpu=gpu) for gpu in "01"))
        agent.stop(signal.SIGKILL)
        if grown > 1:
            assert_grew(before, page)
        before = page


def test_another_agent_has_the_state(started, hec):
    started("--sim", "h200", "--state-dir", "kept")
    done = hec("agent", "--sim", "h200", "--listen", "0", "--state-dir", "kept")
    assert done.returncode == 75 and "another agent keeps its state in kept" in done.stderr


def test_damaged_state(started, hec):
    kept = hec.folder / "kept"
    kept.mkdir()
    (kept / "state").write_text("hec-agent-state 1\nenergy_mj 99999\nsha256 " + "0" * 64 + "\n")
    agent = started("--sim", "h200", "--state-dir", "kept")
    assert "does not have the digest that it names" in agent.said and (kept / "state.damaged").exists()
    assert agent.until(lambda page: page.all(ENERGY)).one(ENERGY) < 9000


def test_full_disk(started, hec):
    """The agent goes on, says so once and in a metric, and keeps the state again when there is room."""
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    agent = started("--sim", "h200x8", "--state-dir", "kept", preexec_fn=full)
    page = agent.until(lambda page: page.sum("hec_agent_dropped_total", what="state_writes") > 2 and len(page.all(ENERGY)) == 8)
    assert page.one("hec_agent_state_saved") == 0
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    agent.until(lambda page: page.one("hec_agent_state_saved") == 1)
    assert agent.stop() == 0 and agent.said.count("cannot be kept") == 1
    assert "sha256 " in (hec.folder / "kept" / "state").read_text()


@on_machine("h200x3,fail=nvmlInit_v2@0-0.5,lost@2-2.7:0,reset@2.5:1")
def test_faults(started):
    """The driver comes late, a device is lost and comes back, a counter is reset: the others go on, and no joule is
    invented."""
    agent = started()
    assert agent.ask("/healthz")[0] == 200
    agent.until(lambda page: len(page.all(ENERGY)) == 3)
    before = agent.until(lambda page: page.one("hec_device_up", gpu="0") == 0)
    assert before.one("hec_device_up", gpu="2") == 1 and not before.all("DCGM_FI_DEV_POWER_USAGE", gpu="0")
    after = agent.until(lambda page: page.one("hec_device_up", gpu="0") == 1
                        and page.sum(JOULES, gpu="0", state="unobserved") > 0)
    after = agent.until(lambda page: page.sum("hec_device_energy_resets_total", gpu="1") == 1)
    assert_grew(before, after)
    assert_adds_up(after)
    # Joules are of values of the counter, which are 0.1 s old at most, from reading to reading: 0.2 s, and what it takes to read three.
    drawn, value, reading = 82 * after.sum(SECONDS, gpu="2"), 82 * 0.1, 82 * 0.22
    counted = [after.one(ENERGY, gpu=gpu) for gpu in "012"]
    assert all(drawn - value - reading <= joules <= drawn + value for joules in (counted[0], counted[2])), (drawn, counted)
    lost = value + reading  # by the reset, at most: what was drawn since the last value that was read
    assert counted[2] - value - lost <= counted[1] <= counted[2] + value + reading, (drawn, counted)
    assert after.sum("hec_device_energy_resets_total", gpu="0") == 0
    assert "the NVIDIA driver does not start" in agent.said and "GPU 0 does not answer" in agent.said
    assert agent.said.count("every GPU answers again") == 2


@on_machine("h200x3,xid=31@2:1,xid=31@2.01:1,xid=31@2.02:1,xid=200@2.5:2,xid=79@3:0,xid=13@3:1,lost@3-4.5:0")
def test_xid(started):
    """The last one of each device, which outlives the device's loss; 0 where none has come. What comes just before the driver is
    opened again, as it is after a loss, is taken first."""
    name, counts = "DCGM_FI_DEV_XID_ERRORS", "hec_device_xid_errors_total"
    agent = started("--state-dir", "kept")
    page = agent.until(lambda page: len(page.all(name)) == 3)
    assert len(page.all(name, err_code="0", err_msg="No Error")) == 3
    assert len(page.all(counts)) == len(page.all(counts, xid="other")) == 3 and page.sum(counts) == 0
    assert page.sum(name) == 0 and page.one(name, gpu="1", UUID=page.all(ENERGY, gpu="1")[0][0]["UUID"]) == 0
    agent.until(lambda page: page.one("hec_device_up", gpu="0") == 0)
    assert agent.page().one(name, gpu="0") == 79
    page = agent.until(lambda page: page.one("hec_device_up", gpu="0") == 1 and page.one(name, gpu="1") == 13)
    assert [page.one(name, gpu=gpu) for gpu in "012"] == [79, 13, 200]
    assert page.one(name, gpu="0", err_code="79", err_msg="The device fell off the bus") == 79
    assert page.one(name, gpu="2", err_code="200", err_msg="Unknown Error") == 200
    came = {("0", "79"): 1, ("1", "31"): 3, ("1", "13"): 1, ("2", "200"): 1}
    assert {(found["gpu"], found["xid"]): value for found, value in page.all(counts) if value} == came
    assert agent.stop() == 0
    again = started("--state-dir", "kept").until(lambda page: len(page.all(name)) == 3)
    assert again.sum(name) == 0 and again.sum(counts) == 6
    assert {(found["gpu"], found["xid"]): value for found, value in again.all(counts) if value} == came


@pytest.mark.parametrize("refused", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2"])
def test_a_driver_without_xids(started, refused):
    agent = started("--sim", f"h200,fail={refused}")
    page = agent.until(lambda page: page.all("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"))
    assert not page.all("DCGM_FI_DEV_XID_ERRORS") and page.one("hec_device_up") == 1
    assert agent.stop() == 0


def test_a_driver_that_hangs(started):
    """It keeps serving what it can."""
    agent = started("--sim", "h200,hang=nvmlInit_v2")
    agent.until_ready()
    assert agent.ask("/healthz")[0] == 200
    page = agent.page()
    assert page.one("hec_build_info") == 1 and not page.all(ENERGY)
    assert agent.stop() == 0


HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"  # of "correct horse"
TLS = pathlib.Path(__file__).with_name("agent_tls")


def test_tls_and_passwords(started, hec):
    """As a file of Prometheus' exporters asks for them; an orchestrator's probes need no password."""
    (hec.folder / "web.yml").write_text(f"tls_server_config:\n  cert_file: {TLS}/cert.pem\n  key_file: {TLS}/key.pem\n"
                                        f"basic_auth_users:\n  prometheus: {HASH}\n")
    agent = started("--sim", "h200", "--web-config", "web.yml")
    assert agent.scheme == "https"
    context = ssl.create_default_context(cafile=TLS / "cert.pem")

    def status(path, name=None):
        token = base64.b64encode((name or "").encode()).decode()
        return agent.ask(path, headers={"Authorization": f"Basic {token}"} if name else {}, context=context)[0]
    assert status("/metrics") == status("/") == status("/live.json") == 401
    assert status("/metrics", "prometheus:correct horse") == 200
    assert status("/metrics", "prometheus:wrong") == status("/", "eve:correct horse") == 401
    assert status("/metrics", "prometheus:correct horse") == 200, "others who try do not keep it out"
    assert status("/healthz") == 200
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        agent.ask("/healthz", context=old)
    with socket.create_connection((agent.host, agent.port), timeout=5) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        with contextlib.suppress(OSError):
            assert b"hec_" not in plain.recv(65536)


def test_reload(started, hec):
    """SIGHUP: the files once more. What cannot be read leaves what was, and nothing ends the agent."""
    (hec.folder / "web.yml").write_text(f"basic_auth_users:\n  ann: {HASH}\n")
    (hec.folder / "fields.csv").write_text("DCGM_FI_DEV_GPU_TEMP, gauge, how warm\n")
    agent = started("--sim", "h200", "--web-config", "web.yml", "-f", "fields.csv")

    def page(name):
        token = base64.b64encode(f"{name}:correct horse".encode()).decode()
        return agent.ask("/metrics", headers={"Authorization": f"Basic {token}"})

    def reloaded(text):
        agent.process.send_signal(signal.SIGHUP)
        conftest.until(lambda: text in agent.said, why=lambda: agent.said)

    conftest.until(lambda: "DCGM_FI_DEV_GPU_TEMP" in page("ann")[2], why=lambda: agent.said)
    (hec.folder / "web.yml").write_text(f"basic_auth_users:\n  bob: {HASH}\n")
    (hec.folder / "fields.csv").write_text("DCGM_FI_DEV_SM_CLOCK, gauge, how fast\n")
    reloaded("reloaded")
    conftest.until(lambda: "DCGM_FI_DEV_SM_CLOCK" in page("bob")[2], why=lambda: agent.said)
    assert "DCGM_FI_DEV_GPU_TEMP" not in page("bob")[2] and page("ann")[0] == 401
    (hec.folder / "web.yml").write_text("nonsense: [")
    reloaded("not reloaded")
    assert page("bob")[0] == 200, "known, although ann was wrong just now"
    for data, why in ((bytes(200), "it holds a NUL"), (b"", "names no users any more"), (None, "is no plain file")):
        (hec.folder / "web.yml").unlink()
        (hec.folder / "web.yml").write_bytes(data) if data is not None else os.mkfifo(hec.folder / "web.yml")
        reloaded(why)
        assert page("bob")[0] == 200 and agent.ask("/metrics")[0] == 401


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs the rights")
def test_gives_up_rights(started):
    """No new rights, no new programs, no capability but to read what root's processes say of themselves, and no file to write."""
    agent = started("--sim", "h200", "--state-dir", "kept")
    status = status_of(agent.process.pid)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapEff"], 16) | int(status["CapPrm"], 16) in (0, 1 << 19)
    if os.geteuid() == 0:
        assert int(status["CapBnd"], 16) in (0, 1 << 19)
        with open(f"/proc/{agent.process.pid}/mountinfo", encoding="utf-8") as file:
            options = {line.split()[4]: line.split()[5] for line in file}
        assert options["/"].split(",")[0] == "ro"
    agent.until(lambda page: page.one("hec_agent_state_saved") == 1)


def as_another_user_who_may_trace():
    """As systemd starts a service with User= and AmbientCapabilities=CAP_SYS_PTRACE."""
    libc = ctypes.CDLL(None)
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    right = struct.pack("<6I", *[1 << 19] * 3, 0, 0, 0)
    assert libc.capset(struct.pack("<Ii", 0x20080522, 0), right) == 0 and libc.prctl(47, 2, 19, 0, 0) == 0  # PR_CAP_AMBIENT_RAISE


@pytest.mark.skipif(os.geteuid() != 0 or SANITIZED, reason="only root becomes another user")
@pytest.mark.parametrize("words, before", [(("--user", "nobody"), None), (("--user", "nobody"), as_another_user_who_may_trace),
                                           ((), as_another_user_who_may_trace)], ids=["root", "ambient", "ambient alone"])
def test_another_user_has_no_right_at_all(started, words, before):
    """The right to trace would open nothing of others to an agent that is not root's: it keeps none, nor may it get one."""
    agent = started("--sim", "h200", *words, preexec_fn=before)
    agent.until_ready()
    status = status_of(agent.process.pid)
    assert set(status["Uid"].split()) == {"65534"}
    assert [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(status[name], 16)] == []
    assert status["NoNewPrivs"] == "1" and (before or int(status["CapBnd"], 16) == 0)


@pytest.mark.skipif(os.geteuid() != 0 or SANITIZED, reason="only root becomes another user")
def test_another_user_keeps_the_state(started, hec):
    """--user: the folder becomes that user's, with what root's agent kept there; a folder of others does not."""
    nobody = pwd.getpwnam("nobody")
    agent = started("--sim", "h200", "--state-dir", "kept")
    agent.until(lambda page: page.one("hec_agent_state_saved") == 1)
    agent.stop()
    for folder in ("kept", "new"):
        agent = started("--sim", "h200", "--state-dir", folder, "--user", "nobody")
        agent.until(lambda page: page.one("hec_agent_state_saved") == 1 and page.sum(ENERGY) > 0)
        agent.stop()
        assert {path.stat().st_uid for path in (hec.folder / folder, *(hec.folder / folder).iterdir())} == {nobody.pw_uid}
        assert (hec.folder / folder / "state").stat().st_size > 0
    (hec.folder / "others").mkdir()
    (hec.folder / "others" / "precious").write_text("x")
    (hec.folder / "linked").mkdir()
    os.chown(hec.folder / "linked", nobody.pw_uid, nobody.pw_gid)
    (hec.folder / "secret").write_text("x")
    os.link(hec.folder / "secret", hec.folder / "linked" / "state")
    for folder, sentence in (("others", "holds other things"), ("linked", "cannot give")):
        refused = hec("agent", "--sim", "h200", "--listen", "127.0.0.1:0", "--state-dir", folder, "--user", "nobody")
        assert refused.returncode != 0 and sentence in refused.stderr, refused.stderr
    assert (hec.folder / "others").stat().st_uid == (hec.folder / "secret").stat().st_uid == 0


def test_silent_and_garbage(started):
    """Who connects and says nothing, or nonsense, keeps nobody out."""
    agent = started("--sim", "h200")
    address = (agent.host, agent.port)
    silent = [socket.create_connection(address, timeout=conftest.HANGS_S) for _ in range(90)]
    for connection in silent[::2]:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    assert agent.page().one("hec_build_info") == 1
    before = agent.page().one("hec_agent_resident_bytes")
    hostile(address, int(os.environ.get("HEC_TEST_HOSTILE", "200")))
    page = agent.page()
    assert page.one("hec_build_info") == 1
    assert page.sum("hec_agent_dropped_total", what="http_connections") >= 20, "the longest silent made room"
    # a connection has 8 KB at most, and there are 96; a sanitizer keeps what was freed
    page = agent.until(lambda page: page.one("hec_agent_resident_bytes") < before + (400e6 if SANITIZED else 2e6))
    for connection in silent:
        connection.close()


@on_machine("h200")
def test_jobs_that_report_show_their_causes(started, hec):
    """A job's windows become counters by state, and its finding a prediction; the agent's sandbox lets it start what records them."""
    path = hec.folder / "jobs.sock"
    agent = started("--jobs", path, "--window", 2.5, "--window-every", 3, "--state-dir", hec.folder)
    job = hec.popen("run", f"--agent={path}", "--", hec.path, "sim", "data-starved", "--seconds", 60, "--marks",
                    stdout=subprocess.DEVNULL)
    page = agent.until(lambda page: page.all("hec_job_state_seconds_total", state="data"))
    command = page.all("hec_job_state_seconds_total")[0][0]["command"]
    observed = page.sum("hec_job_state_seconds_total")
    windows = round(observed / 2.5)  # more than one, where this process came late
    assert windows >= 1 and observed == pytest.approx(2.5 * windows, abs=0.5)
    assert page.one("hec_job_state_seconds_total", state="data") / observed == pytest.approx(0.67, abs=0.25)  # less a step at each end
    assert page.sum("hec_job_state_joules_total") == pytest.approx(222 * observed, rel=0.25)
    assert page.one("hec_job_seconds_total", command=command) >= observed
    assert 0.1 < page.one("hec_job_finding_recoverable_ratio", cause="data") < 0.6
    assert page.one("hec_job_units_total", unit="unit") > 0
    (shown,) = agent.live()["jobs"]
    assert shown["command"] == command and shown["runs"] and shown["cause"] == "data" and shown["devices"] == [0]
    assert shown["joules"] == pytest.approx(sum(shown["state_joules"].values()), rel=1e-6) and shown["joules"] > 0
    assert shown["wasted_joules"] == pytest.approx(shown["wasted_share"] * shown["joules"], rel=1e-6)
    assert shown["state_joules"]["data"] <= shown["wasted_joules"] <= shown["joules"] - shown["state_joules"]["compute"]
    later = agent.until(lambda later: later.sum("hec_job_seconds_total") > page.sum("hec_job_seconds_total"))
    assert_grew(page, later)
    listed = hec("record", f"--agent={path}")
    assert listed.returncode == 0 and f"process {job.pid}" in listed.stdout, listed
    job.kill()
    job.wait()
    gone = agent.until(lambda page: not page.all("hec_job_finding_recoverable_ratio"))
    assert gone.sum("hec_job_state_seconds_total") >= later.sum("hec_job_state_seconds_total")


def test_the_environment_of_a_job(hec):
    lines = hec("agent", "--job-environment", "--jobs", "/run/x/agent.sock").stdout.splitlines()
    env = dict(line.split("=", 1) for line in lines)
    assert env["HEC_SOCKET"] == env["HEC_TRACE_SOCKET"] == "/run/x/agent.sock" and env["HEC_TRACE_MODE"] == "auto"
    for name in ("CUDA_INJECTION64_PATH", "HEC_LIB", "PYTHONPATH"):
        assert pathlib.Path(env[name]).exists(), (name, env)
