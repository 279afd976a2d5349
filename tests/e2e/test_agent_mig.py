"""The agent on a divided device (MIG): whose joules they are, and which series there are."""
import contextlib
import json
import os
import subprocess

import pytest
from agent_common import Agent, Machine
from conftest import HANGS_S
from fake_kubelet import Kubelet
from on_machine import on_machine

ENERGY, JOULES = "hec_device_energy_joules_total", "hec_energy_joules_total"
PARTS = [("3g.71gb", "1"), ("2g.35gb", "2"), ("1g.18gb", "3")]
OF_INSTANCES = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE")


def uuid(instance):
    return f"MIG-51a1ed00-0000-4001-8000-{instance:012x}"


@pytest.fixture
def node(hec):
    """(agent, play); play(name, case, seconds, instance) starts a program of that name in an instance."""
    with contextlib.ExitStack() as stack:
        def make(*arguments, env=None):
            agent = Agent(hec, "--all-series", "--state-dir", "kept", *arguments, env=env)
            stack.callback(lambda: agent.process.poll() is None and agent.stop())

            def play(name, case, seconds, instance):
                if not (hec.folder / name).exists():
                    os.symlink(hec.path, hec.folder / name)
                program = subprocess.Popen([hec.folder / name, "sim", case, "--seconds", str(seconds), "--json"], text=True,
                                           env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid(instance)}, stdout=subprocess.PIPE)
                stack.callback(lambda: program.poll() is None and (program.kill(), program.wait()))
                return program
            return agent, play
        yield make


def assert_adds_up(page):
    for labels, joules in page.all(ENERGY):
        assert page.sum(JOULES, gpu=labels["gpu"]) == pytest.approx(joules, rel=1e-3)
        assert page.sum("hec_device_state_joules_total", gpu=labels["gpu"]) == pytest.approx(joules, rel=1e-3)


def assert_no_series_twice(page):
    seen = [(name, tuple(sorted(labels.items()))) for name, labels, _ in page.samples]
    assert len(seen) == len(set(seen))


@on_machine("h200,mig=3g+2g+1g")
def test_tenants_of_instances_have_their_joules(node):
    """Three programs at once, against the truth of each: what its instance added to the power of the device."""
    agent, play = node()
    agent.until(lambda page: page.all("hec_device_idle_power_watts", gpu="0"))
    cases = ["healthy-train", "healthy-gemm", "memory-bound"]
    programs = [play(f"tenant{i}", case, 12, i) for i, case in enumerate(cases)]
    page = agent.until(lambda page: page.sum("hec_device_state_joules_total", state="busy") > 1000)
    assert page.sum("hec_device_state_joules_total", state="idle_allocated") < 300, "busy, though NVML does not say so"
    truth = [json.loads(program.communicate()[0]) for program in programs]
    agent.until(lambda page: page.one("hec_device_power_watts", gpu="0") < 90)
    page = agent.page()
    own = [of["joules"] - 120 * of["seconds"] for of in truth]
    got = [page.sum(JOULES, part="active", command=f"tenant{i}") for i in range(3)]
    print("joules", [round(x) for x in got], "truth", [round(x) for x in own], "off", [f"{100 * (a / b - 1):+.0f} %" for a, b in zip(got, own)])
    # by slices a program of 1g gets too much (16 of 132 SMs are less than a seventh), and the floor with a context is not known yet
    for mine, true in zip(got, own):
        assert mine == pytest.approx(true, rel=0.7)
    assert sum(got) == pytest.approx(sum(own), rel=0.2)
    assert page.sum(JOULES, part="unattributed") < 0.05 * page.one(ENERGY, gpu="0")
    assert_adds_up(page)


@on_machine("h200x2,mig=3g+2g+1g")
def test_series_of_instances(node):
    """What is known by instance has dcgm-exporter's two labels, and is there for instances alone; the rest is the device's, once."""
    agent, play = node()
    program = play("worker", "healthy-train", 30, 1)
    of_devices = [*OF_INSTANCES, "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"]
    page = agent.until(lambda page: page.sum("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GPU_I_ID="2") > 0.3
                       and page.sum("DCGM_FI_DEV_FB_USED", GPU_I_ID="2") > 0 and all(page.all(name, gpu="1") for name in of_devices))
    for name in OF_INSTANCES:
        found = [(labels["GPU_I_PROFILE"], labels["GPU_I_ID"]) for labels, _ in page.all(name, gpu="0")]
        assert found == PARTS, name
        assert ["GPU_I_ID" in labels for labels, _ in page.all(name, gpu="1")] == [False], name
    for name in ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_SM_CLOCK", ENERGY):
        assert ["GPU_I_ID" in labels for labels, _ in page.all(name)] == [False, False], name
    assert [labels["gpu"] for labels, _ in page.all("DCGM_FI_DEV_GPU_UTIL")] == ["1"], "NVML does not have it of a divided device"
    used = [page.one("DCGM_FI_DEV_FB_USED", gpu="0", GPU_I_ID=id) for _, id in PARTS]
    assert used[1] > 100 and used[0] == used[2] == 0
    idle = [page.one("DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu="0", GPU_I_ID=id) for id in ("1", "3")]
    assert idle == [0, 0]
    assert_no_series_twice(page)
    assert_adds_up(page)
    program.terminate()
    program.wait(HANGS_S)


def test_pods_that_hold_instances(node, hec, tmp_path):
    """By all names of a MIG device: an instance's series are its pod's, and of the idle joules those that hold one have equal parts."""
    gpu = "GPU-51a1ed00-0000-4000-8000-000000000000"
    pods = [("ml", "train-0", {"main": {"nvidia.com/mig-3g.71gb": [uuid(0)]}}),
            ("ml", "serve-0", {"web": {"nvidia.com/mig-2g.35gb": ["MIG-" + gpu + "/2/0"]}})]
    path = os.path.relpath(tmp_path / "k.sock")
    with contextlib.closing(Machine(hec, "h200,mig=3g+2g+1g")) as machine, Kubelet(path, pods):  # its library has waits of its own
        agent, _ = node("--pod-resources-kubelet-socket", os.path.relpath(tmp_path / "k.sock", hec.folder), env=machine.env)
        page = agent.until(lambda page: page.sum(JOULES, pod="serve-0") > 50 and page.all("DCGM_FI_DEV_FB_USED"))
    for name in OF_INSTANCES:
        assert [labels.get("pod") for labels, _ in page.all(name)] == ["train-0", "serve-0", None], name
    labels, _ = page.all("DCGM_FI_DEV_FB_USED", GPU_I_ID="2")[0]
    assert labels["namespace"] == "ml" and labels["container"] == "web"
    assert page.sum(JOULES, pod="serve-0", part="idle") == pytest.approx(page.sum(JOULES, pod="train-0", part="idle"), rel=0.05)
    assert_adds_up(page)


@on_machine("h200,mig=3g+2g+1g,nomig@3-5:1")
def test_instances_that_come_and_go(node):
    """A MIG device is destroyed and made again while the agent runs: its series go and come, nothing is said, and sums add up."""
    agent, _ = node()

    def shown(page):
        return [labels["GPU_I_ID"] for labels, _ in page.all("DCGM_FI_PROF_GR_ENGINE_ACTIVE")]

    agent.until(lambda page: shown(page) == ["1", "2", "3"])
    agent.until(lambda page: shown(page) == ["1", "3"])
    page = agent.until(lambda page: sorted(shown(page)) == ["1", "2", "3"])
    assert_adds_up(page)
    assert_no_series_twice(page)
    assert agent.said.count("\n") == 1, agent.said


@on_machine("a100,mig=3g+2g+1g")
def test_without_counters_of_instances(node):
    """Before Hopper NVML has none: of several tenants it is not known what each did, and of one alone it is."""
    agent, play = node()
    alone = play("alone", "healthy-train", 4, 0)
    page = agent.until(lambda page: page.sum(JOULES, part="active", command="alone") > 100)
    assert page.sum(JOULES, part="unattributed") < 30
    alone.communicate()
    both = [play(f"tenant{i}", "healthy-train", 30, i) for i in (0, 1)]
    page = agent.until(lambda page: page.sum(JOULES, part="unattributed") > 300)
    assert page.sum(JOULES, part="active", command="tenant1") < 100
    assert not page.all("DCGM_FI_PROF_GR_ENGINE_ACTIVE") and len(page.all("DCGM_FI_DEV_FB_USED")) == 3
    assert_adds_up(page)
    for program in both:
        program.terminate()
        program.wait(HANGS_S)
