"""`hec run` beside all kinds of commands: it changes nothing about them, and says what they cost."""
import contextlib
import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time

import pytest

from agent_common import SANITIZED
from conftest import HANGS_S, rows


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", -signal.SIGTERM), ("kill -KILL $$", -signal.SIGKILL)])
def test_exit_status_is_the_commands(hec, script, status):
    assert hec("run", "-q", "--", "sh", "-c", script).returncode == status


@pytest.mark.parametrize("number", [number for number in signal.valid_signals()
                                    if number not in (signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
                                                      signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH) and (number < 32 or number in (34, 64))])
def test_death_by_any_signal_is_passed_on(hec, number):
    done = hec("run", "-q", "-f", "-o", "x.hec", "--trace", "off", "--hooks", "off", "--", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert done.returncode == -number, done.stderr


@pytest.mark.parametrize("command, goes_on", [("sh -c 'echo ready; exec sleep 30'", False), ("bash -c 'echo ready; sleep 30; true'", False),
                                              ("env sh -c 'echo ready; sleep 30 | cat'", False),
                                              ("python3 -c 'print(\"ready\", flush=True); import time; time.sleep(30)'", False),
                                              ("sh -c 'trap \"exit 3\" INT; echo ready; while :; do sleep 0.1; done'", True)])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_ctrl_c_ends_a_loop_of_a_shell(hec, command, goes_on, shell):
    """As without hec: where the command dies of it, the shell does, and goes on where the command ends by itself."""
    said = []
    for before in ("", f"{hec.path} run -q -f -o x.hec --trace off --hooks off -- "):
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(hec.folder)
            os.execvp(shell, [shell, "-c", f"for i in 1 2 3; do {before}{command}; echo next $?; break; done"])
        output = read_until(fd, b"ready")
        while pathlib.Path(f"/proc/{pid}/wchan").read_text() != "do_wait":  # before it waits for a command, a shell takes ^C for its own
            time.sleep(0.01)
        os.write(fd, b"\x03")
        with contextlib.suppress(OSError):  # nobody has the terminal any more
            while select.select([fd], [], [], 20)[0] and (part := os.read(fd, 4096)):
                output += part
        said.append((os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), b"next 3" in output, b"next" in output))
        os.close(fd)
    assert said[0] == said[1] and (shell == "sh" or said[0][1:] == (goes_on, goes_on)), said


def test_not_found_and_not_executable(hec):
    done = hec("run", "--", "no-such-command-here")
    assert done.returncode == 127 and "no-such-command-here" in done.stderr and "not found" in done.stderr
    (hec.folder / "plain").write_text("text")
    assert hec("run", "--", "./plain").returncode == 126
    assert not list(hec.folder.glob("*.hec")), "a command that did not run leaves no run file"
    assert hec("run", "-q", "-o", "old.hec", "--", "true").returncode == 0
    before = (hec.folder / "old.hec").read_bytes()
    assert hec("run", "-f", "-o", "old.hec", "--", "no-such-command-here").returncode == 127
    assert (hec.folder / "old.hec").read_bytes() == before, "and costs no earlier one, not even with -f"


def test_the_command_cannot_cut_the_simulated_machine_off(hec):
    """Which would be SIGBUS for hec, and for each program on the machine."""
    script = f'truncate -s 0 "$HEC_SIM_WORLD" 2>/dev/null; exec {hec.path} sim healthy-gemm --seconds 0.5'
    done = hec("run", "-q", "--sim", "h200", "-o", "r.hec", "--", "sh", "-c", script)
    assert done.returncode == 0, done
    (device,) = hec.report("r.hec")["devices"]
    assert device["used"]


def test_streams_are_untouched(hec):
    done = hec("run", "-q", "--", "sh", "-c", "cat; echo err >&2", input="through\n")
    assert done.stdout == "through\n" and done.stderr == "err\n"


def test_pipeline_and_shell(hec):
    done = hec("run", "-q", "--", "bash", "-c", "set -o pipefail; seq 1000 | sort -n | tail -1 | grep 1000")
    assert done.returncode == 0 and done.stdout == "1000\n"


def test_environment_and_descriptors_are_kept(hec):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    done = subprocess.run([hec.path, "run", "-q", "--", "sh", "-c", f"echo $MINE >/proc/self/fd/{write}; ls /proc/self/fd | wc -l"],
                          cwd=hec.folder, env={**os.environ, "MINE": "yes"}, pass_fds=[write], capture_output=True, text=True)
    plain = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], pass_fds=[write], capture_output=True, text=True)
    os.close(write)
    assert os.read(read, 10) == b"yes\n"
    os.close(read)
    assert done.stdout == plain.stdout, "hec leaks no descriptor into the command"


LOOK = """
import json, os, stat
hec, folder = os.getppid(), os.path.dirname(os.environ["HEC_SOCKET"])
links = [os.readlink(f"/proc/{hec}/fd/{fd}") for fd in os.listdir(f"/proc/{hec}/fd")]
network = {line.split()[9] for name in ("tcp", "tcp6", "udp", "udp6") for line in open(f"/proc/{hec}/net/{name}").readlines()[1:]}
print(json.dumps({
    "network": [link for link in links if link[:8] == "socket:[" and link[8:-1] in network],
    "sockets": len([link for link in links if link[:8] == "socket:["]),
    "folder": folder, "modes": [oct(os.stat(f"{folder}/{name}").st_mode & 0o777) for name in (".", *os.listdir(folder))]}))
"""


def test_what_others_get_of_a_run(hec):
    """Rings arrive in a folder of this user's own, which goes with the run; nothing listens on a network; no variable of the
    environment is recorded, and the umask holds for the run file."""
    done = hec("run", "-q", "-o", "r.hec", "--", sys.executable, "-c", LOOK, env={"MY_TOKEN": "a-secret-token"},
               preexec_fn=lambda: os.umask(0o077))
    seen = json.loads(done.stdout)
    assert seen["modes"] == ["0o700"] + 3 * ["0o600"] and not os.path.exists(seen["folder"])
    assert seen["sockets"] >= 2 and seen["network"] == []
    path = hec.folder / "r.hec"
    assert path.stat().st_mode & 0o777 == 0o600 and b"a-secret-token" not in path.read_bytes()


def test_signal_dispositions_are_kept(hec):
    """An ignored SIGCHLD, SIGPIPE or SIGHUP (nohup) is the command's own affair."""
    show = "grep -E '^Sig(Blk|Ign)' /proc/self/status"

    def masks(text):
        """Without signals 32 and 33: they are the C library's own, which takes them over when a thread is started."""
        return [int(line.split()[1], 16) & ~(3 << 31) for line in text.splitlines()]

    for prepare in ("", "trap '' HUP; ", "trap '' PIPE; "):
        plain = subprocess.run(["sh", "-c", prepare + show], capture_output=True, text=True).stdout
        done = subprocess.run(["sh", "-c", f"{prepare}exec {hec.path} run -q -- grep -E '^Sig(Blk|Ign)' /proc/self/status"],
                              cwd=hec.folder, capture_output=True, text=True).stdout
        assert len(masks(plain)) == 2 and masks(done) == masks(plain)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(hec, number):
    process = hec.popen("run", "-q", "--", "sh", "-c", f"trap 'echo got; exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.05; done",
                        stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "got\n"
    assert process.wait(HANGS_S) == 9


def on_a_terminal(hec, *arguments):
    """hec leads the session of a terminal of its own: its pid, and where the terminal is read and written."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(hec.folder)
        os.execv(hec.path, [hec.path, *arguments])
    return pid, fd


def read_until(fd, text):
    output = b""
    while text not in output:
        assert select.select([fd], [], [], 20)[0], output
        output += os.read(fd, 4096)
    return output


def test_terminal_is_the_commands_own(hec):
    """The command is in the foreground group of the terminal, reads from it, and gets one SIGINT for one Ctrl-C."""
    pid, fd = on_a_terminal(hec, "run", "-q", "--", "bash", "-c",
                            "test -t 0 && test -t 1 && echo tty; n=0; trap 'n=$((n+1)); echo int$n' INT; read line; echo line=$line; "
                            "for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; exit 3")
    output = read_until(fd, b"tty")
    os.write(fd, b"hello\n")
    output += read_until(fd, b"line=hello")
    os.write(fd, b"\x03")
    output += read_until(fd, b"int1")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    assert b"int2" not in output


@pytest.mark.parametrize("command,status", [("trap 'echo end > got; exit 9' HUP; echo ready; while :; do sleep 0.05; done", 9),
                                            ("trap '' HUP; echo ready; sleep 0.3; exit 5", 5),
                                            ("echo ready; exec sleep 60", -signal.SIGHUP)])
def test_hang_up_of_a_terminal(hec, command, status):
    """As under `script -c` and `ssh -t`, hec leads the session: the kernel tells the leader only, and the command is told."""
    pid, fd = on_a_terminal(hec, "run", "-q", "-o", "h.hec", "--", "sh", "-c", command)
    read_until(fd, b"ready")
    os.close(fd)
    end = time.monotonic() + HANGS_S
    ended = (0, 0)
    while ended[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
        ended = os.waitpid(pid, os.WNOHANG)
    if ended[0] == 0:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert ended[0] == pid, "hec and the command live on"
    assert os.waitstatus_to_exitcode(ended[1]) == status
    assert (hec.folder / "got").exists() == (status == 9)
    assert hec.report("h.hec")["run"]["exit_code"] == (128 - status if status < 0 else status)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
def test_job_control(hec, number):
    """A stopped command stops hec, by the same signal: a shell says of it what it says with `env` or `nice` in its place. Both go on together."""
    script = f"echo $$; kill -{number.name[3:]} $$; echo on; exit 4"
    for before in (["env"], [hec.path, "run", "-q", "--"]):
        process = subprocess.Popen([*before, "sh", "-c", script], cwd=hec.folder, stdout=subprocess.PIPE, text=True, preexec_fn=os.setpgrp)
        process.stdout.readline()
        status = os.waitpid(process.pid, os.WUNTRACED)[1]
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == number, (before, status)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "on\n"
        assert process.wait(HANGS_S) == 4


def test_stop_without_a_shell(hec):
    """A signal of a terminal stops nobody in a group that has no shell: neither the command nor hec, which go on."""
    for before in (["env"], [hec.path, "run", "-q", "--"]):
        done = subprocess.run([*before, "sh", "-c", "kill -TSTP $$; echo on; exit 4"], cwd=hec.folder, stdout=subprocess.PIPE, text=True,
                              start_new_session=True, timeout=HANGS_S)
        assert (done.returncode, done.stdout) == (4, "on\n"), before


def test_daemon_does_not_hold_the_command_up(hec):
    done = hec("run", "-o", "d.hec", "--", "sh", "-c", "setsid sleep 10000 >/dev/null 2>&1 & echo $!")
    daemon = int(done.stdout)
    try:
        os.kill(daemon, 0)  # it lives on
        assert "still running" in hec("report", "d.hec").stdout
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_wait_measures_daemons_too(hec):
    done = hec("run", "--wait", "-o", "w.hec", "--", "sh", "-c", "setsid sh -c 'sleep 1.2; echo late' &")
    assert "late" in done.stdout
    assert hec.report("w.hec")["run"]["seconds"] >= 1.2


def test_process_tree_like_torchrun(hec):
    """Ranks are grandchildren in sessions of their own; their CPU time is counted."""
    script = ("import subprocess,sys\n"
              "ps=[subprocess.Popen([sys.executable,'-c','import time\\nt=time.process_time()\\nwhile time.process_time()-t<0.6: pass'],"
              "start_new_session=True) for _ in range(2)]\n"
              "sys.exit(max(p.wait() for p in ps))")
    hec("run", "-q", "-o", "t.hec", "--", "python3", "-c", script)
    host = hec.report("t.hec")["host"]
    assert 1.2 <= host["tree_cpu_seconds"] < 4
    assert host["tree_processes"] >= 3


def test_default_name_follows_the_command(hec):
    (hec.folder / "train.py").write_text("pass")
    for expected in ("train.hec", "train-2.hec"):
        hec("run", "-q", "--", "python3", "train.py")
        assert (hec.folder / expected).exists()


@pytest.mark.parametrize("command, file", [
    ("a b;rm x", "a_b_rm_x.hec"), ("-rf", "_rf.hec"), (".hidden", "_hidden.hec"), ("=cmd", "_cmd.hec"), ("~root", "_root.hec"),
    ("$(id)`id`", "__id__id_.hec"), ("a\nb\033[31m", "a_b__31m.hec"), ("\u202egnp.x", "_gnp.hec"), ("*?[a]", "___a_.hec"), ("\udcff\udcfe", "__.hec"),
    ("x" * 200, "x" * 63 + ".hec"), ("%s%n", "_s_n.hec"), ("\u6e2c\u8a66", "\u6e2c\u8a66.hec")])
def test_a_name_that_somebody_chose_is_only_a_name(hec, command, file):
    """What a program is called is neither an option, a hidden file nor a command of a shell that lists its run file."""
    os.makedirs(hec.folder / "bin")
    (hec.folder / "bin" / command).symlink_to("/bin/true")
    assert hec("run", "-q", "--trace", "off", "--hooks", "off", "--", f"bin/{command}").returncode == 0
    assert [path.name for path in hec.folder.glob("*.hec")] == [file]


def test_output_exists_is_not_overwritten(hec):
    (hec.folder / "x.hec").write_text("precious")
    done = hec("run", "-o", "x.hec", "--", "touch", "ran")
    assert done.returncode != 0 and "x.hec" in done.stderr
    assert (hec.folder / "x.hec").read_text() == "precious" and not (hec.folder / "ran").exists()
    assert hec("run", "-q", "-f", "-o", "x.hec", "--", "true").returncode == 2, "-f is for run files"
    for _ in range(2):
        assert hec("run", "-q", "-f", "-o", "y.hec", "--", "true").returncode == 0
    assert hec("run", "-q", "-o", "y.hec", "--", "true").returncode == 2


def test_unwritable_output_is_told_before_the_command_runs(hec):
    done = hec("run", "-o", "no/such/folder/x.hec", "--", "touch", "ran")
    assert done.returncode not in (0, 127) and "no/such/folder/x.hec" in done.stderr
    assert not (hec.folder / "ran").exists()


def test_no_gpu_is_said_plainly(hec):
    done = hec("run", "-o", "n.hec", "--", "sleep", "0.3")
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    assert "unavailable" in done.stderr and "libnvidia-ml" in done.stderr
    report = hec.report("n.hec")
    assert report["devices"] == [] and report["run"]["seconds"] >= 0.3 and report["totals"]["joules"] is None


def test_brief_report_is_short_and_on_stderr(hec):
    done = hec("run", "--sim", "h200", "-o", "s.hec", "--", hec.path, "sim", "healthy-gemm", "--seconds", "2")
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 15
    assert "  more       hec report s.hec; hec explain none\n" in done.stderr
    assert re.search(r"\d J|kJ", done.stderr)


def test_units(hec):
    hec("run", "-q", "--units", "100", "--units", "token=5e3", "-o", "u.hec", "--", "sleep", "0.5")
    report = hec.report("u.hec")
    assert report["units"]["name"] == "unit" and report["units"]["count"] == 100
    assert 100 < report["units"]["per_second"] <= 200
    assert {u["name"]: u["count"] for u in report["units_all"]}["token"] == 5000
    assert hec.report("u.hec", "--units", "50")["units"]["count"] == 50
    assert hec("run", "--units", "none", "--", "true").returncode == 2


def test_knobs(hec):
    done = hec("run", "-q", "-o", "k.hec", "--knob", "batch=64", "--knob", "path=a;b\\c", "--", "sh", "-c", "printf %s \"$HEC_KNOBS\"")
    assert done.stdout == "batch=64;path=a\\;b\\\\c"
    assert hec("run", "--knob", "batch", "--", "true").returncode == 2


def test_run_file_is_plain_sqlite(hec):
    hec("run", "-q", "--sim", "h200", "-o", "q.hec", "--", hec.path, "sim", "healthy-gemm", "--seconds", "2")
    path = hec.folder / "q.hec"
    assert rows(path, "SELECT count(*) FROM sample WHERE metric = 'gpu_power'")[0][0] > 50
    assert dict(rows(path, "SELECT key, value FROM meta"))["complete"] == "1"
    assert sorted(p.name for p in hec.folder.glob("q.hec*")) == ["q.hec"]


@pytest.mark.parametrize("arguments", [["run"], ["run", "--nope", "--", "true"], ["run", "-o"], ["nope"], ["report"],
                                       ["run", "--gpm-window", "50", "--", "true"], ["run", "--sim", "tpu", "--", "true"],
                                       ["run", "--price", "free", "--", "true"]])
def test_wrong_usage_is_one_sentence_and_status_2(hec, arguments):
    done = hec(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("hec: ")


@pytest.mark.parametrize("verb", ["run", "report", "devices", "doctor", "gather", "sim"])
def test_help_of_every_verb(hec, verb):
    done = hec(verb, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"Usage: hec {verb}") and not done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("limit, amount, words", [*(("NOFILE", count, "ulimit -n") for count in (4, 10, 31)), ("STACK", 96 << 10, "ulimit -s"),
                                                  *(pytest.param("STACK", kib << 10, "ulimit -s", marks=pytest.mark.skipif(SANITIZED, reason="larger frames"))
                                                    for kib in (24, 48, 64, 80)), ("DATA", 2 << 20, "memory"),
                                                  pytest.param("AS", 25 << 20, "", marks=pytest.mark.skipif(SANITIZED, reason="shadow memory"))])
def test_too_little_to_observe_with(hec, limit, amount, words):
    """The command runs all the same, as without hec, which says so."""
    done = hec("run", "-o", "few.hec", "--", "sh", "-c", "echo ran; exit 3",
               preexec_fn=lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (amount, amount)))
    assert (done.returncode, done.stdout) == (3, "ran\n") and words in done.stderr and "runs as without HEC" in done.stderr
    assert not (hec.folder / "few.hec").exists()


@pytest.mark.parametrize("limit, amount", [("NOFILE", 20), ("STACK", 100 << 10), ("FSIZE", 0), ("FSIZE", 1000 << 10)])
@pytest.mark.parametrize("options", [("-v", "-o", "few.hec"), ("--sim", "h200", "-o", "few.hec"), ("-v", "--agent=/nonexistent")], ids=" ".join)
@pytest.mark.parametrize("reader", ["nobody", "full"])
def test_what_hec_says_cannot_be_written(hec, limit, amount, options, reader):
    """Into a pipe without a reader, or a file that may not grow: the command runs, and finds signals as they were."""
    if "--sim" in options and (limit, amount) == ("FSIZE", 0):
        pytest.skip("no simulated machine without files")
    if reader == "nobody":
        read, written = os.pipe()
        os.close(read)
    else:
        (hec.folder / "said").write_bytes(bytes(2 << 20))
        written = os.open(hec.folder / "said", os.O_WRONLY | os.O_APPEND)

    def before():
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (amount, amount))

    process = hec.popen("run", *options, "--", "sh", "-c", "grep SigIgn /proc/self/status; exit 7",
                        stdout=subprocess.PIPE, stderr=written, preexec_fn=before)
    os.close(written)
    out, _ = process.communicate(timeout=HANGS_S)
    ignored = int(out.split()[1], 16)
    assert process.returncode == 7 and not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1), out


def test_a_verb_whose_output_finds_no_room_says_so(hec):
    """A file that may not grow, or a stream that is closed: one sentence and 74, and no signal."""
    hec.ok("run", "-q", "--sim", "h200", "-o", "x.hec", "--", hec.path, "sim", "healthy-train", "--seconds", 1)
    ways = ((("gather", "-o", "c.hec", "x.hec"), None), (("report", "--json", "x.hec"), hec.folder / "said"))
    for words, path in ways:
        with open(path or os.devnull, "wb") as file:
            done = hec.popen(*words, stdout=file, stderr=subprocess.PIPE,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
            _, said = done.communicate(timeout=HANGS_S)
        assert done.returncode == 74 and said.count("\n") == 1 and "File too large" in said, said
    done = hec.popen("ab", "--in-place", "--warm-up", "0", "-n", "2", "-o", "r.json", "--trace", "off", "--hooks", "off", "--", "true", ":::", "true",
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    _, said = done.communicate(timeout=HANGS_S)
    assert done.returncode == 74 and "cannot write r.json: File too large" in said, said  # after its commands have ended too
    done = hec("report", "x.hec", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, 128 << 10)))
    assert (done.returncode, done.stderr) == (71, "hec: only 128 KiB may be on the stack (ulimit -s), and hec takes 512\n"), done
    done = hec.popen("report", "x.hec", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    _, said = done.communicate(timeout=HANGS_S)
    assert (done.returncode, said) == (74, "hec: standard output cannot be written: Bad file descriptor\n")


LIMITS = [*(("NOFILE", count) for count in (5, 6, 7, 8, 9, 12, 16, 20, 24, 28, 40, 64)), *(("FSIZE", size) for size in (0, 1, 4095, 8 << 10, 64 << 10)),
          *(("STACK", kib << 10) for kib in (100, 128, 256, 512)), *(("SIGPENDING", count) for count in (0, 1)), ("MEMLOCK", 0), ("CORE", 0), ("NPROC", 1),
          ("RTPRIO", 0), ("NICE", 0), ("MSGQUEUE", 0), ("CPU", 5),
          *(pytest.param("AS", mib << 20, marks=pytest.mark.skipif(SANITIZED, reason="shadow memory")) for mib in (26, 32, 48, 64, 100, 150, 250)),
          *(("DATA", mib << 20) for mib in (3, 5, 8, 12, 20, 40))]


@pytest.mark.parametrize("simulated", [(), ("--sim", "h200")], ids=["", "sim"])
@pytest.mark.parametrize("limit, amount", LIMITS)
def test_under_any_limit_the_command_runs(hec, limit, amount, simulated):
    """Observed or not: with its own status, output and limits."""
    done = hec("run", "-q", *simulated, "-o", "few.hec", "--", "sh", "-c", "echo ran; exit 3",
               preexec_fn=lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (amount, amount)))
    assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr


@pytest.mark.parametrize("limit, amount", [("FSIZE", 0), ("FSIZE", 1), ("FSIZE", 8 << 10), ("NOFILE", 10), ("NOFILE", 4), ("STACK", 96 << 10)])
def test_too_little_for_a_simulated_machine(hec, limit, amount):
    """A limit is no fault of what was asked for: --sim is given up with the rest. (Where hec may lift the limit, it observes.)"""
    done = hec("run", "-q", "--sim", "h200", "-o", "few.hec", "--", "sh", "-c", "echo ran; exit 3",
               preexec_fn=lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (amount, amount)))
    assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr
    assert f"ulimit -{'f' if limit == 'FSIZE' else 'n' if limit == 'NOFILE' else 's'}" in done.stderr or "kept in memory" in done.stderr
