"""`hec ab` on the simulated GPU: what it says of a known difference, how trials end, and what they leave behind."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import BINARY, CLOCK, HANGS_S, Hec

PLAY = [BINARY, "sim", "healthy-train", "--marks", "--seconds"]
# A program that takes steps until it is asked to end, and says so beside its other output.
STEPS = """
import hec, pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path("asked").write_text(str(number))
    pathlib.Path("steps").write_text(str(n))
    sys.exit(7)
n = 0
signal.signal(signal.SIGTERM, end)
while n < 100000:
    time.sleep(0.01)
    n += 1
    hec.step(1)
"""


def ab(hec, *words, **options):
    return hec("ab", "--sim", "h200", "--seed", 1, "-f", "-o", hec.folder.parent / f"{hec.folder.name}.json", *words,
               **options)


def state_of(folder):
    """Names, kinds, modes, times and contents."""
    return {str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime_ns,
                                            path.read_bytes() if path.is_file() else None)
            for path in sorted(pathlib.Path(folder).rglob("*"))}


def layers_work(hec):
    done = ab(hec, "--pairs", 2, "--warm-up", 0, "--", "true", ":::", "true")
    return "overlay" not in done.stderr and "namespace" not in done.stderr


@pytest.fixture
def place(hec):
    """The options for trials here: in a layer where the system allows it."""
    return [] if layers_work(hec) else ["--in-place"]


def test_known_difference(hec, place):
    done = ab(hec, *place, "--pairs", 2, "--warm-up", 0, "--", *PLAY, 1.5, ":::", BINARY, "sim", "fp32", "--marks",
              "--seconds", 1.5)
    assert done.returncode == 0, done.stderr
    assert "lost: B takes" in " ".join(done.stdout.split()), done.stdout
    assert done.stderr.count("hec: pair") == 2


def test_wrong_words(hec):
    for words, sentence in (
            (["--", "true"], "two commands with :::"), (["--", ":::", "true"], "two commands with :::"),
            (["--", "true", ":::"], "two commands with :::"), (["--", "a", ":::", "b", ":::", "c"], "stands once"),
            (["--pairs", "4", "--until", "1%", "--", "a", ":::", "b"], "exclude each other"),
            (["--until", "0", "--", "a", ":::", "b"], "--until needs percent"),
            (["--caches", "mine", "--", "a", ":::", "b"], "trials, fresh or user")):
        done = ab(hec, *words)
        assert done.returncode == 2 and sentence in done.stderr, (words, done.stderr)


def test_a_command_that_fails_ends_it(hec, place):
    """Its own words are shown, and nothing is compared."""
    done = ab(hec, *place, "--", *PLAY, 1, ":::", "sh", "-c", "echo it broke >&2; exit 3")
    assert done.returncode == 1
    assert "B failed: exit status 3" in done.stderr and "it broke" in done.stderr and "found" not in done.stdout
    done = ab(hec, *place, "--", "no-such-command", ":::", "true")
    assert done.returncode == 127 and "command not found" in done.stderr
    assert hec("ab", *place, "--", "true", ":::", "false").returncode == 1
    assert not list(hec.folder.glob("ab-*")), "of a warm-up alone there is nothing to keep"


def test_receipts_of_the_same_second(hec, place):
    """Nobody chose their names: each keeps its own, says where it is, and where its page is."""
    words = ["ab", *place, "--pairs", "2", "--warm-up", "0", "--units", "9", "--html", "--", "true", ":::", "true"]
    processes = [hec.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate(timeout=HANGS_S)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said
    names = [line.split()[-1] for text in said for line in text.splitlines() if line.startswith("hec: receipt: ")]
    assert sorted(names) == sorted(path.name for path in hec.folder.glob("ab-*.json")) and len(set(names)) == 4
    for name, text in zip(names, said):
        receipt = json.loads((hec.folder / name).read_text())
        page = hec.folder / text.split()[-1]
        assert page.stem == pathlib.Path(name).stem and receipt["digest"] in page.read_text()


def test_pairs_that_are_planned(hec, place):
    """What is left of a number that was asked for is no estimate."""
    done = ab(hec, *place, "--pairs", 3, "--warm-up", 0, "--", "true", ":::", "true")
    said = [line for line in done.stderr.splitlines() if "pair" in line]
    assert said[0].endswith("; 2 more pairs") and said[1].endswith("; 1 more pair") and "more" not in said[2], done.stderr


def test_what_is_no_file_is_written_into(hec, place):
    """A pipe is there afterwards, and needs -f."""
    os.mkfifo(hec.folder / "pipe")
    reader = os.open(hec.folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    for words in (("ab", "-f", "--pairs", 2, "--warm-up", 0, "-o", "pipe", *place, "--", "true", ":::", "true"),
                  ("sweep", "-f", "-n", 1, "-o", "pipe", *place, "a=1", "--", "true", "{a}")):
        hec.ok(*words)
        assert os.read(reader, 1 << 16).startswith(b'{\n  "schema": "hec.') and (hec.folder / "pipe").is_fifo()
        while True:
            try:
                os.read(reader, 1 << 16)
            except BlockingIOError:
                break
    os.close(reader)


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere")
def test_a_folder_that_cannot_be_written():
    """It is said before the first trial, for that may take minutes."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are root's alone
        os.chmod(folder, 0o555)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        if as_nobody and subprocess.run([*as_nobody, "test", "-x", BINARY], check=False).returncode:
            pytest.skip("nobody else may run this build")
        for words in (("ab", "--", "true", ":::", "true"), ("try", "--", "true"), ("sweep", "-o", "s.json", "a=1", "--", "true", "{a}")):
            done = subprocess.run([*as_nobody, BINARY, *words], cwd=folder, text=True, capture_output=True, timeout=HANGS_S)
            assert done.returncode == 77 and "Permission denied" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_steps_end_a_trial_as_a_scheduler_would(hec):
    """SIGTERM, after so many steps; the program's status then is no failure. In place, what it writes is there."""
    command = [sys.executable, "-c", STEPS]
    done = ab(hec, "--in-place", "--warm-up", 0, "--pairs", 2, "--steps", 50, "--", *command, ":::", *command)
    assert done.returncode == 0, done.stderr
    assert (hec.folder / "asked").read_text() == str(int(signal.SIGTERM))
    assert 50 <= int((hec.folder / "steps").read_text()) < 1000
    assert "joules are not known" in " ".join(done.stdout.split())  # a program that used no GPU


def test_nothing_to_compare(hec, place):
    done = ab(hec, *place, "--warm-up", 0, "--seconds", 1, "--", "sleep", "60", ":::", "sleep", "60")
    assert done.returncode == 69 and "nothing to compare" in done.stderr and "nan" not in done.stderr


def test_every_trial_begins_as_the_first(hec):
    """The folder, the home and the place for temporary files are as they were, in each trial and afterwards."""
    if not layers_work(hec):
        pytest.skip("this system allows no scratch layer: hec ab says so and asks for --in-place")
    folder = hec.folder / "work"
    home, temporary = folder / "home", hec.folder / "temporary"
    for path in (folder, home, temporary):
        path.mkdir()
    (folder / "data").write_text("precious")
    script = ("set -e; for d in . $HOME $TMPDIR; do test ! -e $d/new; touch $d/new; done; echo lost > data; mkdir -p out; "
              "mv data out/; ")
    before = state_of(folder), state_of(temporary)
    environment = {"HOME": str(home), "TMPDIR": str(temporary)}
    inside = Hec(BINARY, folder)
    done = ab(inside, "--warm-up", 0, "--pairs", 2, "--", "sh", "-c", script + f"exec {' '.join(PLAY)} 1", ":::", "sh", "-c",
              script + f"exec {' '.join(PLAY)} 1", env=environment)
    assert done.returncode == 0, done.stderr
    assert (state_of(folder), state_of(temporary)) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(hec, place, number):
    """The trial ends with it, what there is stays readable, and the status is that of the signal."""
    mark = f"HEC_TEST_AB=_{os.getpid()}_{time.monotonic_ns()}"
    process = hec.popen("ab", "--sim", "h200", *place, "--warm-up", "0", "--", "env", mark, *PLAY, "60", ":::", "env", mark, *PLAY, "60",
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + HANGS_S

    def there():
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and mark.encode() in read(f"/proc/{pid}/environ")]

    while not there() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == -number, "by the signal: a shell's loop over it ends too"
    assert there() == []


def test_interrupted_at_any_time(hec, place):
    """Also before the first trial, between two, and at the end of one: what was compared is printed, and nothing begins after it."""
    trials = ("ab", "--sim", "h200", *place, "--warm-up", "0", "--pairs", "60", "--", *PLAY, "0.2", ":::", *PLAY, "0.2")
    for seconds in [n / 1000 for n in range(0, 40, 2)] + [n / 7 for n in range(1, 15)]:
        with hec.popen(*trials, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                       env={**os.environ, "LD_PRELOAD": CLOCK}) as process:  # fmt: skip
            time.sleep(seconds)
            os.killpg(process.pid, signal.SIGINT) if int(seconds * 1000) % 4 else process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=HANGS_S)
        pairs = err.count("hec: pair ")
        assert process.returncode == -signal.SIGINT, (seconds, process.returncode, err)
        assert f"{pairs} pair" in out if pairs else not out, (seconds, out, err)


def test_what_hec_is_started_to_ignore_ends_nothing(hec, place):
    """As under nohup, when the terminal goes."""
    played = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, "LD_PRELOAD": CLOCK}}
    with hec.popen("ab", "--sim", "h200", *place, "--warm-up", "0", "--pairs", "3", "--", *PLAY, "1", ":::", *PLAY, "1", **played,
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:  # fmt: skip
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        assert process.returncode == 0 and "3 pairs of trials" in process.communicate(timeout=HANGS_S)[0]


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""
