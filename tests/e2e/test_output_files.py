"""Files that verbs write: nothing that is there is written into or through without -f, whatever it is, and nothing holds them up."""
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from conftest import BINARY, Hec
from test_import_run import kineto

TRIALS = ("--in-place", "--warm-up", 0)
# verb, words before and after the name of the file; "=": the name follows the word at once
VERBS = {
    "run": (("-q", "-o"), ("--", "true")),
    "import": (("-q", "-o"), ("train.json",)),
    "gather": (("-o",), ("r.hec",)),
    "export csv": (("--csv", "-o"), ("r.hec",)),
    "export perfetto": (("--perfetto", "-o"), ("r.hec",)),
    "report": (("-o",), ("r.hec",)),
    "report html": (("--html", "-o"), ("r.hec",)),
    "report json": (("--json", "-o"), ("r.hec",)),
    "compare": (("--unlike", "-o"), ("r.hec", "s.hec")),
    "verify": (("--md", "-o"), ("base.json",)),
    "verify replay": (("--replay", "--yes", "--in-place", "-o"), ("ab.json",)),
    "ab": (("-n", 2, *TRIALS, "-o"), ("--", "true", ":::", "true")),
    "ab page": (("-n", 2, *TRIALS, "-o", "free.json", "--html="), ("--", "true", ":::", "true")),
    "check": (("-n", 1, *TRIALS, "-o"), ("--", "true")),
    "check md": (("-n", 1, *TRIALS, "--baseline", "base.json", "--md"), ("--", "true")),
    "sweep": (("-n", 1, "--in-place", "-o"), ("a=1", "--", "true", "{a}")),
    "try": (("--in-place", "-o"), ("--", "true")),
    "try first run": (("--in-place", "-o", "free2.json", "--first-run"), ("--", "true")),
    "record": (("--agent=nowhere", "--job", "1", "-o"), ()),
    "attach": (("-q", "-s", 0.1, "-o"), (os.getpid(),)),
}
RUN_FILES = ("run", "import", "gather", "attach", "record", "try first run")
# what is refused before there is any work, or takes too long here
NOT_WRITTEN = ("verify replay", "try", "try first run", "record", "attach", "ab page")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    hec = Hec(BINARY, tmp_path_factory.mktemp("world"))
    (hec.folder / "train.json").write_text(kineto())
    hec.ok("import", "-q", "-o", "r.hec", "train.json")
    hec.ok("import", "-q", "-o", "s.hec", "train.json")
    assert hec("check", "-n", 1, *TRIALS, "-o", "base.json", "--", "true").returncode == 0

    hec.ok("ab", "-n", 2, *TRIALS, "-o", "ab.json", "--", "true", ":::", "true")

    def write(verb, path, *more):
        before, after = VERBS[verb]
        name = [*before[:-1], f"{before[-1]}{path}"] if before[-1].endswith("=") else [*before, path]
        return hec(verb.split()[0], *more, *name, *after)
    hec.write = write
    return hec


@pytest.fixture
def place(world):
    """A new folder for what is at the path."""
    folder = world.folder / "place"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


STANDS = ("file", "link", "dangling", "pipe", "socket", "empty", "closed", "shared", "chain", "link to a pipe", "link up", "link to null",
          "device", "disk")


def plant(folder, what):
    """What is at folder/out; a function that says whether all is as it was."""
    out, other = folder / "out", folder / "other"
    if what in ("file", "link", "closed", "shared", "chain", "link up"):
        (out if what in ("file", "closed") else other).write_text("mine")
    if what == "closed":
        out.chmod(0)
    if what == "empty":
        out.touch()
    if what == "shared":
        os.link(other, out)
    if what in ("link", "dangling"):
        out.symlink_to("other")
    if what == "chain":
        for i in range(30):
            (folder / f"link{i}").symlink_to(f"link{i + 1}" if i < 29 else "other")
        out.symlink_to("link0")
    if what == "link to a pipe":
        os.mkfifo(other)
        out.symlink_to("other")
    if what == "link up":
        out.symlink_to("../place/./other")
    if what == "link to null":
        out.symlink_to("/dev/null")
    if what in ("device", "disk"):
        if os.geteuid() != 0:
            out.touch()  # only root makes one
        else:
            os.mknod(out, 0o666 | (stat.S_IFCHR if what == "device" else stat.S_IFBLK), os.makedev(1, 8) if what == "device" else os.makedev(7, 250))
    if what == "pipe":
        os.mkfifo(out)
    if what == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(out))
    before = state(folder)
    return lambda: state(folder) == before


def state(folder):
    return sorted((p.name, p.lstat().st_mode, p.lstat().st_ino, os.readlink(p) if p.is_symlink() else
                   p.read_bytes() if p.is_file() else b"") for p in folder.iterdir())


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_that_is_there_is_touched(world, place, verb):
    for what in STANDS:
        as_it_was = plant(place, what)
        done = world.write(verb, "place/out")
        said = [line for line in done.stderr.splitlines() if not line.startswith("hec: warning: ")]
        assert done.returncode == (64 if verb.startswith("check") else 2) and len(said) == 1 and "exists already" in said[0], (what, done.stderr)
        assert as_it_was(), what
        shutil.rmtree(place)
        place.mkdir()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in NOT_WRITTEN])
def test_force_replaces_regular_files_alone(world, place, verb):
    for what in ("pipe", "socket"):
        as_it_was = plant(place, what)
        done = world.write(verb, "place/out", "-f")
        assert done.returncode not in (0, 124) and "place/out" in done.stderr and as_it_was(), (what, done.stderr)
        (place / "out").unlink()
    for name, what in (("out", "file"), ("other", "link"), ("other", "dangling")):
        plant(place, what)
        kept = place / name
        if verb in RUN_FILES and kept.exists():
            shutil.copy(world.folder / "s.hec", kept)  # nothing but a run is replaced by a run
        before = kept.stat().st_ino if kept.exists() else None
        hold = open(kept, "rb") if before else None  # its inode is not given away again
        assert world.write(verb, "place/out", "-f").returncode in (0, 1, 2), (what, verb)  # of check: whether it regressed
        assert kept.stat().st_ino != before and kept.read_bytes() not in (b"mine", b"")
        assert (place / "out").is_symlink() == (what != "file"), "the link stays"
        assert not [p.name for p in place.iterdir() if p.name not in ("out", "other")], "nothing is left beside it"
        if hold:
            hold.close()
        shutil.rmtree(place)
        place.mkdir()


@pytest.mark.parametrize("verb", ["export csv", "report", "report html", "compare", "verify", "gather", "import"])
def test_a_full_disk_loses_nothing(world, place, verb):
    as_it_was = plant(place, "file")
    if verb in RUN_FILES:
        shutil.copy(world.folder / "s.hec", place / "out")
        before = state(place)
        as_it_was = lambda: state(place) == before

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    before_words, after = VERBS[verb]
    done = world(verb.split()[0], "-f", *before_words, "place/out", *after, preexec_fn=full)
    assert done.returncode not in (0, 124) and as_it_was(), done.stderr


@pytest.mark.parametrize("verb", ["run", "gather", "report", "export csv", "ab", "check", "sweep"])
def test_places_that_are_none(world, place, verb):
    """One sentence before there is any work, with -f and without; nothing appears."""
    (place / "folder").mkdir()
    (place / "to-folder").symlink_to("folder")
    (place / "loop").symlink_to("loop")
    before = state(place)
    for path in ("place/folder", "place/folder/", "place/to-folder", "place/nowhere/x", "r.hec/x", "place/" + "a" * 300, "", "/proc/self/x",
                 "place/loop", "place/loop/x", "place/" + "a/" * 2100 + "x", "place/.", "place/folder/..", "/sys/x", "/proc/1/fd/77"):
        for force in ((), ("-f",)):
            done = world.write(verb, path, *force)
            said = [line for line in done.stderr.splitlines() if not line.startswith("hec: warning: ")]
            assert 0 < done.returncode < 124 and len(said) == 1 and not done.stdout, (path, force, done.stderr, done.stdout)
            assert state(place) == before, path


@pytest.mark.parametrize("verb", ["run", "gather", "report", "export csv", "ab", "check", "sweep"])
def test_a_descriptor_that_may_not_be_written(world, verb):
    """One that is closed, and one that is open for reading: refused before there is any work."""
    before, after = VERBS[verb]
    for path in ("/dev/fd/99", "/dev/stdin", "/proc/self/fd/0"):
        with open(world.folder / "r.hec", "rb") as opened:
            done = world(verb.split()[0], *before, path, *after, stdin=opened)
        said = [line for line in done.stderr.splitlines() if not line.startswith("hec: warning: ")]
        assert 0 < done.returncode < 124 and len(said) == 1 and not done.stdout, (path, done.stderr, done.stdout)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes files of another user")
def test_what_others_put_there_is_not_used(world, place):
    """A pipe that another user reads, or a link of another user, is refused with -f too."""
    os.mkfifo(place / "out")
    os.chown(place / "out", 65534, 65534)
    reader = os.open(place / "out", os.O_RDONLY | os.O_NONBLOCK)
    done = world.write("report", "place/out", "-f")
    assert done.returncode == 77 and "another user" in done.stderr
    os.close(reader)
    (place / "out").unlink()
    (place / "other").write_text("mine")
    (place / "out").symlink_to("other")
    os.chown(place / "out", 65534, 65534, follow_symlinks=False)
    assert world.write("report", "place/out", "-f").returncode != 0 and (place / "other").read_text() == "mine"


def test_what_hec_was_given_is_written_into(world, place):
    with open(place / "all", "w") as all_of_it:
        all_of_it.write("before\n")
        all_of_it.flush()
        assert subprocess.run([world.path, "report", "-o", "/dev/stdout", "r.hec"], cwd=world.folder, stdout=all_of_it).returncode == 0
    text = (place / "all").read_text()
    assert text.startswith("before\n") and len(text) > 100
    assert len(world.ok("report", "-o", "/dev/fd/1", "r.hec").stdout) > 100 and world.write("report", "/dev/null").returncode == 0


def test_live_appends_to_no_link(world, place):
    (place / "other").write_text("mine")
    (place / "out").symlink_to("other")
    done = world("run", "-q", "-f", "-o", "l.hec", "--live=place/out", "--", "true")
    assert done.returncode != 0 and "is a link" in done.stderr and (place / "other").read_text() == "mine"


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o007, 0o022, 0o027, 0o037, 0o066, 0o077, 0o177, 0o277, 0o777])
def test_the_umask_holds(world, place, umask):
    """Of all that a verb writes, and nobody else gets more of what hec keeps for itself."""
    if os.geteuid() != 0 and umask & 0o700:
        pytest.skip("only root may still read what it wrote")
    kept = world.folder / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    for verb in ("run", "import", "gather", "report html", "export csv", "ab", "check"):
        before, after = VERBS[verb]
        done = world(verb.split()[0], *before, "place/out", *after, preexec_fn=lambda: os.umask(umask), env={"HEC_STATE_DIR": str(kept)})
        assert done.returncode in (0, 1), done.stderr
        assert stat.S_IMODE((place / "out").stat().st_mode) == 0o666 & ~umask, verb
        (place / "out").unlink()
    assert not [path for path in (kept, *kept.rglob("*")) if path.exists() and path.stat().st_mode & 0o077]
