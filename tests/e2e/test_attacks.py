"""Each attack of attacks.py against one agent that watches 8 GPUs: it goes on, serves others, and has nothing more open afterwards."""
import contextlib
import os
import pathlib
import re
import signal
import stat
import subprocess
import tempfile
import types

import pytest

import agent_common
import attacks
from conftest import BINARY, HANGS_S, Hec, until
from test_agent_jobs import comm
from test_soak import of_unit

ATTACKER, VICTIM = 7001, 7002


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o1777)
        hec = Hec(BINARY, pathlib.Path(folder))
        agent = agent_common.Agent(hec, "--sim", "h200x8", "--jobs", f"{folder}/agent.sock", "--window", 0)
        with contextlib.suppress(FileNotFoundError):  # everybody may open /dev/fuse where file systems of users are mounted
            os.mknod(f"{folder}/attackers.fuse", stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
            os.chmod(f"{folder}/attackers.fuse", 0o666)
        try:
            agent.until_ready()
            as_its_service_does(agent)
            read, write = os.pipe()
            until(lambda: door_opened(agent))  # the agent is ready before it
            before = descriptors(agent)
            yield agent, types.SimpleNamespace(socket=f"{folder}/agent.sock", port=agent.port, file=f"{folder}/attackers", done=write), read
            until(lambda: descriptors(agent) <= before, why=lambda: (before, descriptors(agent)))
            assert agent.stop() == 0, agent.said
        finally:
            agent.process.kill()


def as_its_service_does(agent):
    """Before others, so that a busy machine costs no reading."""
    for thread in os.listdir(f"/proc/{agent.process.pid}/task"):
        with contextlib.suppress(PermissionError):  # root in a container that may not
            os.setpriority(os.PRIO_PROCESS, int(thread), of_unit("Nice"))


def door_opened(agent):
    """Who lets in is a process of its own, which closes all that it has of the agent."""
    doors = [pid for pid in agent_common.children(agent.process.pid) if comm(pid) == "hec-door"]
    return doors and all(opened == "/dev/null" or opened.startswith("socket:") for opened in opened_by(doors[0]))


def opened_by(pid):
    opened = []
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # just closed
                opened.append(os.readlink(path))
    return opened


def descriptors(agent):
    """Of the agent, and who lets in, without connections: those over HTTP may last 10 s."""
    assert agent.process.poll() is None, agent.said
    return sum(not opened.startswith("socket:") for pid in [agent.process.pid, *agent_common.children(agent.process.pid)]
               for opened in opened_by(pid))


def jobs_of_victim(place):
    done = subprocess.run([BINARY, "record", f"--agent={place.socket}"], capture_output=True, text=True, timeout=HANGS_S, user=VICTIM,
                          group=VICTIM, extra_groups=[], cwd="/")
    assert (done.returncode, done.stderr) == (0, ""), done
    return re.findall(r"\brun-\d+-\d+\b", done.stdout)


def unread(page):
    """Seconds of devices without a reading, and by how many rounds of readings came late: not the attacker's doing."""
    return page.sum("hec_device_state_seconds_total", state="unobserved"), page.sum("hec_agent_late_seconds_total")


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_an_attack(node, name):
    """While it lasts another user's job comes, which that user is told of, and of no other."""
    agent, place, read = node
    if name == "a_file_of_a_user_who_answers_for_it" and not os.path.exists(f"{place.file}.fuse"):
        pytest.skip("no FUSE here")
    lost, late = unread(agent.page())
    attacker = attacks.start(name, place, ATTACKER)
    assert os.read(read, 1000).decode() == f"{name}: done\n"
    mine = types.SimpleNamespace(**vars(place), tag=500 + list(attacks.ATTACKS).index(name))
    job = attacks.start("job", mine, VICTIM)
    assert os.read(read, 1000).decode() == "job: done\n"
    own = f"run-{VICTIM}-{mine.tag}"
    until(lambda: own in jobs_of_victim(place), why=lambda: jobs_of_victim(place))
    assert all(other.startswith(f"run-{VICTIM}-") for other in jobs_of_victim(place))
    os.killpg(job, signal.SIGKILL)
    os.waitpid(job, 0)
    page = agent.page()
    assert len(page.all("hec_device_up")) == 8
    lost_then, late_then = unread(page)
    assert lost_then - lost <= 8 * (late_then - late), "readings of 8 GPUs were lost for more than this machine's lateness"
    os.killpg(attacker, signal.SIGKILL)
    os.waitpid(attacker, 0)
    assert agent.process.poll() is None and "warning" not in agent.said, agent.said
