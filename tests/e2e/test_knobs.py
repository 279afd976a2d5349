"""Knobs with a range on the simulated GPU: what a run says of them, and `hec try` that looks for their best value."""
import json
import re

import jsonschema
import pytest

from conftest import PROGRAMS, schema
from test_ab import layers_work

PROGRAM = PROGRAMS / "cuda_program"
# Steps of some 20 ms, whose samples are the knob's value: joules a sample are least at 256. It does not end by itself.
WORK = ("batch=1", "ns=20000000", "kernels=100000")


@pytest.fixture
def place(hec):
    return [] if layers_work(hec) else ["--in-place"]


@pytest.fixture
def tried(hec, place):
    def run(*words, options=(), **more):
        """What it said, and its receipt."""
        done = hec("try", "--sim", "h200", *place, "--seed", 1, "-f", "-o", "receipt.json", "--budget-seconds", 200, *options, "--", PROGRAM, *WORK, *words, **more)
        assert done.returncode == 0, done.stderr + done.stdout
        return done, json.loads((hec.folder / "receipt.json").read_text())

    return run


def outcomes(receipt):
    return {row["levers"]: row["outcome"] for row in receipt["tried"]}


def words_of(text):
    return " ".join(text.split())


def test_a_run_has_the_range_and_what_was_not_taken(hec):
    def run(name, *options):
        done = hec.ok("run", "--sim", "h200", "-o", name, *options, "--", PROGRAM, "batch=1", "ns=1000000", "kernels=50", "knob=64", "least=32", "most=512")
        return done.stderr, hec.report(name)

    row = {"name": "batch", "value": "64", "changed": False, "fallback": 64, "least": 32, "most": 512, "whole": True}
    text, report = run("a.hec")
    assert report["knobs"] == [row] and "knobs      batch=64 (32 to 512)" in text
    jsonschema.validate(report, schema("report"))
    text, report = run("b.hec", "-k", "batch=1024")
    said = "batch: 1024 was set, outside of 32 to 512: the program keeps its own, 64"
    assert report["knobs"] == [row] and words_of(text).count(said) == 1 and words_of(hec.ok("report", "b.hec").stdout).count(said) == 1
    assert [event["text"] for event in report["events"] if event["kind"] == "knob_refused"] == [said]
    text, report = run("c.hec", "--with", "knob.batch=128")
    assert report["knobs"][0]["value"] == "128" and "knob.batch=128: on (the program's own is 64)" in words_of(text)
    assert report["levers"] == [{"name": "knob.batch", "value": "128", "attest": "on", "text": "the program's own is 64"}]
    lever = run("d.hec", "-f", "--with", "knob.batch=9999")[1]["levers"][0]
    assert (lever["attest"], lever["text"]) == ("nothing", said.split(": ", 1)[1].replace("1024", "9999"))
    lever = run("d.hec", "-f", "--with", "knob.depth=2")[1]["levers"][0]
    assert (lever["attest"], lever["text"]) == ("nothing", "the program reads no knob of this name")
    for words, sentence in (("knob.batch", "NAME=VALUE"), ("knob.batch=1,knob.batch=2", "knob.batch is there twice")):
        done = hec("run", "--with", words, "--", "touch", "ran")
        assert done.returncode == 2 and sentence in done.stderr


def test_try_finds_the_best_value(hec, tried, place):
    done, receipt = tried("knob=64", "least=32", "most=1024")
    assert "hec: knob batch=128 (was 64): 0." in done.stderr, done.stderr
    assert receipt["commands"]["levers"] == ["knob.batch=256"], done.stdout
    found = outcomes(receipt)
    assert found["knob.batch=128"] == "better" and found["knob.batch=256"] == "kept" and found["knob.batch=512"] == "no_gain"
    assert "knob.batch=1024" not in found
    # (1 + 1) / 256 of what (1 + 1/16) / 64 is
    unit = next(row for row in receipt["verdict"]["quantities"] if row["name"] == "joules_per_unit")
    assert unit["ratio"][1] == pytest.approx(2 / 256 / (17 / 16 / 64), rel=0.1)
    assert "knob batch=256 (was 64)" in done.stdout and 'hec.knob("batch", 256)' in done.stdout
    assert hec("verify", hec.folder / "receipt.json").returncode == 0
    replay = hec("verify", "--replay", "--yes", hec.folder / "receipt.json", *place)
    assert replay.returncode == 0 and "the same verdict" in replay.stdout, replay.stderr
    # what it prints to keep it runs as printed
    line = re.search(r"hec run (--sim h200 --with \S+ --) COMMAND", words_of(done.stdout))
    assert line, done.stdout
    hec.ok("run", "-q", "-o", "kept.hec", *line.group(1).split(), PROGRAM, "batch=1", "ns=1000000", "kernels=50", "knob=64", "least=32", "most=1024")
    kept = hec.report("kept.hec")
    assert kept["knobs"][0]["value"] == "256" and kept["levers"][0]["attest"] == "on"


def test_try_within_a_range_that_is_given(tried):
    """A program that reads a knob says no range: the command line does; and one that does is cut to what is asked for."""
    done, receipt = tried("knob=64")
    assert "knob" not in words_of(done.stdout), "without a range it is not tried"
    done, receipt = tried("knob=64", options=("-k", "batch=32..128", "--levers", ""))
    assert receipt["commands"]["levers"] == ["knob.batch=128"] and list(outcomes(receipt)) == ["", "knob.batch=128", "knob.batch=32"]
    done, receipt = tried("knob=64", "least=32", "most=1024", options=("--levers", "keep_heap"))
    assert "knob" not in words_of(done.stdout), "levers are named, and it is not among them"
    done, receipt = tried("knob=64", "least=32", "most=128", options=("--levers", "keep_heap,knob.batch"))
    assert "knob.batch=128" in outcomes(receipt) and "keep_heap" in outcomes(receipt)


def test_try_keeps_nothing_where_no_value_helps(tried):
    done, receipt = tried("knob=256", "least=64", "most=1024", options=("--levers", "knob.batch"))
    assert outcomes(receipt) == {"": "base", "knob.batch=512": "slower", "knob.batch=128": "slower"}
    assert receipt["commands"]["levers"] == [] and "Kept nothing" in words_of(done.stdout)


def test_a_value_that_breaks_the_losses_is_out(tried):
    done, receipt = tried("knob=64", "least=32", "most=512", "loss=1", "breaks=256", options=("--levers", "knob.batch"))
    assert outcomes(receipt)["knob.batch=256"] == "failed" and receipt["commands"]["levers"] == ["knob.batch=128"]
    assert "knob batch=256 (was 64): out: a loss is not finite" in done.stderr
    assert "knob.batch=512" not in outcomes(receipt), "nothing is looked for beyond it"


def test_try_refuses_what_cannot_be_compared(hec, place):
    def say(*options, program=(PROGRAM, *WORK, "knob=64", "least=32", "most=512"), status=69):
        done = hec("try", "--sim", "h200", *place, *options, "--", *program)
        assert done.returncode == status, done.stderr
        return done.stderr.splitlines()[-1]

    assert say("-k", "batch=64", status=2).startswith('hec: try: --knob: "batch=64" is no NAME=LEAST..MOST')
    assert "there twice" in say("-k", "batch=1..8", "-k", "batch=1..9", status=2)
    assert say("-k", "depth=1..8") == 'hec: try: the command read no knob "depth"'
    assert "compared by a unit of work" in say("-k", "batch=32..128", "-u", "1000")
