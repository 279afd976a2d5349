"""A program that dies with CUPTI attached is remembered, and the default mode then stays without CUPTI, until it is forgotten."""
import json
import os
import re
import signal

import pytest

from conftest import PROGRAMS, rows

PROGRAM = PROGRAMS / "cuda_program"
# a sanitizer would turn the signal into an exit status of its own
AS_IT_IS = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0"}
ENTRY = {"driver": "simulated", "cuda": 13000, "cupti": 130001, "mode": 2, "signal": 11, "program": "python3.11",
         "date": "2026-11-22T10:00:00+00:00", "library": "", "bytes": -1, "mtime_s": -1}


@pytest.fixture
def memory(tmp_path):
    return tmp_path / "state" / "guard.json"


def remembered(memory):
    return json.loads(memory.read_text())["deaths"] if memory.exists() else []


def write(memory, *entries):
    memory.parent.mkdir(exist_ok=True)
    memory.write_text(json.dumps({"schema": "hec.guard/1", "deaths": [{**ENTRY, **entry} for entry in entries]}))


def run(hec, *program, arguments=("--trace=full",), sim="h200", env=None):
    return hec("run", "-q", "-f", "-o", "t.hec", "--sim", sim, *arguments, "--", *program, env={**AS_IT_IS, **(env or {})})


def told(hec):
    return [text for text, in rows(hec.folder / "t.hec", "select text from event where kind = 'trace_guard'")]


def no_cupti(hec, *arguments, env=None):
    """What the command gets to see, and what is said meanwhile."""
    done = hec("run", "-q", "-f", "-o", "e.hec", *arguments, "--", "env", env=env)
    found = re.findall(r"^HEC_TRACE_NO_CUPTI=(.*)$", done.stdout, re.M)
    assert done.returncode == 0 and len(found) <= 1
    return found[0] if found else None, done.stderr


def doctor(hec, *arguments):
    return [row for row in json.loads(hec.ok("doctor", "--json", *arguments).stdout)["checks"] if row["name"] == "guard"]


def test_a_crash_is_remembered_until_forgotten(hec, memory):
    assert no_cupti(hec, "--sim", "h200") == (None, "") and doctor(hec, "--sim", "h200")[0]["status"] == "ok"
    assert run(hec, PROGRAM, "kernels=50", "die=11").returncode == -signal.SIGSEGV
    entry, = remembered(memory)
    assert (entry["driver"], entry["cupti"], entry["signal"], entry["program"]) == ("simulated", 130001, 11, "cuda_program")
    text, = told(hec)
    assert text.startswith("the command died by signal 11 with CUPTI attached to cuda_program: remembered, ")

    sentence, said = no_cupti(hec, "--sim", "h200")
    assert re.fullmatch(r"CUPTI stays out: cuda_program died by signal 11 with CUPTI 13\.0 attached on \d{4}-\d\d-\d\d "
                        r"\(simulated driver\); `hec doctor --forget` lets it in again", sentence) and said == ""
    for mode in "full", "graph":
        sentence, said = no_cupti(hec, "--sim", "h200", "--trace", mode)
        assert sentence is None and said.count("\n") == 1 and "cuda_program died by signal 11" in said
    assert no_cupti(hec, "--sim", "h200", "--trace=off") == (None, "")

    row, = doctor(hec, "--sim", "h200")
    assert row["status"] == "limited" and "cuda_program died by signal 11" in row["finding"] and "--forget" in row["remedy"]
    row, = doctor(hec, "--sim", "h200", "--forget")
    assert row["status"] == "ok" and "forgotten" in row["finding"]
    assert remembered(memory) == [] and no_cupti(hec, "--sim", "h200") == (None, "")


def test_the_next_run_says_it(hec, memory):
    write(memory, {})
    assert run(hec, PROGRAM, "kernels=50", arguments=()).returncode == 0
    text, = told(hec)
    assert text.startswith("CUPTI stays out: python3.11 died by signal 11")
    report = re.sub(r"\s+", " ", hec("report", "-v", "t.hec").stdout)
    assert report.count(text) == 1
    run(hec, "true", arguments=())
    assert told(hec) == []  # no process used CUDA: it is no matter


def test_a_shell_passes_on_how_its_child_ended(hec, memory):
    done = run(hec, "sh", "-c", f"{PROGRAM} seconds=1 batch=4 die=6; exit $?")  # long enough to be asked for its name
    assert done.returncode == 128 + signal.SIGABRT
    entry, = remembered(memory)
    assert (entry["program"], entry["signal"]) == ("cuda_program", 6)
    assert told(hec)[0].startswith("the command ended with the status of signal 6 with CUPTI attached to cuda_program")


@pytest.mark.parametrize("program, arguments, sim", [
    ((PROGRAM, "kernels=50"), ["--trace=full"], "h200"),
    ((PROGRAM, "kernels=50", "die=15"), ["--trace=full"], "h200"),
    ((PROGRAM, "kernels=50", "die=9"), ["--trace=full"], "h200"),
    ((PROGRAM, "kernels=50", "die=11"), ["--trace=off"], "h200"),
    ((PROGRAM, "kernels=50", "die=11"), ["--trace=full"], "h200,cupti=none"),
    ((PROGRAM, "kernels=50", "die=11"), [], "h200"),  # auto attaches no sooner than after half a second
    (("sh", "-c", "kill -SEGV $$"), ["--trace=full"], "h200"),
])
def test_what_cupti_has_no_part_in_is_not_remembered(hec, memory, program, arguments, sim):
    run(hec, *program, arguments=arguments, sim=sim)
    assert remembered(memory) == [] and told(hec) == []


def test_real_and_simulated_gpus_are_apart(hec, memory):
    write(memory, {"driver": ""})  # the driver's version could not be read: counts as this one
    assert no_cupti(hec, "--sim", "h200")[0] is None
    assert no_cupti(hec)[0].startswith("CUPTI stays out: python3.11")
    doctor(hec, "--sim", "h200", "--forget")
    assert len(remembered(memory)) == 1
    doctor(hec, "--forget")
    assert remembered(memory) == []


def test_an_outer_run_does_not_decide(hec):
    assert no_cupti(hec, "--trace=full", env={"HEC_TRACE_NO_CUPTI": "the outer one's"})[0] == ""


@pytest.mark.parametrize("content", [b"", b"\xff\x00{", b"[]", b'{"schema": "hec.guard/1", "deaths": [7]}',
                                     b'{"schema": "hec.guard/1", "deaths": [' + b"{}," * 65 + b"{}]}", b" " * 300000],
                         ids=["empty", "no JSON", "no object", "no entry", "too many", "too long"])
def test_a_damaged_memory_disturbs_no_run(hec, memory, content):
    memory.parent.mkdir()
    memory.write_bytes(content)
    assert no_cupti(hec, "--sim", "h200") == (None, "")
    assert doctor(hec, "--sim", "h200")[0]["status"] == "limited"
    run(hec, PROGRAM, "kernels=50", "die=11")
    assert len(remembered(memory)) == 1
    memory.write_bytes(content)
    assert doctor(hec, "--sim", "h200", "--forget")[0]["status"] == "ok" and not memory.exists()


def test_a_pipe_in_its_place_holds_nobody_up(hec, memory):
    memory.parent.mkdir()
    os.mkfifo(memory)
    assert no_cupti(hec, "--sim", "h200") == (None, "") and doctor(hec, "--sim", "h200")[0]["status"] == "limited"


def test_a_memory_of_a_newer_hec_is_kept(hec, memory):
    memory.parent.mkdir()
    memory.write_text('{"schema": "hec.guard/2"}')
    run(hec, PROGRAM, "kernels=50", "die=11")
    assert memory.read_text() == '{"schema": "hec.guard/2"}' and "not remembered" in told(hec)[0]


def test_hostile_texts_are_cleaned(hec, memory):
    write(memory, {"program": "a\x1b[31m\nb" * 50, "date": "\x07" * 60})
    sentence, _ = no_cupti(hec, "--sim", "h200")
    assert sentence.startswith("CUPTI stays out: a?[31m?b") and sentence.isprintable() and len(sentence) < 256


def test_a_link_is_replaced_and_not_followed(hec, memory, tmp_path):
    memory.parent.mkdir()
    (tmp_path / "precious").write_text("mine")
    memory.symlink_to(tmp_path / "precious")
    run(hec, PROGRAM, "kernels=50", "die=11")
    assert (tmp_path / "precious").read_text() == "mine" and not memory.is_symlink() and len(remembered(memory)) == 1


def test_no_place_for_a_memory(hec):
    done = run(hec, PROGRAM, "kernels=50", "die=11", env={"HEC_STATE_DIR": "/dev/null/nowhere"})
    assert done.returncode == -signal.SIGSEGV and done.stderr == "" and "not remembered: cannot write /dev/null/nowhere" in told(hec)[0]
    done = run(hec, PROGRAM, "kernels=50", "die=11", env={"HEC_STATE_DIR": "", "XDG_STATE_HOME": "", "HOME": ""})
    assert done.returncode == -signal.SIGSEGV and "not remembered: " in told(hec)[0]


def test_the_state_folder_of_the_specification(hec, tmp_path):
    run(hec, PROGRAM, "kernels=50", "die=11", env={"HEC_STATE_DIR": "", "XDG_STATE_HOME": str(tmp_path / "xdg")})
    assert (tmp_path / "xdg/hec/guard.json").exists() and (tmp_path / "xdg").stat().st_mode & 0o777 == 0o700
