"""What hec remembers is believed only where nobody else may write: the guard's memory, calibrations, the power journal, the agent's sums."""
import json
import os
import shutil

import pytest

GUARD = {"schema": "hec.guard/1", "deaths": []}


def spoil_mode(path):
    os.chmod(path, 0o777)


def spoil_owner(path):
    os.chown(path, 65533, 65533)


SPOILED = [spoil_mode, pytest.param(spoil_owner, marks=pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away"))]


@pytest.fixture
def state(hec):
    folder = hec.folder / "kept"
    folder.mkdir(mode=0o700)
    hec.state = {"HEC_STATE_DIR": str(folder)}
    return folder


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_guards_memory(hec, state, spoil):
    (state / "guard.json").write_text(json.dumps(GUARD))
    row = lambda: [c for c in json.loads(hec.ok("doctor", "--json", "--sim", "h200", env=hec.state).stdout)["checks"] if c["name"] == "guard"][0]
    assert row()["status"] == "ok"
    for path in (state, state / "guard.json"):
        spoil(path)
        assert row()["status"] == "limited" and "trusted" in json.dumps(row()), path
        os.chown(path, os.geteuid(), os.getegid())
        os.chmod(path, 0o700)
    assert row()["status"] == "ok"


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_power_journal(hec, state, spoil):
    spoil(state)
    done = hec("run", "-q", "--sim", "h200", "--with", "power_cap=350", "-o", "p.hec", "--", "true", env=hec.state)
    assert "nothing there is trusted or kept" in done.stderr and not [p for p in state.iterdir() if p.name.startswith("power")], done


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_agents_sums(hec, state, spoil):
    for path in (state, state.parent):
        spoil(path)
        done = hec("agent", "--sim", "h200", "--listen", "127.0.0.1:0", "--jobs", "", "--state-dir", state)
        assert done.returncode == 77 and "nothing there is trusted or kept" in done.stderr, done.stderr
        os.chown(path, os.geteuid(), os.getegid())
        os.chmod(path, 0o700)
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir(mode=0o700)
