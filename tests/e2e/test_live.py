"""hec run --live: the line is where the command's output is not, and its output is what it is without."""
import fcntl
import os
import re
import subprocess
import sys
import termios
import tty

import pytest
from conftest import BINARY, HANGS_S, Hec, Screen

TITLE = re.compile(rb"\x1b\]2;([^\x1b\x07]*)\x1b\\")
PUSH, POP = b"\x1b[22;2t", b"\x1b[23;2t"
LINE = rb"hec: (- W|[\d.]+ [mk]?W)  (- J|[\d.]+ [mk]?J)(  .*)?  \d+ s"

# progress as it is drawn: one line again and again, several lines with the cursor, colours, text without a line's end
BARS = """
import sys, time
for i in range(40):
    sys.stderr.write(f"\\r{i:3}%|" + "\\u2588" * (i // 5) + "|")
    sys.stderr.flush()
    sys.stdout.write(f"\\x1b[1A\\x1b[2K\\x1b[32mstep {i}\\x1b[0m\\n")
    sys.stdout.flush()
    time.sleep(0.03)
print("no end", end="")
"""


def raw_screen():
    screen = Screen()
    tty.setraw(screen.fd)
    return screen


def run(hec, *arguments, term="xterm-256color", command=(sys.executable, "-c", BARS), redirect="", options=("--sim", "h200")):
    """(status, what was written to the command's terminal)"""
    screen = raw_screen()

    def own():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    line = [hec.path, "run", "-q", "-f", "-o", "r.hec", *options, *arguments, "--", *command]
    if redirect:
        line = ["sh", "-c", f'exec "$@" {redirect}', "sh", *line]
    done = subprocess.Popen(line, stdin=screen.fd, stdout=screen.fd, stderr=screen.fd, cwd=hec.folder, preexec_fn=own,
                            env={**os.environ, "TERM": term, "LC_ALL": "C.UTF-8"})
    status = done.wait(HANGS_S)
    return status, screen.end()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What the command writes by itself."""
    return run(Hec(BINARY, tmp_path_factory.mktemp("plain")))[1]


def test_on_its_own_terminal_the_line_is_the_title(hec, plain):
    status, live = run(hec, "--live")
    titles = TITLE.findall(live)
    assert status == 0 and titles and all(re.fullmatch(LINE, title) for title in titles), live
    assert live.count(PUSH) == live.count(POP) == 1 and live.index(PUSH) < live.index(b"\x1b]2;") < live.index(POP)
    assert TITLE.sub(b"", live).replace(PUSH, b"").replace(POP, b"") == plain


def test_a_file_or_another_terminal_takes_the_line(hec, plain):
    other = raw_screen()
    for where in ("live.txt", other.name):
        assert run(hec, f"--live={where}") == (0, plain)
    for line in (hec.folder / "live.txt").read_bytes().splitlines():
        assert re.fullmatch(LINE, line)
    shown = other.end()
    assert re.fullmatch(rb"(\r\x1b\[K" + LINE + rb")+\r\x1b\[K", shown), shown


def test_what_the_command_writes_elsewhere_leaves_the_terminal_to_the_line(hec):
    status, shown = run(hec, "--live", redirect="> log 2>&1")
    assert status == 0 and re.fullmatch(rb"(\r\x1b\[K" + LINE + rb")+\r\x1b\[K", shown), shown
    assert b"hec:" not in (hec.folder / "log").read_bytes() and b"no end" in (hec.folder / "log").read_bytes()


def test_where_there_is_no_place_for_it_the_command_runs_all_the_same(hec):
    status, shown = run(hec, "--live", term="vt100", command=("sh", "-c", "echo out; exit 3"))
    assert status == 3 and shown.endswith(b"out\n") and b"--live=FILE" in shown and b"\x1b" not in shown
    done = hec("run", "-q", "--live", "--", "sh", "-c", "echo out; exit 3", start_new_session=True)
    assert (done.returncode, done.stdout) == (3, "out\n") and "--live=FILE" in done.stderr
    done = hec("run", "-q", "--live=no/such/folder", "--", "echo", "out")  # what was named has to be there
    assert done.returncode != 0 and done.stdout == "" and "no/such/folder" in done.stderr


def test_units_and_hostile_names(hec):
    """The simulated program marks its steps; names that hold control sequences never reach a terminal."""
    script = ("import hec, time\n"
              "for i in range(120):\n"
              "    hec.units('a\\x1b]0;owned\\x07\\n', 5)\n"
              "    time.sleep(0.02)\n")
    status, shown = run(hec, "--live", "--live=live.txt", command=(sys.executable, "-c", script), options=("--sim", "h200"))
    text = (hec.folder / "live.txt").read_text()
    assert status == 0 and b"owned" not in shown and "\x1b" not in text and "\x07" not in text
    rates = re.findall(r"  ([\d.]+) a\?]0;owned\?\?/s", text)
    assert rates and float(rates[-1]) > 0, text
    hec("run", "-q", "-f", "-o", "r.hec", "--live=sim.txt", "--sim", "h200", "--", hec.path, "sim", "--marks", "--seconds", "3.5",
        "healthy-train")
    last = (hec.folder / "sim.txt").read_text().splitlines()[-1]
    assert re.search(r"^hec: \d+ W  [\d.]+ kJ  [\d.]+ (?:k )?unit/s  [\d.]+ m?J/unit(?:  \w+)?  \d+ s$", last), last
    report = hec.report("r.hec")
    assert report["devices"][0]["energy"]["joules"] > 1000 * float(re.search(r"([\d.]+) kJ", last)[1]) > 0
