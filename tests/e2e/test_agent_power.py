"""`hec agent --power-budget` on the simulated GPU: the budget holds, who opted in is limited, and however the agent goes, limits are as
they were."""
import signal
import time

import conftest
import pytest
from agent_common import Agent, Machine

OWN_W = 700
LIMIT, WATTS = "hec_device_power_limit_watts", "DCGM_FI_DEV_POWER_USAGE"
CLASSES = """
# who, and how much slower
high   command=*healthy-gemm*
low    command=*fp32*
low    command=*healthy-train*
slowdown high 0%
slowdown low 30%
"""


@pytest.fixture
def machine(hec):
    (hec.folder / "state").mkdir(mode=0o700)
    (hec.folder / "classes").write_text(CLASSES, encoding="utf-8")
    machine = Machine(hec, f"h200x4,state={hec.folder / 'machine'}")
    machine.env["HEC_STATE_DIR"] = str(hec.folder / "state")
    yield machine
    machine.close()


@pytest.fixture
def agent_of(hec, machine):
    agents = []

    def start(*arguments):
        agents.append(Agent(hec, "--all-series", *arguments, env=machine.env))
        return agents[-1]

    yield start
    for agent in agents:
        agent.process.kill()
        agent.process.wait(conftest.HANGS_S)


def budget(agent_of, watts):
    return agent_of("--allow-power", "--power-budget", watts, "--power-classes", "classes")


@pytest.fixture
def programs(machine):
    """On GPU 0 of class high, on 1 and 2 of class low, on 3 of none."""
    cases = ["healthy-gemm", "healthy-train", "fp32", "memory-bound"]
    started = [machine.play(case, 300, "--device", str(device)) for device, case in enumerate(cases)]
    yield started
    for program in started:
        program.kill()
        program.wait(conftest.HANGS_S)


def limit(page, gpu):
    return page.one(LIMIT, gpu=str(gpu))


def are_own(page):
    return all(limit(page, gpu) == OWN_W for gpu in range(4))


def test_the_budget_holds_and_the_first_class_keeps_its_speed(agent_of, programs):
    agent = budget(agent_of, 2100)
    page = agent.until(lambda page: limit(page, 1) < OWN_W and limit(page, 2) < OWN_W and page.sum(WATTS, gpu="3") > 500)
    assert {labels["gpu"]: labels["class"] for labels, _ in page.all("hec_device_power_class")} == {"0": "high", "1": "low", "2": "low"}
    page = agent.until(lambda page: page.sum(WATTS) <= 2100 and page.sum(WATTS, gpu="0") > 600)
    assert page.one("hec_power_budget_watts") == 2100 and page.one("hec_power_budget_short_watts") == 0
    over_s = page.one("hec_power_budget_over_seconds_total")
    for _ in range(20):
        page = agent.page()
        assert limit(page, 0) == limit(page, 3) == OWN_W
        assert limit(page, 1) + limit(page, 2) <= 2100 - OWN_W - 500
        time.sleep(0.1)
    assert agent.page().one("hec_power_budget_over_seconds_total") == over_s


def test_limits_go_with_the_jobs_and_with_the_agent(hec, machine, agent_of, programs):
    agent = budget(agent_of, 2100)
    agent.until(lambda page: limit(page, 1) < OWN_W)
    programs[1].kill()
    agent.until(lambda page: limit(page, 1) == OWN_W and limit(page, 2) < OWN_W)
    # the file is read again when it changes, and one that is wrong leaves what was
    (hec.folder / "classes").write_text("lowest command=*\n", encoding="utf-8")
    conftest.until(lambda: 'line 1: there is no class "lowest"' in agent.said, why=lambda: agent.said)
    assert limit(agent.page(), 2) < OWN_W
    (hec.folder / "classes").write_text("high namespace=nobody\n", encoding="utf-8")
    agent.until(are_own)
    (hec.folder / "classes").write_text(CLASSES, encoding="utf-8")
    agent.until(lambda page: limit(page, 2) < OWN_W)
    assert agent.stop() == 0
    after = agent_of()
    after.until(are_own)


def test_a_class_goes_by_the_grid(hec, agent_of, programs):
    """While the grid is clean, jobs of the class are not slowed down."""
    carbon, now = hec.folder / "carbon.csv", int(time.time()) // 3600 * 3600

    def say(grams):
        hours = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 3600 * hour)) for hour in (-1, 0, 1)]
        new = hec.folder / "new.csv"
        new.write_text("time,carbon intensity gCO2/kWh\n" + "".join(f"{hour},{grams}\n" for hour in hours), encoding="utf-8")
        new.replace(carbon)

    say(100)
    (hec.folder / "classes").write_text("low\nslowdown low 0% when co2<200\nslowdown low 40%\n", encoding="utf-8")
    agent = agent_of("--allow-power", "--power-budget", 4000, "--power-classes", "classes", "--carbon-file", carbon)
    agent.until(lambda page: len(page.all("hec_device_power_class")) == 4)
    for _ in range(20):
        assert are_own(agent.page())
        time.sleep(0.1)
    say(300)
    agent.until(lambda page: limit(page, 0) < OWN_W and limit(page, 1) < OWN_W)
    say(100)
    agent.until(are_own)


def test_a_killed_agent_leaves_no_limit(hec, agent_of, programs):
    agent = budget(agent_of, 2100)
    agent.until(lambda page: limit(page, 1) < OWN_W)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait(conftest.HANGS_S)
    agent_of().until(are_own)
    conftest.until(lambda: not list((hec.folder / "state").glob("power-*.json")), why=lambda: list((hec.folder / "state").iterdir()))


def test_a_budget_that_cannot_hold_is_said(agent_of, programs):
    agent = budget(agent_of, 800)
    page = agent.until(lambda page: page.one("hec_power_budget_short_watts") > 0 and limit(page, 0) == 200)
    assert "the power budget cannot hold" in agent.said
    assert page.one("hec_power_budget_over_seconds_total") > 0


@pytest.mark.parametrize("arguments, sentence", [
    (["--power-budget", "2000"], "--power-budget and --power-classes need each other"),
    (["--power-classes", "classes"], "--power-budget and --power-classes need each other"),
    (["--power-budget", "0", "--power-classes", "classes"], "--power-budget"),
    (["--power-budget", "2000", "--power-classes", "classes"], "only changed with --allow-power"),
    (["--carbon-file", "carbon.csv"], "--carbon-file and --price-file are for conditions of --power-classes"),
    (["--power-budget", "2000", "--power-classes", "carbon", "--allow-power"], "carbon: co2 needs --carbon-file FILE"),
    (["--power-budget", "2000", "--power-classes", "missing", "--allow-power"], "missing"),
    (["--power-budget", "2000", "--power-classes", "wrong", "--allow-power"], 'wrong: line 2: there is no key "usr"'),
])
def test_what_is_refused(hec, machine, arguments, sentence):
    (hec.folder / "wrong").write_text("high user=root\nlow usr=root\n", encoding="utf-8")
    (hec.folder / "carbon").write_text("low\nslowdown low 5% when co2<200\n", encoding="utf-8")
    done = hec("agent", "--listen", "127.0.0.1:0", *arguments, env=machine.env)
    assert done.returncode != 0 and sentence in done.stderr
