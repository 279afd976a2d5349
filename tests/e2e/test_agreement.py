"""What is said twice is said alike: the terminal, the JSON and what the rules judged, of recorded runs of a real GPU and of
imported traces."""
import re
import shutil

import pytest

from conftest import GOLDEN, ROOT

RUNS = sorted(GOLDEN.glob("*.hec")) + sorted((ROOT / "tests" / "data" / "kineto").glob("*.json.gz"))
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "min": 60, "h": 3600}


def both(hec, path):
    """The report as JSON, and as text with lines that were broken joined."""
    run = hec.folder / "t.hec"
    if path.suffix == ".hec":
        shutil.copy(path, run)
    else:
        assert hec("import", "-q", "-o", run, path).returncode == 0
    done = hec.ok("report", "-v", "--color=never", run)
    return hec.report(run), re.sub(r"\n {11,}(?=\S)", " ", done.stdout)


def seconds(number, unit):
    return float(number) * UNITS[unit]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.split(".")[0])
def test_terminal_json_and_rules_agree(hec, path):
    report, text = both(hec, path)
    findings = report["findings"]
    of_findings = text.partition("\nFindings")[2].split("\nScale out?")[0]
    shown = [float(number) for number in re.findall(r"\(confidence ([\d.]+)\)", of_findings)]
    assert shown == [pytest.approx(finding["confidence"], abs=0.006) for finding in findings]

    # worth acting on: what the headline offers is what a rule called so
    found = text.split("\n  found ", 1)[1].split("\n", 1)[0]
    first = findings[0] if findings else {"actionable": False, "cause": None}
    assert ("\n  saves " in text.split("\nRun ")[0]) == ("fixing it would save" in (report["headline"] or "")) == first["actionable"], found
    assert [finding["actionable"] for finding in findings] == sorted((f["actionable"] for f in findings), reverse=True)
    assert ("healthy" in found) == (first["cause"] == "none"), found
    assert (report["scale_out"]["verdict"] == "scale_out") == ("\nScale out?   yes" in text)

    # states
    tables = text.split("\nLedger")[1:]
    ledgers = [device["ledger"] for device in report["devices"] if device["ledger"]]
    for table, ledger in zip(tables, ledgers, strict=False):
        rows = re.findall(r"^  (\w+) +[█·▏▎▍▌▋▊▉#.-]{8,} +([\d.]+) (h|min|s|ms|us) ", table, re.M)
        assert rows, table
        by_state = {row["state"]: row["seconds"] for row in ledger}
        for state, number, unit in rows:
            assert by_state[state] == pytest.approx(seconds(number, unit), rel=0.01), state

    # steps
    line = re.search(r"^Steps +(\d+) [^:\n]*: median ([\d.]+) (s|ms|us)", text, re.M)
    assert bool(line) == bool(report["steps"] and report["steps"]["count"]), text
    if line:
        assert int(line[1]) == report["steps"]["count"]
        assert report["steps"]["median_ms"] / 1e3 == pytest.approx(seconds(line[2], line[3]), rel=0.01)
        used = [device for device in report["devices"] if device["used"] and device["ledger"]]
        for device in used:  # set-up and loop are told apart exactly where there are steps enough
            steps = device["steps"]
            few = not steps or steps["count"] < 6 or steps["source"] == "periodic"  # no word of the program's
            assert few == any("not separated" in caveat for caveat in report["caveats"])
