"""hec top in a real terminal (tmux), and what it prints where there is none."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import jsonschema
import pytest
from agent_common import SANITIZED, Machine
from conftest import BINARY, HANGS_S, Hec, schema

SCHEMA = schema("top")
INTERVAL = ("--interval", "0.2")
EVIL = "\x1b]2;owned\x07\x1b[2J\x9b31m\ntrain"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Two devices, and a process on the second whose name is hostile."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("machine"))
    with contextlib.ExitStack() as stack:
        made = Machine(hec, "h200x2")
        stack.callback(made.close)
        program = subprocess.Popen([EVIL, "sim", "healthy-train", "--seconds", "300", "--device", "1"], executable=BINARY,
                                   env=made.env, stdout=subprocess.DEVNULL)
        stack.callback(program.wait)
        stack.callback(program.kill)
        made.program = program
        idle, busy = devices(made)
        while not busy["power_w"] > 3 * idle["power_w"]:
            idle, busy = devices(made)
        yield made


def devices(machine):
    done = machine.hec("top", "--json", "--once", *INTERVAL, env=machine.env)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)["devices"]


class Terminal:
    """A shell in a terminal of tmux, with a server of its own."""

    def __init__(self, folder, rows, columns, env):
        assert shutil.which("tmux"), "the tests need tmux (scripts/bootstrap test)"
        self.socket = str(folder / "tmux")
        self.env, self.turn = {**env, "PS1": "$ ", "HISTFILE": "/dev/null"}, 0
        self.env.pop("TMUX", None)
        self("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "bash", "--norc", "--noprofile")
        self("set", "-g", "remain-on-exit", "on")
        self.until(lambda shown: "$" in shown)

    def __call__(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *map(str, arguments)], env=self.env, check=True, timeout=HANGS_S,
                              capture_output=True).stdout.decode()

    def shown(self, *how):
        return self("capture-pane", "-p", *how)

    def keys(self, *keys):
        self("send-keys", *keys)

    def line(self, text):
        self.keys("-l", text)
        self.keys("Enter")

    def is_(self, what):
        return self("display-message", "-p", f"#{{{what}}}").strip()

    def until(self, what):
        end = time.monotonic() + HANGS_S
        while not what(shown := self.shown()):
            assert time.monotonic() < end, shown
            time.sleep(0.02)
        return shown

    def top(self, hec, *arguments, before=""):
        self.turn += 1  # what an earlier one left may stand on the screen still
        self.line(f"stty -g > before; {before} {hec.path} top {' '.join((*INTERVAL, *arguments))}; status=$?; stty -g > after; "
                  f"echo left $status {self.turn}")
        return self.until(lambda shown: "m?train" in shown)

    def leave(self):
        """Where the rest of its line is given up."""
        self.turn += 1
        self.line(f"stty -g > after; echo left 0 {self.turn}")

    def left(self, folder):
        """The terminal is as it was before."""
        left = re.compile(rf"^left (\d+) {self.turn}(?!\d)", re.M)
        shown = self.until(left.search)
        assert (self.is_("alternate_on"), self.is_("cursor_flag")) == ("0", "1")
        assert (folder / "before").read_text() == (folder / "after").read_text()
        return int(left.search(shown)[1])

    def program(self):
        pane, = self("list-panes", "-F", "#{pane_pid}").split()
        return int(subprocess.run(["pgrep", "-P", pane, "-x", "hec"], capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def terminal(tmp_path, machine):
    with contextlib.ExitStack() as stack:
        def make(rows=24, columns=80, **env):
            made = Terminal(tmp_path, rows, columns, {**machine.env, "LC_ALL": "C.UTF-8", **env})
            stack.callback(lambda: subprocess.run(["tmux", "-S", made.socket, "kill-server"], check=False, capture_output=True))
            made("send-keys", "-l", f"cd {tmp_path}")
            made.keys("Enter")
            return made
        yield make


def test_lines_for_programs(hec, machine):
    done = hec("top", "--json", "--once", *INTERVAL, env=machine.env)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    top = json.loads(done.stdout)
    jsonschema.validate(top, SCHEMA)
    idle, busy = top["devices"]
    assert (idle["gpu"], busy["gpu"], busy["name"], busy["up"]) == (0, 1, "NVIDIA H200", True)
    assert busy["power_w"] > 3 * idle["power_w"] > 0 and busy["power_limit_w"] == 700
    assert busy["verdict"] is None  # too few readings: not known, and no guess
    process, = top["processes"]
    assert (process["pid"], process["gpu"]) == (machine.program.pid, 1)
    assert process["command"] == "?]2;owned??[2J?31m?train sim healthy-train --seconds 300 --device 1"
    assert 0 <= process["joules_error"] <= process["joules"]
    for device in top["devices"]:
        own = sum(row["joules"] for row in top["processes"] if row["gpu"] == device["gpu"])
        assert own + device["joules_no_process"] + device["joules_ended"] == pytest.approx(device["joules"], abs=1e-5)
    assert idle["joules_no_process"] == pytest.approx(idle["joules"])


def test_a_line_an_interval(hec, machine):
    top = hec.popen("top", "--json", *INTERVAL, "--filter", "nothing has this", env=machine.env, stdout=subprocess.PIPE)
    lines, end = [], time.monotonic() + HANGS_S
    while len(lines) < 5 or lines[-1]["devices"][1]["verdict"] != "healthy":  # on a busy machine an interval may have too few readings
        assert time.monotonic() < end, lines[-1]
        lines.append(json.loads(top.stdout.readline()))
    top.send_signal(signal.SIGTERM)
    assert top.wait(HANGS_S) == 0
    for before, after in zip(lines, lines[1:]):
        jsonschema.validate(after, SCHEMA)
        assert after["elapsed_s"] > before["elapsed_s"] and after["processes"] == []
        assert after["devices"][1]["joules"] >= before["devices"][1]["joules"]


def test_who_wastes(hec, machine):
    """By program instead of by process, in 80 columns and as JSON, with a verdict that is likely and no more."""
    worked, end = 0, time.monotonic() + HANGS_S
    while worked <= 0.9:  # on a busy machine the program may not have come to launch
        done = hec("top", "--waste", "--json", "--once", *INTERVAL, env=machine.env)
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
        top = json.loads(done.stdout)
        jsonschema.validate(top, SCHEMA)
        assert top["processes"] == [] and len(top["teams"]) == 1
        (row,) = top["waste"]
        worked = row["worked_share"]
        assert time.monotonic() < end, row
    assert "sim healthy-train" in row["command"] and row["team"] == row["user"] and row["cause"] == "none" and 0 < row["confidence"] < 0.8
    assert row["wasted_joules"] < row["joules"] / 5 and row["advice"] is None
    shown = ""
    while not re.search(r"likely healthy .* - .* sim healt", shown):
        assert time.monotonic() < end, shown
        done = hec("top", "--waste", "-1", *INTERVAL, env={**machine.env, "COLUMNS": "80"})
        shown = done.stdout
        assert done.returncode == 0 and max(map(len, shown.splitlines())) <= 80
        assert re.search(r"^ +WASTED USED% NOW +MORE GPUS\? TEAM +USER +JOB +POD OR COMMAND", shown, re.M) and "By team" in shown


def test_the_schema_is_printed(hec):
    told = json.loads(hec("top", "--schema").stdout)
    assert told.pop("$id") and told == SCHEMA


def test_a_snapshot(hec, machine):
    done = hec("top", "-1", *INTERVAL, env={**machine.env, "COLUMNS": "100", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^GPU NAME +POWER", done.stdout, re.M) and "H200" in done.stdout
    assert re.search(rf"^ *{machine.program.pid} ", done.stdout, re.M)
    assert all(0x20 <= ord(character) < 0x7f or character == "\n" for character in done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_machine_without_a_gpu(hec, tmp_path):
    done = hec("top", "--once", *INTERVAL)
    if "0 GPUs" in done.stdout:
        assert "no GPU: " in done.stdout and done.returncode == 0


def test_where_there_is_no_terminal(hec, machine, terminal):
    done = hec("top", env=machine.env, stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and done.stdout == "" and "--once" in done.stderr
    assert "--sort" in hec("top", "--sort", "beauty", env=machine.env).stderr
    dumb = terminal()
    dumb.line(f"TERM=dumb {hec.path} top")
    dumb.until(lambda shown: "--once" in shown)


@pytest.mark.parametrize("rows, columns", [(24, 80), (60, 200), (12, 40)])
def test_sizes(hec, terminal, machine, tmp_path, rows, columns):
    shown_at = terminal(rows, columns)
    shown_at.line(f"{hec.path} top " + " ".join(INTERVAL))
    # a terminal shows a frame in parts: the last of them is there too
    shown = shown_at.until(lambda shown: re.search(r"healthy$|healthy ", shown, re.M) and str(machine.program.pid) in shown)
    lines = shown.split("\n")
    assert lines[0].startswith("hec top ") and lines[1].startswith("GPU ") and lines[rows - 1].startswith("h help")
    assert re.search(r"/700", shown)
    assert ("POWER SO FAR" in lines[1]) == (columns == 200)
    assert ("not shown:" in shown) == (columns == 40)
    # what a process is called does nothing to the terminal
    assert "owned" not in shown_at.is_("pane_title")
    if columns > 40:
        assert "?]2;owned" in shown
    shown_at.keys("q")
    shown_at.until(lambda shown: "hec top " not in shown.split("\n")[0])


def test_keys_and_resizing(hec, terminal, tmp_path):
    here = terminal(24, 120)
    here.top(hec)
    here.keys("h")
    here.until(lambda shown: "any key leaves it" in shown)
    here.keys("x")
    here.until(lambda shown: "any key leaves it" not in shown)
    for key, mark in (("J", "▾JOULES"), ("M", " ▾MEMORY"), ("R", " ▴MEMORY"), ("N", "▾PID"), ("P", "▾W"), (">", "▾JOULES"),
                      ("Left", "▾W")):
        here.keys(key)
        here.until(lambda shown: mark in shown)
    here.keys("d")
    here.until(lambda shown: "COMMAND" not in shown)
    here.keys("d")
    here.until(lambda shown: "COMMAND" in shown)
    here.keys("/")
    here.keys("-l", "no such")
    here.until(lambda shown: "filter: no such_" in shown and "no process passes the filter" in shown)
    here.keys("Escape")
    here.until(lambda shown: "m?train" in shown and "filter" not in shown.splitlines()[-1].replace("/ filter", ""))
    here.keys("Space")
    paused = here.until(lambda shown: "PAUSED" in shown)
    time.sleep(0.5)
    assert here.shown() == paused
    here.keys("Space")
    here.until(lambda shown: "PAUSED" not in shown)
    here("resize-window", "-x", 60, "-y", 15)
    here.until(lambda shown: shown.count("\n") == 15 and re.match(r"h help.*not shown", shown.split("\n")[14]))
    here("resize-window", "-x", 200, "-y", 30)
    here.until(lambda shown: "POWER SO FAR" in shown.split("\n")[1])
    here.keys("q")
    assert here.left(tmp_path) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_put_the_terminal_back(hec, terminal, tmp_path, number):
    here = terminal()
    here.top(hec)
    assert here.is_("alternate_on") == "1"
    if number == signal.SIGINT:
        here.keys("C-c")
        here.until(lambda shown: "hec top " not in shown.splitlines()[0])
        here.leave()  # bash gives the rest of its line up, mostly
    else:
        os.kill(here.program(), number)
    here.left(tmp_path)


def test_stopped_and_continued(hec, terminal, tmp_path):
    here = terminal()
    here.top(hec)
    here.keys("C-z")
    here.until(lambda shown: "Stopped" in shown)
    assert (here.is_("alternate_on"), here.is_("cursor_flag")) == ("0", "1")
    here.line("stty -g > stopped; fg")
    here.until(lambda shown: shown.startswith("hec top ") and "m?train" in shown)
    assert here.is_("alternate_on") == "1"
    here.keys("q")
    here.until(lambda shown: "hec top " not in shown.splitlines()[0])
    here.leave()
    here.left(tmp_path)
    assert (tmp_path / "stopped").read_text() == (tmp_path / "before").read_text()


def test_plain_terminals(hec, terminal, tmp_path):
    coloured = re.compile(r"\x1b\[(?:\d+;)*3[0-7]m")
    here = terminal()
    here.top(hec)
    assert coloured.search(here.shown("-e")) and "█" in here.shown()
    here.keys("q")
    here.left(tmp_path)
    for before in ("NO_COLOR=1", "TERM=vt100", "LC_ALL=C"):
        here.line("clear")
        here.until(lambda shown: "left" not in shown)
        shown = here.top(hec, before=before)
        assert bool(coloured.search(here.shown("-e"))) == (before == "LC_ALL=C"), before
        if before == "LC_ALL=C":
            assert shown.isascii() and "=" in shown
        here.keys("q")
        here.left(tmp_path)


def test_a_lost_device_stays(hec):
    with contextlib.ExitStack() as stack:
        machine = Machine(hec, "h200x2,lost@2")
        stack.callback(machine.close)
        top = hec.popen("top", "--json", *INTERVAL, env=machine.env, stdout=subprocess.PIPE)
        stack.callback(top.wait)
        stack.callback(top.terminate)
        up = [True]
        while all(up):
            line = json.loads(top.stdout.readline())
            jsonschema.validate(line, SCHEMA)
            up = [device["up"] for device in line["devices"]]
        assert len(up) == 2
        lost = line["devices"][up.index(False)]
        assert lost["power_w"] is None and lost["sm_active"] is None and lost["joules"] > 0
        assert "LOST" in hec("top", "--once", *INTERVAL, env={**machine.env, "COLUMNS": "80"}).stdout


@pytest.mark.skipif(SANITIZED, reason="libraries of the sanitizers")
def test_only_top_pays_for_the_screen(hec):
    libraries = subprocess.run(["ldd", hec.path], capture_output=True, text=True, check=True).stdout
    assert "curses" not in libraries and "nghttp2" not in libraries
