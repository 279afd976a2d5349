"""`hec levers`, `--with` and `hec try` on the simulated GPU."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import BINARY, CLOCK, HANGS_S, ROOT
from test_ab import layers_work

# A command that does other work under a lever, as the program of a library that reads the variable does.
PROGRAM = f"""
case "$NVIDIA_TF32_OVERRIDE$OMP_NUM_THREADS" in
*7) sleep 100 ;;
*9) echo 'RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 3 ;;
1*) exec {BINARY} sim layout-nchw --marks --seconds 1.5 ;;
*) exec {BINARY} sim fp32 --marks --seconds 1.5 ;;
esac
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.sh").write_text(PROGRAM)
    return ["sh", "program.sh"]


@pytest.fixture
def place(hec):
    return [] if layers_work(hec) else ["--in-place"]


def test_each_lever_of_a_framework_has_its_module(hec):
    levers = json.loads(hec("levers", "--json").stdout)["levers"]
    modules = {path.stem for path in (ROOT / "python/hec/levers").glob("*.py") if "\nFRAMEWORK = " in path.read_text()}
    rows = {lever["name"] for lever in levers}
    assert len(rows) == len(levers) and modules <= rows, modules - rows
    for lever in levers:
        where = lever["for"] in ("program", "device") or lever["name"] in modules or lever["risk"] == "semantics" or lever["variables"]
        assert where, lever["name"]


def test_list_and_one(hec):
    done = hec("levers")
    assert done.returncode == 0 and "bf16_autocast" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    assert "torch.backends.cudnn.benchmark = True" in hec("levers", "cudnn_benchmark").stdout
    done = hec("levers", "compil")
    assert done.returncode == 2 and 'did you mean "compile"?' in done.stderr


def test_run_with(hec):
    done = hec("run", "--sim", "h200", "-o", "x.hec", "--with", "keep_heap", "--with", "threads=2", "--", "sh", "-c",
               "echo $OMP_NUM_THREADS $MALLOC_TOP_PAD_ $HEC_LEVERS")
    assert done.stdout.split() == ["2", "67108864", "keep_heap,threads=2"]
    assert "threads=2: set (OMP_NUM_THREADS=2" in done.stderr
    levers = hec.report("x.hec")["levers"]
    assert [(lever["name"], lever["value"], lever["attest"]) for lever in levers] == [
        ("keep_heap", None, "set"), ("threads", "2", "set")]
    done = hec("run", "--with", "tf32", "-o", "y.hec", "--", "true")
    assert "tf32: did nothing" in done.stderr
    for words, sentence in ((["tf33"], "no lever"), (["compile", "--hooks", "off"], "--hooks=off"), (["@none.json"], "none.json")):
        done = hec("run", "--with", *words, "--", "touch", "ran")
        assert done.returncode and sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (hec.folder / "ran").exists()


def test_levers_of_older_run_files(hec):
    """Until 2026-11-25 the state of a lever stood in front of its text, and why it did nothing was a fact of its own."""
    hec("run", "--sim", "h200", "-o", "x.hec", "--with", "keep_heap", "--with", "threads=2", "--with", "huge_pages", "--", "true")
    levers = hec.report("x.hec")["levers"]
    assert [lever["attest"] for lever in levers] == ["set", "set", "set"]
    with contextlib.closing(sqlite3.connect(hec.folder / "x.hec")) as db, db:
        for key, text in db.execute("SELECT key, value FROM meta WHERE key LIKE 'lever.%'").fetchall():
            lever, state = key.rsplit(".", 1)
            db.execute("UPDATE meta SET key=?, value=? WHERE key=?", (lever, f"{state}: {text}", key))
    assert hec.report("x.hec")["levers"] == levers
    with contextlib.closing(sqlite3.connect(hec.folder / "x.hec")) as db, db:
        db.execute("DELETE FROM meta WHERE key='lever.keep_heap'")
        db.executemany("INSERT INTO meta VALUES (?, ?)", [("python.lever.keep_heap.why", "no heap"), ("python.lever.threads", "on: two: of them")])
    assert [(lever["attest"], lever["text"]) for lever in hec.report("x.hec")["levers"]][:2] == [
        ("nothing", "no heap"), ("on", "two: of them")]


def test_try_finds_proves_and_keeps(hec, program, place):
    receipt = hec.folder.parent / f"{hec.folder.name}-try.json"
    done = hec.ok("try", "--sim", "h200", *place, "--seed", 1, "-o", receipt, "--budget-seconds", 40, "--levers",
                  "tf32_override,threads=9,keep_heap", "--html", "--", *program)
    page = receipt.with_suffix(".html")
    assert done.stderr.endswith(f"hec: page: {page}\n") and page.read_text() == hec("verify", "--html", receipt).stdout
    assert "saved: B takes 6" in done.stdout and "NVIDIA_TF32_OVERRIDE=1" in done.stdout
    data = json.loads(receipt.read_text())
    assert data["commands"]["levers"] == ["tf32_override"]
    outcomes = {row["levers"]: row["outcome"] for row in data["tried"]}
    assert outcomes == {"": "base", "tf32_override": "kept", "tf32_override,threads=9": "failed", "tf32_override,keep_heap": "no_gain"}
    assert next(row["text"] for row in data["tried"] if "threads=9" in row["levers"]).startswith("out of the GPU's memory, exit status 3: Runt")
    # the search is charged
    trials = sum(trial["run"]["joules"] for trial in data["trials"])
    assert data["verdict"]["cost"]["joules"] == pytest.approx(trials + data["plan"]["spent_joules"])
    assert data["plan"]["spent_joules"] > 4 * min(trial["run"]["joules"] for trial in data["trials"])
    assert hec("verify", receipt).returncode == 0
    done = hec("run", "--sim", "h200", "--with", f"@{receipt}", "-o", "kept.hec", "--", *program)
    assert hec.report("kept.hec")["levers"][0]["name"] == "tf32_override"


def test_try_keeps_nothing(hec, place):
    done = hec.ok("try", "--sim", "h200", *place, "--budget-seconds", 30, "--json", "--html=page.html", "--first-run=first.hec", "--levers", "keep_heap", "--",
                  BINARY, "sim", "healthy-train", "--marks", "--seconds", 1.5)
    data = json.loads(done.stdout)
    assert hec.report("first.hec")["findings"] and "first trial kept: first.hec\n" in done.stderr
    assert data["digest"] in (hec.folder / "page.html").read_text(), "the page is of what is printed, also where no receipt is kept"
    if data["verdict"]:  # two trials looked better by chance: the proof does not
        assert data["verdict"]["verdict"] == "not_shown"
    else:
        assert data["commands"]["b"] == [] and data["tried"][1]["outcome"] == "no_gain"
        assert not list(pathlib.Path(hec.folder).glob("*.json"))
    done = hec("try", "--sim", "h200", *place, "--", "sh", "-c", "echo no; exit 4")
    assert done.returncode == 1 and "exit status 4" in done.stderr
    for name, sentence in (("first.hec", "exists already"), ("nowhere/x.hec", "cannot create"), ("-", "name of a file")):
        done = hec("try", "--sim", "h200", "--first-run", name, "--", "touch", "ran")
        assert done.returncode and sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (hec.folder / "ran").exists()


def words_of(text):
    return " ".join(text.split())


CAPPED = (BINARY, "sim", "healthy-train", "--marks")
SAVES = ("--levers", "power_cap=400", "--max-slowdown", "50%")  # more than a busy host hides


def test_try_says_why_nothing_is_kept(hec, place):
    done = hec("try", "--sim", "h200", *place, "--levers", "power_cap=400", "--seconds", 1, "--budget-seconds", 30, "--", *CAPPED)
    assert "nothing: what saves joules here makes it slower by more than 5 %" in words_of(done.stdout), done.stdout
    assert re.search(r"power_cap=400 takes [1-9]\d? % fewer", words_of(done.stdout)), done.stdout
    done = hec("try", "--sim", "h200", *place, *SAVES, "--min-saving", "49%", "--seconds", 1, "--budget-seconds", 30, "--", *CAPPED)
    assert "saves less than 49 % (--min-saving asks for less): power_cap=400" in words_of(done.stdout), done.stdout
    done = hec("try", "--sim", "h200", *place, "--", BINARY, "sim", "data-starved", "--marks", "--seconds", 2)
    assert "hooks of PyTorch, JAX or TensorFlow" in words_of(done.stdout), done.stdout
    done = hec("try", *place, "--", "true")
    assert "nothing: nothing was found that a lever could answer" in words_of(done.stdout)
    assert hec("try", *place, "--", "no-such-command").returncode == 127
    done = hec("try", "--sim", "h200", *place, "--levers", "keep_heap", "--budget-seconds", 10, "--", "sleep", "3")
    assert "nothing: the time ran out before any lever was tried" in words_of(done.stdout), done.stdout
    done = hec("try", "--sim", "h200", *place, "--levers", "keep_heap", "--seconds", 1, "--budget-seconds", 10, "--", "sleep", "60")
    assert done.returncode == 74 and "the command as it is: ended after" in done.stderr, done.stderr
    assert "before its first step: nothing can be compared with it" in words_of(done.stderr), done.stderr


def test_try_of_what_starts_slowly(hec, place):
    """Its start is paid in each trial: what one lever takes is known after the first one, and said before a second."""
    slow = ("sh", "-c", f"sleep 4; exec {BINARY} sim fp32 --marks --seconds 1")
    done = hec("try", "--sim", "h200", *place, "--levers", "tf32_override", "--budget-seconds", 10, "--", *slow)
    assert done.returncode == 69 and not done.stdout, done.stderr
    told = re.search(r"the budget is too small: a trial takes about (\d+) s, of which (\d+) are its start: to try one lever and to "
                     r"prove it takes about (\d+) s", words_of(done.stderr))  # fmt: skip
    trial, start, needed = map(int, told.groups())
    assert start >= 4 and trial > start and needed >= 10 * start
    done = hec("try", "--sim", "h200", *place, "--levers", "tf32_override", "--seconds", 1, "--budget-seconds", 60, "--", *slow)
    assert done.returncode == 74 and "before its first step: nothing can be compared with it. --seconds count from its start" in words_of(
        done.stderr)  # fmt: skip
    assert "first trial, traced" in done.stderr and "as it is: 1" not in done.stderr, "no second one"


def test_try_says_how_to_keep(hec, place):
    """The line can be pasted: the simulated device is named, and the receipt's name is one word."""
    done = hec("try", "--sim", "h200", "-o", "the receipt.json", *place, *SAVES, "--seconds", 1, "--budget-seconds", 30, "--", *CAPPED)
    assert done.returncode == 0 and "hec run --sim h200 --with '@the receipt.json' -- COMMAND" in words_of(done.stdout), done.stdout
    kept = hec("run", "--sim", "h200", "--with", "@the receipt.json", "-q", "-o", "kept.hec", "--", *CAPPED, "--seconds", 1)
    assert kept.returncode == 0, kept.stderr


def test_try_interrupted_in_its_proof(hec, place):
    """What the search found is printed; nothing is called kept."""
    child = hec.popen("try", "--sim", "h200", *place, *SAVES, "--seconds", "60", "--", *CAPPED, "--seconds", "60",
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": CLOCK})
    for line in child.stderr:
        if "power_cap=400" in line:
            break
    time.sleep(0.2)  # of the minute of the proof's first trial, played in some seconds
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=HANGS_S)
    assert child.returncode == -signal.SIGINT and "it was interrupted before anything was proven" in words_of(out), out
    assert "power_cap=400" in out and not list(hec.folder.glob("try-*"))


def test_ab_with(hec, program, place):
    done = hec.ok("ab", "--sim", "h200", *place, "--with", "tf32_override", "--pairs", 2, "--warm-up", 0, "-o",
                  hec.folder.parent / f"{hec.folder.name}-ab.json", "--", *program)
    assert "hec run --with tf32_override -- sh program.sh" in done.stdout and "saved: B takes 6" in done.stdout
    assert "without effect" not in done.stdout and "levers tf32_override: set" in words_of(done.stdout), done.stdout
    for words in (("ab", "--pairs", 2, "--warm-up", 0, "-o", "none.json"), ("sweep", "-n", 1, "a=1")):
        done = hec(*words, *place, "--with", "tf32", "--", "true", "{a}")
        assert done.returncode == 0 and "without effect: tf32: did nothing" in words_of(done.stdout), done.stdout
    receipt = json.loads((hec.folder / "none.json").read_text())
    assert any("tf32: did nothing" in note for note in receipt["verdict"]["notes"])
    assert hec("verify", "none.json").returncode == 0
