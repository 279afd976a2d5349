"""bench/gpu/public/search: what it makes of receipts, and how its results add up over calls, with a stub of hec."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

PUBLIC = pathlib.Path(__file__).resolve().parents[2] / "bench/gpu/public"
sys.path.insert(0, str(PUBLIC))

import catalogue  # noqa: E402
import reached  # noqa: E402

KINDS = {name: program.kind for name, program in catalogue.PROGRAMS.items()}


def receipt(kept=("compile",), ratio=(0.5, 0.52, 0.55), shown="better", quality="pass", tried=(("compile", "kept", 0.5),)):
    verdict = {"quality": {"verdict": quality},
               "quantities": [{"name": "joules_per_unit", "a": 2.0, "b": 1.04, "ratio": ratio and list(ratio), "shown": shown}]}
    rows = [{"levers": "", "outcome": "base", "trials": 2, "joules_per_unit": 2.0, "joules": None},
            *({"levers": levers, "outcome": outcome, "trials": 1, "joules_per_unit": None, "joules": cost and [cost, cost, cost]}
              for levers, outcome, cost in tried)]
    return {"verdict": verdict if kept else None, "commands": {"levers": list(kept)}, "unit": "sample", "plan": {"spent_seconds": 100.0},
            "tried": rows, "facts": [{"name": "device", "value": "a card"}, {"name": "driver", "value": "1.2"}]}


def searched(seconds, cut=False, interrupted=False, **of_receipt):
    return {"seconds": seconds, "cut": cut, "interrupted": interrupted, "room_s": 500, **reached.figures(receipt(**of_receipt))}


def test_what_is_shown_and_passes_is_saved():
    assert reached.figures(receipt())["saved"] == pytest.approx([0.45, 0.48, 0.5])
    assert reached.figures(receipt(shown="not_shown"))["saved"] == [0, 0, 0]
    assert reached.figures(receipt(quality="fail"))["saved"] == [0, 0, 0]
    assert reached.figures(receipt(ratio=None))["saved"] is None
    nothing = reached.figures(receipt(kept=()))
    assert nothing["saved"] == [0, 0, 0] and nothing["before"] == 2.0 and nothing["kept"] == [] and nothing["trials"] == 3


def test_thorough_is_the_best_of_both_in_the_time_of_both_and_one_proof():
    both = {"climb": searched(150), "reverse": searched(180, kept=("tf32",), ratio=(0.39, 0.4, 0.41))}
    found = reached.thorough(both)
    assert found["kept"] == ["tf32"] and found["seconds"] == pytest.approx(100 + 100 + 80) and not found["cut"]


def test_a_thorough_search_that_is_not_whole_says_so():
    assert reached.thorough({"climb": searched(150)})["cut"]
    assert reached.thorough({"climb": searched(150, cut=True), "reverse": searched(150)})["cut"]
    assert reached.thorough({"climb": searched(150, cut=True, interrupted=True)}) is None
    assert reached.thorough({"climb": {"failed": "status 1"}}) is None


def test_live_is_compared():
    both = {"climb": searched(500), "reverse": searched(500)}
    found = reached.compared({**both, "live": searched(100, ratio=(0.53, 0.54, 0.55))})
    assert found["saving"] == pytest.approx([0.45 / 0.5, 0.46 / 0.48, 0.47 / 0.45]) and found["met"]
    assert found["seconds"] == pytest.approx(100 / 600) and found["by_climb"] == pytest.approx(0.2)
    assert not reached.compared({**both, "live": searched(100, ratio=(0.5, 0.56, 0.6))})["met"], "too little"
    assert not reached.compared({**both, "live": searched(200)})["met"], "too long"
    assert reached.compared({**both, "live": searched(100, kept=())})["saving"][1] == 0
    nothing = {"climb": searched(500, kept=()), "reverse": searched(500, kept=())}
    assert reached.compared({**nothing, "live": searched(100, kept=())})["saving"] == [1, 1, 1]
    assert reached.compared(both) is None and reached.compared({"live": searched(100)}) is None


def test_the_reverse_climb_has_what_ran_anywhere():
    climb = searched(1, tried=(("tf32", "better", 0.9), ("tf32,compile", "failed", None), ("tf32,pin_memory", "nothing", None)))
    live = searched(1, tried=(("loader_workers=4", "no_gain", 1.0), ("tf32", "better", 0.9)))
    assert reached.names(climb, live) == ["tf32", "pin_memory", "loader_workers=4"]


def test_the_programs_are_eight_that_were_gathered():
    names = [name for name, program in catalogue.PROGRAMS.items() if program.group == "search"]
    assert len(names) == 8
    for name in names:
        source, _, folder = catalogue.PROGRAMS[name].folder.partition("/")
        assert source in catalogue.REPOSITORIES and len(catalogue.REPOSITORIES[source][1]) == 40
        assert not folder or any(folder == part or folder.startswith(part + "/") for part in catalogue.PARTS[source]), name


HEC = f"""#!{sys.executable}
import json, os, sys, time
asked = sys.argv[1:sys.argv.index("--")]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(asked) + "\\n")
receipt = {receipt(tried=(("tf32", "better", 0.9), ("tf32,compile", "kept", 0.5)))!r}
if "--restart" in asked and float(asked[asked.index("--budget-seconds") + 1]) < 500:
    print("             not all was tried: of the 400 s ...")
open(asked[asked.index("-o") + 1], "w").write(json.dumps(receipt))
"""


@pytest.fixture
def call(tmp_path):
    """A call of the bench: what hec was asked for in it, and its results."""
    sources, out, calls = tmp_path / "sources", tmp_path / "out", tmp_path / "calls"
    for folder in ("makemore", "examples/data/MNIST"):
        (sources / folder).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name, text in (("numpy.py", ""), ("PIL.py", "Image = None\n")):  # no data are made here
        (tmp_path / name).write_text(text)
    for name, text in (("hec", HEC), ("nvidia-smi", "#!/bin/sh\necho GPU 0\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(*arguments):
        calls.write_text("")
        env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls), "PYTHONPATH": str(tmp_path),
               "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        subprocess.run([sys.executable, str(PUBLIC / "search"), "--hec", tmp_path / "bin/hec", "--sources", sources, "--out", out, "--only",
                        "makemore_gru", *arguments], env=env, check=True)  # fmt: skip
        return [json.loads(line) for line in calls.read_text().splitlines()], json.loads((out / "search.json").read_text()), out

    return run


def test_searches_add_up_over_calls(call):
    asked, result, _ = call("--seconds", "420")
    assert len(asked) == 2 and "--restart" in asked[0], "live needs more than is left"
    assert asked[1][asked[1].index("--levers") + 1] == "compile,tf32"
    assert result["programs"]["makemore_gru"]["climb"]["cut"]
    asked, result, _ = call("--seconds", "450")
    assert [("--restart" in words) for words in asked] == [False], "a climb is not made again for 30 s more"
    assert "--budget-seconds" not in asked[0], "live is as it is by default"
    asked, result, out = call("--seconds", "580")
    assert [("--restart" in words) for words in asked] == [True, True], "cut by time, made again with more"
    assert not result["programs"]["makemore_gru"]["climb"]["cut"]
    assert call("--seconds", "2000")[0] == []
    page = (out / "search.md").read_text()
    assert "- device: a card" in page and "karpathy/makemore at 988aa59e4d8f" in page
    assert "| makemore_gru | RNN, a cell a character | 100 % (90 to 111) |" in page


def test_what_fails_is_said(call):
    _, result, out = call("--seconds", "600", "--searches", "live", "--live-budget", "100")
    assert result["programs"]["makemore_gru"]["live"]["asked"] == ["--budget-seconds", "100"]
    broken = {"programs": {"makemore_gru": {"live": {"failed": "status 1: no | device"}}}, "conditions": {}, "repositories": {}, "commands": []}
    assert "| makemore_gru | live | failed: status 1: no / device |" in reached.markdown(broken, KINDS)
