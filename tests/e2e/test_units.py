"""`hec run --unit`: what the program says in its own lines stands beside what HEC counts, and what it prints is as without HEC."""
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess

import pytest

from conftest import GOLDEN

# prints its rate beside a play that marks steps: 20 a second by its lines, in both forms of tqdm
SAYS = """
import subprocess, sys, time
play = subprocess.Popen([sys.argv[1], "sim", "healthy-gemm", "-s", "3", "--marks"])
n = 0
while play.poll() is None:
    time.sleep(0.1)
    n += 1
    print("did 64 obs, Step tok/sec: 1,%d" % (100 + n % 3), flush=True)
    print("\\r %d%%| | %d/99 [00:01<00:08, %s]" % (n, n, "20.0it/s" if n % 2 else "0.05s/it"), end="", file=sys.stderr, flush=True)
"""
UNITS = ("--unit", r"tok/s=Step tok/sec: ([0-9,]+)", "--unit", "obs=did ([0-9]+) obs", "--unit", "it/s=tqdm")


def said(hec, name="r.hec"):
    return {each["name"]: each for each in hec.report(name)["printed"]}


def test_the_programs_own_figures(hec):
    """Rates by their median, counts over their time, joules by the watts of the loop; HEC's own figure stands beside them."""
    (hec.folder / "says.py").write_text(SAYS)
    done = hec("run", "--sim", "h200", "-o", "r.hec", *UNITS, "--", "python3", "says.py", hec.path)
    assert done.returncode == 0 and done.stdout.count("Step tok/sec") >= 25 and "20.0it/s" in done.stderr
    report, units = hec.report("r.hec"), said(hec)
    assert report["printed_from"] == "stdout, stderr"
    tok, obs, it = units["tok"], units["obs"], units["it"]
    assert tok["rate"] and tok["of_loop"] and tok["per_second"] == pytest.approx(1101, abs=1) and 10 <= tok["lines_used"] <= tok["lines"]
    assert not obs["rate"] and obs["per_second"] == pytest.approx(640, rel=0.1)
    assert it["per_second"] == pytest.approx(20)
    loop = report["loop"]["loop"]
    watts = loop["joules"] / loop["seconds"]
    for each in (tok, it):
        assert each["joules_per_unit"] * each["per_second"] == pytest.approx(watts, rel=0.01)
    row = next(each["text"] for each in report["screen"] if each["row"] == "loop")
    assert re.search(r"\d steps marked by the program: .* a second.*; the program says 1101 tok a second, .* per tok \(median of \d+ lines in the loop\)", row)
    assert re.search(r"\n  printed +1101 tok a second.*\n(.*\n)? +6\d\d(\.\d+)? obs a second", hec("report", "r.hec").stdout)


def test_what_goes_to_a_file_is_read_there(hec):
    """Appended, both streams in one file, whose order stays; what was in the file before is not read."""
    log = hec.folder / "log"
    log.write_text("tok/s: 999\n")
    with open(log, "a") as out:
        subprocess.run([hec.path, "run", "-q", "-o", "r.hec", "--unit", "tok/s=tok/s: ([0-9]+)", "--",
                        "sh", "-c", "echo tok/s: 5; echo err >&2; echo tok/s: 7; test -f /proc/self/fd/1 && echo file"],
                       stdout=out, stderr=out, cwd=hec.folder, check=True)
    assert log.read_text() == "tok/s: 999\ntok/s: 5\nerr\ntok/s: 7\nfile\n"
    assert said(hec)["tok"]["lines"] == 2 and said(hec)["tok"]["per_second"] in (5, 6, 7)


def test_pipes_stay_as_they_are(hec):
    """All bytes in their order, both streams of one pipe, a reader that leaves early, and descendants that go on when hec is gone."""
    unit = ("run", "-q", "-o", "r.hec", "-f", "--unit", "n/s=^([0-9]+)$", "--")
    done = subprocess.run([hec.path, *unit, "sh", "-c", "for i in 1 2 3; do echo $i; echo e$i >&2; done; seq 200000; test -p /proc/self/fd/1 && echo pipe"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=hec.folder, text=True)
    assert done.stdout == "1\ne1\n2\ne2\n3\ne3\n" + "".join(f"{i}\n" for i in range(1, 200001)) + "pipe\n"
    assert said(hec)["n"]["lines"] > 1000
    done = subprocess.run(f"{hec.path} {' '.join(unit[:-3])} --unit 'n/s=^([0-9]+)$' -- sh -c 'yes 3; kill -l $?' | head -1", shell=True, cwd=hec.folder,
                          capture_output=True, text=True)
    assert done.stdout == "3\n" and done.stderr in ("", "PIPE\n")
    done = subprocess.run([hec.path, *unit, "sh", "-c", "(sleep 0.3; echo late) & echo soon"], cwd=hec.folder, capture_output=True, text=True)
    assert done.stdout == "soon\nlate\n"
    process = subprocess.Popen([hec.path, *unit, "sh", "-c", "echo on; sleep 0.5; echo still"], cwd=hec.folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGKILL)
    assert process.stdout.read() == "still\n", "the command goes on printing where hec was killed"
    process.wait()


def test_a_terminal_is_left_alone(hec):
    """The command does not run where nothing can be read; where one stream can be, the other stays a terminal."""
    def on_a_terminal(*command):
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(hec.folder)
            os.execvp(command[0], command)
        output = b""
        while select.select([fd], [], [], 20)[0]:
            try:
                output += os.read(fd, 4096)
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode()

    unit = "--unit 'tok/s=tok/s: ([0-9]+)'"
    status, output = on_a_terminal("sh", "-c", f"exec {hec.path} run -q -o r.hec {unit} -- touch ran")
    assert status == 2 and "stdout: a terminal, which is not read; stderr: a terminal" in " ".join(output.split()) and "2>&1 | tee" in output
    assert not (hec.folder / "ran").exists() and not (hec.folder / "r.hec").exists()
    status, output = on_a_terminal("sh", "-c", f"{hec.path} run -q -o r.hec {unit} -- sh -c 'test -t 2 && echo tok/s: 4' | cat")
    assert status == 0 and output == "tok/s: 4\r\n"
    assert hec.report("r.hec")["printed_from"] == "stdout (stderr: a terminal, which is not read)" and said(hec)["tok"]["per_second"] == 4


def test_trials_are_compared_by_it(hec):
    """What a trial prints goes to a file: the joules of a unit are those of its own count, whatever HEC counts; the receipt says which."""
    (hec.folder / "says.py").write_text(SAYS.replace("1,%d\" % (100 + n % 3)", "%s\" % sys.argv[2]").replace(", flush=True", ""))
    command = ["python3", "says.py", hec.path]
    options = ["--sim", "h200", "--in-place", "--warm-up", 0, "--unit", "tok/s=Step tok/sec: ([0-9,]+)"]
    done = hec("ab", *options, "--pairs", 2, "-o", "ab.json", "--", *command, 1000, ":::", *command, 2000)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((hec.folder / "ab.json").read_text())
    assert receipt["unit"] == "tok" and receipt["conditions"]["printed"] == [options[-1]]
    for trial in receipt["trials"]:
        steady = trial["steady"]
        assert steady["units"] == pytest.approx(steady["seconds"] * (2000 if trial["side"] == "B" else 1000), rel=0.01)
        assert trial["run"]["units"] is None
    assert "saved: B takes 5" in " ".join(done.stdout.split()) or "saved: B takes 4" in " ".join(done.stdout.split()), done.stdout
    assert hec("verify", "ab.json").returncode == 0
    done = hec("check", "--sim", "h200", "--in-place", "-n", 1, "-b", "ab.json", "--", *command, 1000)
    assert "tok" in done.stdout and done.returncode in (0, 1), done.stderr


def test_trials_that_do_not_say_it(hec):
    done = hec("ab", "--sim", "h200", "--in-place", "-o", "ab.json", "--unit", "tok/s=tok/s: ([0-9]+)", "--", "true", ":::", "true")
    assert done.returncode and "says tok" in done.stderr and not (hec.folder / "ab.json").exists()
    done = hec("try", "--sim", "h200", "--unit", "tok", "--", "touch", "ran")
    assert done.returncode == 2 and "try: --unit tok" in done.stderr and not (hec.folder / "ran").exists()


def test_what_runs_already_is_not_read(hec):
    done = hec("attach", "--unit", "it/s=tqdm", os.getpid())
    assert done.returncode == 2 and "cannot be read beside" in done.stderr


@pytest.mark.parametrize("unit,why", [("tok", "NAME=PATTERN"), ("tok=([0-9]", "regular expression"), ("tok=[0-9]", "0 groups"), ("it=tqdm", "it/s=tqdm")])
def test_a_pattern_that_is_none(hec, unit, why):
    done = hec("run", "--unit", unit, "--", "touch", "ran")
    assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (hec.folder / "ran").exists()


def test_no_line_that_matches(hec):
    hec.ok("run", "-q", "-o", "r.hec", "--unit", "tok/s=tok/s: ([0-9]+)", "--", "echo", "tok/s: none")
    unit = said(hec)["tok"]
    assert unit["lines"] == 0 and unit["per_second"] is None
    assert "tok: no line says it of stdout, stderr" in " ".join(hec("report", "r.hec").stdout.split())
    assert json.loads(hec("report", "--json", "r.hec").stdout)["printed"][0]["joules_per_unit"] is None


def test_what_the_hooks_say_of_steps(hec):
    """What a step is, what its samples are, and the host's time in its parts, which is told with -v; what is no number is not."""
    facts = {"step_module": "UNet2DModel", "samples_by": "loader", "forward": "2000000000 100", "backward": "nothing", "optimizer": "30000000 10"}
    for name, source in (("none_train", "optimizer"), ("launch_decode", "module")):
        shutil.copy(GOLDEN / f"{name}.hec", hec.folder)
        with sqlite3.connect(hec.folder / f"{name}.hec") as file:
            for key, text in facts.items():
                file.execute("INSERT INTO meta VALUES (?, ?)", (f"python.{key}", text))
        report, text = hec.report(f"{name}.hec"), " ".join(hec("report", "-v", f"{name}.hec").stdout.split())
        assert report["step_parts"] == [{"part": "forward", "host_seconds": 2, "count": 100}, {"part": "optimizer", "host_seconds": 0.03, "count": 10}]
        assert "host: forward 20.0 ms, optimizer 3.00 ms a call" in text and "host: forward" not in hec("report", f"{name}.hec").stdout
        assert ("calls of UNet2DModel" in text) == (source == "module")
        assert ("16 samples each (the loader's batch)" in text) == (source == "optimizer")
        assert ("1 sample each (first dimension of a call)" in text) == (source == "module")
        bound = [device["mfu_at_most"] for device in report["devices"] if device["used"]]
        assert ("tensor pipes: at most 71 % of their dense peak in the loop" in text) == (source == "optimizer") == (bound[0] > 0.5)
