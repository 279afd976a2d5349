"""Programs of the generator of bench/gpu/drawn on the simulated GPU, judged by its judge. The seeds are always the same ones, so that a test
fails because of a change and not by chance; `make drawn` draws fresh ones, and a failure prints them.

The truth is what the simulator says that the same program takes without its inefficiencies, and nothing for what is not in it. What is
asserted holds of every program, or fails less than once in ten thousand times while HEC is no worse than the figures below."""
import concurrent.futures
import json
import math
import os
import random
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench" / "gpu" / "drawn"))
import grammar
import judge
import write_sim

PROGRAMS, AT_ONCE = 16, 4
FRESH = int(os.environ.get("HEC_DRAWN_PROGRAMS", 0))
SECONDS = 4
NOTHING_MOST = 0.15  # of the joules, that a fix of what is not there may be said to save; of 320 programs 0.08 at most
# How often each may go wrong. Of 320 programs 6 %, 5 % and 4 % did.
FIRST_WRONG, DUE_MISSED, CLAIMS_FALSE = 0.12, 0.12, 0.12
CHANCE = 1e-4 / 3


def draw(source, count):
    """Specs that the simulated device can show."""
    specs = []
    while len(specs) < count:
        spec = write_sim.simulated(grammar.draw(source.getrandbits(40)))
        specs += [spec] if spec else []
    return specs


def played(hec, spec, name, without, trace):
    """(truth of the play, run file)"""
    text, steps = write_sim.step(spec, without)
    path = hec.folder / f"{spec['seed']}-{name}.hec"
    done = hec.ok("run", "--sim", "h200", f"--trace={trace}", "-q", "-f", "-o", path, "--", hec.path, "sim", text, "--seconds", SECONDS, "--json",
                  "--marks", "--seed", spec["seed"] % 1000 + 1)
    truth = json.loads(done.stdout)
    startup = truth["activities"]["wait_startup"]
    units = truth["units"] * steps
    return {"seconds": (truth["seconds"] - startup["seconds"]) / units, "joules": (truth["joules"] - startup["joules"]) / units}, units, path


def result(hec, spec):
    """As a run on a GPU gives it."""
    arms = {name: played(hec, spec, name, without, "off") for name, without in grammar.fixes(spec).items() if name != "base"}
    truth, units, path = played(hec, spec, "base", frozenset(), random.Random(spec["style"]).choice(("auto", "full")))
    report = hec.report(path)
    planted = {cause for name in spec["faults"] for cause in grammar.FAULTS[name].causes}
    nothing = {f"probe-{cause}": [truth] for cause in write_sim.CAUSES - planted}  # there is nothing of it in the program
    made = {"seed": spec["seed"], "spec": spec, "truth": {"base": [truth]} | {name: [arm[0]] for name, arm in arms.items()} | nothing,
            "findings": report["findings"], "headline": report["headline"], "printed": {"units": units}, "joules": report["totals"]["joules"]}
    return made | {"judged": judge.verdict(made)}


def at_least(count, of, share):
    """The chance of so many or more, where each happens with this chance."""
    return sum(math.comb(of, i) * share**i * (1 - share)**(of - i) for i in range(count, of + 1))


def assert_no_more_than(share, bad):
    assert at_least(sum(bad), len(bad), share) >= CHANCE, bad


def test_programs_drawn_at_random(hec):
    specs = draw(random.SystemRandom(), FRESH) if FRESH else draw(random.Random(1), PROGRAMS)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda spec: result(hec, spec), specs))
    print(judge.table(results))
    for made in results:
        actionable = {finding["cause"] for finding in made["findings"] if finding["actionable"]}
        for row in made["judged"]["claims"]:
            nothing = row["cause"] in actionable and row.get("by") == "probe"
            assert not nothing or row["best"] < NOTHING_MOST, (made["seed"], row, made["headline"])
            assert 0 <= row["low"] <= row["best"] <= row["high"] <= 1, (made["seed"], row)
        if not made["spec"]["faults"]:
            assert judge.first_of(made) is None or made["judged"]["first_right"], (made["seed"], made["headline"])
    judged = [made["judged"] for made in results]
    assert_no_more_than(FIRST_WRONG, [not verdict["first_right"] for verdict in judged])
    assert_no_more_than(DUE_MISSED, [not named for verdict in judged for named in verdict["due"].values()])
    assert_no_more_than(CLAIMS_FALSE, [row["false"] for verdict in judged for row in verdict["claims"]
                                       if "false" in row and row["best"] >= judge.CLAIMED])


def test_the_bounds_can_fail():
    assert_no_more_than(0.12, [True] * 6 + [False] * 10)
    assert_no_more_than(0.12, [])
    with pytest.raises(AssertionError):
        assert_no_more_than(0.12, [True] * 11 + [False] * 5)
