"""The run file when there is no room for it, when others want its name, when somebody takes it away, and while it is
written: the command never notices, and what was measured is reported."""
import json
import os
import pathlib
import re
import resource
import shlex
import signal
import sqlite3
import subprocess
import tempfile

import pytest

from conftest import assert_sound, CLOCK, HANGS_S, messages_of, until

STATUS = 7  # the exit status of every command here: it has to come through


def committed(path):
    """Is a reading in the file?"""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute("SELECT count(*) FROM block").fetchone()[0] > 0


def told_whole(stderr):
    """Of `hec run --json`: the report among the messages."""
    report = json.loads(stderr[stderr.index("{\n"):])
    assert report["run"]["complete"] and report["run"]["exit_code"] == STATUS
    return report


# ---- no room ----

@pytest.mark.parametrize("named", [["-o", "f.hec"], ["--sim", "h200"]])
@pytest.mark.parametrize("reader", ["cat", "true"])
def test_no_room_from_the_start(hec, named, reader):
    """Not for an empty run file anywhere, by a limit on the size of files: the run is kept in memory. Also where nobody reads
    what hec says: neither of the signals that writing then brings may reach the command. A simulated machine is no file."""
    done = subprocess.run(["bash", "-c", f"set -o pipefail; ulimit -S -f 8; {shlex.quote(hec.path)} run {' '.join(named)} "
                           f"-- sh -c 'sleep 0.3; exit {STATUS}' 2>&1 | {reader}"],
                          cwd=hec.folder, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == STATUS, done.stdout
    assert list(hec.folder.glob("*.hec*")) == []
    if reader == "cat":
        told = messages_of(done.stdout)
        assert len(told) == 2 and "File too large: the run is kept in memory" in told[0]
        assert "the run is reported from memory, and kept nowhere" in told[1]
        assert f"exit code {STATUS}" in " ".join(done.stdout.split())


def test_room_gone_in_the_middle(hec):
    """What the file could not take comes from memory: the report is whole, and its energy valid."""
    process = hec.popen("run", "--sim", "h200", "--json", "-o", "m.hec", "--", "sh", "-c",
                        f"{shlex.quote(hec.path)} sim healthy-train --seconds 1.5; exit {STATUS}", stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE)
    until(lambda: (hec.folder / "m.hec").exists() and committed(hec.folder / "m.hec"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    _, stderr = process.communicate(timeout=HANGS_S)
    assert process.returncode == STATUS, stderr
    told = messages_of(stderr)
    assert len(told) == 1 and "the run is reported from memory, and m.hec lacks its end" in told[0], told
    report = told_whole(stderr)
    assert report["run"]["file"] is None and report["devices"][0]["energy"]["valid"], report["devices"][0]["energy"]
    assert any(event["kind"] == "store_failed" for event in report["events"])
    assert_sound(hec.folder / "m.hec")
    assert "cut off" in hec("report", "m.hec").stdout


@pytest.fixture
def tiny_disk(hec):
    """Runs a command line on a file system of its own size, in a mount namespace that goes with it."""
    def run(kib, line):
        script = (f"mkdir -p small && mount -t tmpfs -o size={kib}k none small && cd small && {line}; status=$?; "
                  f"cp -r . ../copy; exit $status")
        return subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=hec.folder, capture_output=True, text=True,
                              timeout=HANGS_S)
    try:
        possible = run(64, "true").returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("no right to mount here")
    return run


@pytest.mark.parametrize("kib", [32, 100, 160])
def test_disk_full(hec, tiny_disk, kib):
    """From the start, after a while, or not at all; another disk has room, so the run file is there."""
    command = f"{shlex.quote(hec.path)} sim mixed --seconds 1.2; exit {STATUS}"
    other = hec.folder / "other"
    other.mkdir()
    done = tiny_disk(kib, f"TMPDIR={other} {shlex.quote(hec.path)} run --sim h200 --json -o f.hec -- sh -c "
                     f"{shlex.quote(command)}")
    assert done.returncode == STATUS, done.stderr
    told = messages_of(done.stderr)
    assert len(told) <= 1
    whole = told_whole(done.stderr)["run"]["file"]
    if kib == 32:
        assert told[0] == f"hec: warning: cannot create ./f.hec: No space left on device: the run file is {whole}"
    if told:
        assert whole.startswith(str(other)) and told[0].endswith(f" is {whole}")
        assert hec.report(whole)["run"]["complete"]
    if kib > 32:
        assert_sound(hec.folder / "copy" / "f.hec")
        assert hec.report("copy/f.hec")["run"]["complete"] == (not told)


# ---- taken away ----

@pytest.mark.parametrize("taken", ["rm -rf d", "mv d/x.hec d/y.hec", "rm d/x.hec; echo mine > d/x.hec"])
def test_file_taken_away_during_the_run(hec, taken):
    """Whatever lies at the path at the end that is not hec's stays, and the report is of this run."""
    (hec.folder / "d").mkdir()
    done = hec("run", "--sim", "h200", "--json", "-o", "d/x.hec", "--", "sh", "-c",
               f"sleep 0.2; {taken}; sleep 0.1; exit {STATUS}", env={"TMPDIR": str(hec.folder)})
    assert done.returncode == STATUS
    told = messages_of(done.stderr)
    assert len(told) == 1 and told[0].startswith(
        "hec: d/x.hec: the file or its folder was removed, renamed or replaced during the run; the run file is ")
    whole = told_whole(done.stderr)["run"]["file"]
    assert told[0].endswith(f" is {whole}") and hec.report(whole)["run"]["complete"]
    assert (whole == "d/x.hec") == taken.startswith("mv")
    if "mine" in taken:
        assert (hec.folder / "d/x.hec").read_text() == "mine\n"


def as_user(number, command, **options):
    """As a user without rights, also when the test runs as root."""
    if os.geteuid() == 0:
        options["user"], options["extra_groups"] = number, []
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, **options)


def nobody(command, **options):
    return as_user(65534, command, **options)


@pytest.mark.parametrize("quiet", [False, True])
def test_unwritable_folder(hec, quiet):
    """Nobody asked for a file there, so the run is measured all the same, and the place of its file is told."""
    place = hec.folder / "locked"
    place.mkdir(mode=0o555)
    place.chmod(0o555)
    if nobody(["sh", "-c", f"{shlex.quote(hec.path)} --version"]).returncode:
        pytest.skip("the program lies in a folder that is closed to other users")
    if nobody(["sh", "-c", f"cd {shlex.quote(str(place))}"]).returncode:
        place = "/"  # a temporary folder of root's is closed to others
    done = nobody([hec.path, "run", *(["-q"] if quiet else []), "--sim", "h200", "--", "sh", "-c", f"exit {STATUS}"],
                  cwd=place, env={**os.environ, "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": ""})
    assert done.returncode == STATUS and len(messages_of(done.stderr)) == 1
    found = re.search(r"cannot create ./sh.hec: Permission denied: the run file is (\S+/sh\.hec)$", done.stderr, re.M)
    assert found, done.stderr
    assert hec("report", found.group(1)).returncode == 0
    os.unlink(found.group(1))
    os.rmdir(os.path.dirname(found.group(1)))
    asked = nobody([hec.path, "run", "-o", "asked.hec", "--", "true"], cwd=place)
    assert asked.returncode not in (0, STATUS) and "asked.hec" in asked.stderr


# ---- others ----

def test_many_runs_at_once_in_one_folder(hec):
    """Each gets a name of its own there."""
    many = 8
    runs = [hec.popen("run", "-q", "--trace", "off", "--", "sh", "-c", "sleep 0.3", stderr=subprocess.PIPE) for _ in range(many)]
    assert [run.communicate(timeout=HANGS_S)[1] for run in runs] == [""] * many
    names = ["sh.hec"] + [f"sh-{i}.hec" for i in range(2, many + 1)]
    assert sorted(p.name for p in hec.folder.iterdir() if p.name != "state") == sorted(names)
    assert all(hec.report(name)["run"]["complete"] for name in names)


def test_a_run_in_progress(hec):
    """It is reported as what it is, its energy so far with it, and not replaced with -f; killed, it is cut off. By the common clock: in
    real time a run that this process sees for a moment alone can be too short for its energy."""
    def start(path):
        process = hec.popen("run", "-q", "--sim", "h200", "-o", path, "--", "sh", "-c",
                            f"{shlex.quote(hec.path)} sim healthy-train --seconds 100000 & read end; kill $!; exit {STATUS}",
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, "LD_PRELOAD": CLOCK})
        until(lambda: (hec.folder / path).exists() and hec.report(path)["run"]["seconds"] > 10)
        return process
    first, second = start("p.hec"), start("k.hec")
    report = hec.report("p.hec")
    assert report["run"]["in_progress"] and not report["run"]["complete"]
    assert report["devices"][0]["energy"]["valid"], report["devices"][0]["energy"]["why"]
    text = hec("report", "p.hec").stdout
    assert "so far: the run is in progress" in text and "cut off" not in text

    for verb in (["run", "-f", "-o", "p.hec", "--", "touch", "ran"], ["gather", "-f", "-o", "p.hec", "k.hec"]):
        done = hec(*verb)
        assert done.returncode == 75 and done.stderr == "hec: ./p.hec is being written by another run\n".replace(
            "./", "./" if verb[0] == "run" else ""), done.stderr
    assert not (hec.folder / "ran").exists()
    second.kill()
    second.communicate("end\n")
    report = hec.report("k.hec")
    assert not report["run"]["in_progress"] and "cut off" in hec("report", "k.hec").stdout
    assert report["devices"][0]["energy"]["valid"], report["devices"][0]["energy"]["why"]
    assert hec("run", "-q", "-f", "-o", "k.hec", "--", "true").returncode == 0

    assert first.communicate("end\n", timeout=HANGS_S)[1] == "" and first.returncode == STATUS
    report = hec.report("p.hec")
    assert report["run"]["complete"] and not report["run"]["in_progress"] and "train" in report["run"]["command"]


def test_an_earlier_run_stays_until_the_new_one_is_whole(hec):
    """Whatever ends hec before costs neither; the next one takes the place of what is left."""
    hec.ok("run", "-q", "-o", "r.hec", "--", "true")
    before = (hec.folder / "r.hec").read_bytes()

    def start():
        process = hec.popen("run", "-q", "-f", "-o", "r.hec", "--", "sh", "-c", f"touch begun; read end; exit {STATUS}", stdin=subprocess.PIPE)
        until((hec.folder / "begun").exists)
        assert (hec.folder / "r.hec").read_bytes() == before
        (hec.folder / "begun").unlink()
        return process
    first = start()
    busy = hec("run", "-f", "-o", "r.hec", "--", "touch", "ran")
    assert busy.returncode == 75 and "r.hec.unfinished is being written by another run" in busy.stderr and not (hec.folder / "ran").exists()
    first.kill()
    first.communicate("end\n")
    assert (hec.folder / "r.hec").read_bytes() == before and not hec.report("r.hec.unfinished")["run"]["complete"]
    second = start()
    second.communicate("end\n", timeout=HANGS_S)
    assert second.returncode == STATUS and "read end" in hec.report("r.hec")["run"]["command"]
    assert [path.name for path in hec.folder.glob("r.hec*")] == ["r.hec"]


@pytest.fixture
def shared(hec):
    """A folder like /tmp: everybody may make files in it, and remove only their own."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    if nobody(["sh", "-c", f"{shlex.quote(hec.path)} --version"]).returncode:
        pytest.skip("the program lies in a folder that is closed to other users")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o1777)
        yield pathlib.Path(folder)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_planted_log(hec, shared, suffix):
    """SQLite takes what lies beside a run file for its own: what another user put there could be read and changed by them."""
    planted = shared / f"x.hec{suffix}"
    assert as_user(65533, ["sh", "-c", f"umask 0; echo > {planted}"]).returncode == 0
    done = nobody([hec.path, "run", "-q", "-o", "x.hec", "--", "touch", "ran"], cwd=shared)
    assert done.returncode == 77 and f"x.hec{suffix} is there and cannot be removed" in done.stderr
    assert not (shared / "ran").exists() and list(shared.iterdir()) == [planted]
    planted.rename(shared / f"touch.hec{suffix}")
    done = nobody([hec.path, "run", "-q", "--", "touch", "ran"], cwd=shared, env={**os.environ, "TMPDIR": str(shared)})
    whole = re.search(r"the run file is (\S+)$", done.stderr).group(1)
    assert done.returncode == 0 and os.path.dirname(whole) != str(shared) and hec.report(whole)["run"]["complete"]

    # a log that came later is not read either, and one's own is
    assert nobody([hec.path, "run", "-q", "-o", "y.hec", "--", "true"], cwd=shared).returncode == 0
    (shared / f"touch.hec{suffix}").rename(shared / f"y.hec{suffix}")
    done = nobody([hec.path, "report", "y.hec"], cwd=shared)
    assert done.returncode == 77 and f"y.hec{suffix} beside it is of another user" in done.stderr


# ---- what a killed hec leaves ----

@pytest.fixture
def short_folder():
    """The path of a socket in it is no longer than the system allows."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield pathlib.Path(folder)


def hec_folders(folder):
    return sorted(p.name for p in folder.glob("hec-*"))


def test_folders_of_a_killed_hec_are_removed(hec, short_folder):
    """By the next one, and only those: not of one that lives, and nothing that is called alike."""
    temporary = short_folder
    (temporary / "hec-abcdef").mkdir(0o700)
    (temporary / "hec-123456").mkdir()
    (temporary / "hec-123456" / "owner").write_text("not hec's")
    env = {**os.environ, "TMPDIR": str(temporary), "XDG_RUNTIME_DIR": ""}
    own = hec_folders(temporary)

    def start(path):
        before = len(hec_folders(temporary))
        process = hec.popen("run", "-q", "-o", path, "--", "sh", "-c", "echo ready; read end", env=env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == "ready\n"
        assert len(hec_folders(temporary)) == before + 1
        return process
    killed, lives = start("a.hec"), start("b.hec")
    killed.kill()
    killed.communicate("end\n")
    assert len(hec_folders(temporary)) == len(own) + 2
    assert hec("run", "-q", "-o", "c.hec", "--", "true", env=env).returncode == 0
    assert len(hec_folders(temporary)) == len(own) + 1, "that of the killed one is gone"
    lives.communicate("end\n", timeout=HANGS_S)
    assert hec_folders(temporary) == own


def test_killed_import(hec):
    """It leaves no file under the name that was asked for, and what it leaves is removed by the next."""
    events = ",".join('{"ph":"X","cat":"kernel","name":"k","ts":%d,"dur":5,"args":{"device":0,"stream":7}}' % (1000 + 10 * i)
                      for i in range(120000))
    (hec.folder / "t.json").write_text('{"traceEvents":[%s]}' % events)
    process = hec.popen("import", "-q", "-o", "t.hec", "t.json")
    until(lambda: hec_folders(hec.folder) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and len(hec_folders(hec.folder)) == 1 and not (hec.folder / "t.hec").exists()
    assert hec("import", "-q", "-o", "t.hec", "t.json").returncode == 0
    assert sorted(p.name for p in hec.folder.iterdir() if p.name != "state") == ["t.hec", "t.json"]
