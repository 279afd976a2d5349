"""What hec remembers is believed only where nobody else may write: the guard's memory, calibrations, the power journal, the agent's sums."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct

import pytest

GUARD = {"schema": "hec.guard/1", "deaths": []}
OTHER = 65533


@contextlib.contextmanager
def mode(path, rights):
    before = path.stat().st_mode
    path.chmod(rights)
    yield
    path.chmod(before)


@contextlib.contextmanager
def owned(path, uid, gid=-1, rights=0):
    before = path.stat()
    os.chown(path, uid, gid)
    path.chmod(before.st_mode | rights)
    yield
    os.chown(path, before.st_uid, before.st_gid)
    path.chmod(before.st_mode)


@contextlib.contextmanager
def listed(path):
    """A list of rights lets another user write."""
    entries = ((1, 7, 2 ** 32 - 1), (2, 7, OTHER), (4, 0, 2 ** 32 - 1), (16, 7, 2 ** 32 - 1), (32, 0, 2 ** 32 - 1))
    name = "system.posix_acl_access"
    before = path.stat().st_mode
    try:
        os.setxattr(path, name, struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))
    except OSError:
        pytest.skip("this file system has no lists of rights")
    yield
    os.removexattr(path, name)
    path.chmod(before)


@contextlib.contextmanager
def linked(path, uid=OTHER):
    real = path.with_name("real")
    path.rename(real)
    path.symlink_to("real")
    os.chown(path, uid, uid, follow_symlinks=False)
    yield
    path.unlink()
    if real.exists():
        real.rename(path)


ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives away what is its own")
# of a folder, or one above it
FOLDERS = [pytest.param(lambda path: mode(path, 0o777), id="everybody's"), pytest.param(lambda path: mode(path, 0o722), id="written by all"),
           pytest.param(lambda path: mode(path, 0o703), id="others'"), pytest.param(lambda path: mode(path, 0o2777), id="with its group"),
           pytest.param(lambda path: owned(path, OTHER), id="another's", marks=ROOT),
           pytest.param(lambda path: owned(path, OTHER, OTHER, 0o777), id="another's and everybody's", marks=ROOT),
           pytest.param(lambda path: owned(path, -1, OTHER, 0o070), id="a group's", marks=ROOT),
           pytest.param(lambda path: owned(path, -1, OTHER, 0o020), id="written by a group", marks=ROOT),
           pytest.param(listed, id="of a list", marks=ROOT), pytest.param(linked, id="a link of another", marks=ROOT)]


@pytest.fixture
def state(hec):
    (hec.folder / "above").mkdir(mode=0o700)
    folder = hec.folder / "above" / "kept"
    folder.mkdir(mode=0o700)
    hec.state = {"HEC_STATE_DIR": str(folder)}
    return folder


def guard_of(hec):
    return [c for c in json.loads(hec.ok("doctor", "--json", "--sim", "h200", env=hec.state).stdout)["checks"] if c["name"] == "guard"][0]


@pytest.mark.parametrize("spoil", FOLDERS)
def test_the_guards_memory(hec, state, spoil):
    (state / "guard.json").write_text(json.dumps(GUARD))
    assert guard_of(hec)["status"] == "ok"
    for path in (state, state.parent):
        with spoil(path):
            row = guard_of(hec)
            assert row["status"] == "limited" and "trusted" in json.dumps(row), path
    assert guard_of(hec)["status"] == "ok"


def replaced(path, make):
    """Something else stands in the file's place."""
    @contextlib.contextmanager
    def swap():
        path.rename(path.with_name("away"))
        make(path)
        yield
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        path.with_name("away").rename(path)
    return swap()


def link_to_anothers(path):
    def make(there):
        there.with_name("theirs").write_text(json.dumps(GUARD))
        os.chown(there.with_name("theirs"), OTHER, OTHER)
        there.symlink_to("theirs")
    return replaced(path, make)


def listen(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


FILES = [pytest.param(lambda path: mode(path, 0o666), id="everybody's"), pytest.param(lambda path: owned(path, OTHER), id="another's", marks=ROOT),
         pytest.param(lambda path: owned(path, -1, OTHER, 0o060), id="a group's", marks=ROOT), pytest.param(listed, id="of a list", marks=ROOT),
         pytest.param(link_to_anothers, id="a link to another's", marks=ROOT),
         pytest.param(lambda path: replaced(path, lambda there: there.symlink_to("/dev/zero")), id="a link to no end"),
         pytest.param(lambda path: replaced(path, os.mkfifo), id="a pipe"), pytest.param(lambda path: replaced(path, pathlib.Path.mkdir), id="a folder"),
         pytest.param(lambda path: replaced(path, listen), id="a socket"),
         pytest.param(lambda path: replaced(path, lambda there: there.write_bytes(b"[" * (64 << 20))), id="64 MB"),
         pytest.param(lambda path: replaced(path, lambda there: there.write_bytes(b"\0" * 100)), id="zeros"),
         pytest.param(lambda path: replaced(path, lambda there: there.write_text('{"schema":"hec.guard/1","deaths":' + "[" * 100000)), id="deep")]


@pytest.mark.parametrize("spoil", FILES)
def test_the_guards_file(hec, state, spoil):
    """It is not believed, says so, and holds nobody up."""
    file = state / "guard.json"
    file.write_text(json.dumps(GUARD))
    file.chmod(0o600)
    with spoil(file):
        assert guard_of(hec)["status"] == "limited"
        hec.ok("run", "-q", "-f", "-o", "g.hec", "--sim", "h200", "--", "true", env=hec.state)
    assert guard_of(hec)["status"] == "ok"


@pytest.mark.parametrize("spoil", FOLDERS)
def test_the_power_journal(hec, state, spoil):
    for path in (state, state.parent):
        with spoil(path):
            done = hec("run", "-q", "-f", "--sim", "h200", "--with", "power_cap=350", "-o", "p.hec", "--", "true", env=hec.state)
            assert "nothing there is trusted or kept" in done.stderr and not [p for p in state.iterdir() if p.name.startswith("power")], done


@pytest.mark.parametrize("spoil", FOLDERS)
def test_the_agents_sums(hec, state, spoil):
    for path in (state, state.parent):
        with spoil(path):
            done = hec("agent", "--sim", "h200", "--listen", "127.0.0.1:0", "--jobs", "", "--state-dir", state)
            assert done.returncode == 77 and "nothing there is trusted or kept" in done.stderr, done.stderr
            assert list(state.iterdir()) == []


def test_links_of_its_own_and_sticky_folders_will_do(hec, state):
    (state / "guard.json").write_text(json.dumps(GUARD))
    with mode(state.parent, 0o1777), linked(state, os.geteuid()):
        assert guard_of(hec)["status"] == "ok"
