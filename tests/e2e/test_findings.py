"""The first finding of every simulated case is the cause that was planted in it (sim/cases.def)."""
import concurrent.futures

import pytest

from conftest import BINARY, Hec, Play, cases

CASES = cases()
SECONDS = 8


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    hec = Hec(BINARY, tmp_path_factory.mktemp("findings"))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return dict(zip(CASES, pool.map(lambda name: Play(hec, name, "--seed", 3, "--marks", seconds=SECONDS, trace="full").report, CASES)))


@pytest.mark.parametrize("name", CASES)
def test_the_first_finding_is_what_was_planted(reports, name):
    findings = reports[name]["findings"]
    assert findings, name
    assert findings[0]["cause"] == CASES[name]["planted"], [(f["cause"], f["confidence"], f["predicted"]) for f in findings]


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_in_order(reports, name):
    for finding in reports[name]["findings"]:
        for key in ("seconds_fraction", "joules_fraction"):
            if finding["predicted"][key] is None:  # nothing to predict
                continue
            low, best, high = finding["predicted"][key]
            assert -1 <= low <= best <= high <= 1, finding


@pytest.mark.parametrize("name", CASES)
def test_the_listed_truth_is_complete(name):
    truth = CASES[name]["truth"]
    for what in ("seconds", "joules"):
        assert sum(state[what] for state in truth["states"].values()) == pytest.approx(truth[what], rel=1e-6)
