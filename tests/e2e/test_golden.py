"""Recorded runs of a real GPU: `hec report --json` of tests/golden/NAME.hec is tests/golden/NAME.json.

HEC_GOLDEN_UPDATE=1 writes the expectations anew instead (tests/golden/README.md)."""
import json
import os
import re
import shutil
import sqlite3

import pytest

from conftest import GOLDEN

NAMES = sorted(path.stem for path in GOLDEN.glob("*.hec"))
RELATIVE = 1e-9  # the report prints ten digits
PRIVATE = re.compile(rb"/(?:home|root|tmp|mnt|srv|Users|opt|var)/|GPU-(?!0{8}-0{4}-0{4}-0{4}-0{9}[0-9]{3})[0-9a-f]{8}-")


def differences(found, expected, at="report"):
    """One line for each place where two JSON values differ; floats to RELATIVE, all else exactly."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            if key not in found or key not in expected:
                yield f"{at}.{key}: only in the {'expectation' if key in expected else 'report'}"
            else:
                yield from differences(found[key], expected[key], f"{at}.{key}")
    elif isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            yield f"{at}: {len(found)} elements, expected {len(expected)}"
        for i, (one, other) in enumerate(zip(found, expected)):
            yield from differences(one, other, f"{at}[{i}]")
    elif isinstance(found, float) and isinstance(expected, float):
        if found != pytest.approx(expected, rel=RELATIVE, abs=0):
            yield f"{at}: {found!r}, expected {expected!r}"
    elif type(found) is not type(expected) or found != expected:
        yield f"{at}: {found!r}, expected {expected!r}"


def report_of(hec, name):
    """The report of a copy, so that nothing is written beside the original; without what depends on the copy."""
    report = hec.report(shutil.copy(GOLDEN / f"{name}.hec", hec.folder))
    del report["run"]["file"], report["self"]["file_bytes"]
    return report


def format_of(path):
    return int.from_bytes(path.read_bytes()[60:64], "big")


@pytest.fixture(autouse=True)
def default_prices(monkeypatch):
    for name in ("HEC_PRICE", "HEC_CARBON", "HEC_GPU_HOUR"):
        monkeypatch.delenv(name, raising=False)


def test_runs_and_expectations_are_there():
    assert {"resnet18", "copies", "small_kernels", "ddp", "cuda_fft", "jax_mnist"} <= set(NAMES)
    expected = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem not in ("import", "whatif"))  # test_import_golden.py's, and below
    assert NAMES == expected or os.environ.get("HEC_GOLDEN_UPDATE") == "1"


@pytest.mark.parametrize("name", NAMES)
def test_report_is_as_expected(hec, name):
    report, path = report_of(hec, name), GOLDEN / f"{name}.json"
    if os.environ.get("HEC_GOLDEN_UPDATE") == "1":
        path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        pytest.skip(f"{path.name} written anew")
    assert not list(differences(report, json.loads(path.read_text(encoding="utf-8"))))


SCREEN = ["note", "found", "saves", "do", "then", "loop", "outside", "prove", "more", "trust"]


@pytest.mark.parametrize("name", NAMES)
def test_first_screen(hec, name):
    """At most 15 lines, and the same rows in the same order, on a terminal, in Markdown and on a page (web/test has its browser)."""
    run = shutil.copy(GOLDEN / f"{name}.hec", hec.folder / f"{name}.hec")
    rows = hec.report(run)["screen"]
    names = [row["row"] for row in rows]
    assert names == [each for each in SCREEN if each in names] and {"found", "outside", "more"} <= set(names)
    assert 1 + len(rows) + sum(row["code"].count("\n") for row in rows if row["code"]) <= 15
    text = hec("report", "--color=never", f"{name}.hec", env={"COLUMNS": "80", "LC_ALL": "C.UTF-8"}).stdout
    lines = text.split("\n\n")[0].splitlines()
    assert len(lines) <= 15 and lines[0].startswith("hec  ")
    assert re.findall(r"^  (\w+) ", "\n".join(lines), re.M) == names
    screen = hec("report", "--md", f"{name}.hec").stdout.split("\n| | |\n")[0]
    assert len(screen.splitlines()) <= 15 and re.findall(r"^- \*\*(\w+)\*\*: ", screen, re.M) == names


def test_reports_are_short(hec):
    """These are the long ones, of real programs (over a hundred recordings the median is less); all of it is for -v and the page."""
    lines = []
    for name in NAMES:
        run = shutil.copy(GOLDEN / f"{name}.hec", hec.folder / f"{name}.hec")
        lines.append(len(hec("report", f"{name}.hec", env={"COLUMNS": "80"}).stdout.splitlines()))
        assert len(hec("report", "-v", f"{name}.hec").stdout.splitlines()) > lines[-1]
    assert sorted(lines)[len(lines) // 2] <= 60 and max(lines) <= 72, lines


REPLAYED = ("copy_roundtrip", "cuda_fft", "ddp", "none_train")  # with kernels in their steady part


def test_replays_are_as_expected(hec):
    """Every edit of each, and the two of a pair together."""
    path, found = GOLDEN / "whatif.json", {}
    for name in REPLAYED:
        run = shutil.copy(GOLDEN / f"{name}.hec", hec.folder)
        found[name] = json.loads(hec("whatif", "--json", run).stdout)
        together = json.loads(hec("whatif", "--json", "-e", "waits", "-e", "graphs", run).stdout)
        found[name]["answers"] += together["answers"]
        assert found[name]["trusted"]
        assert found[name]["unchanged"]["seconds"] == pytest.approx(found[name]["recorded_seconds"], rel=1e-3)
        assert [edit["name"] for edit in together["answers"][0]["edits"]] == ["waits", "graphs"]
    if os.environ.get("HEC_GOLDEN_UPDATE") == "1":
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        pytest.skip(f"{path.name} written anew")
    assert not list(differences(found, json.loads(path.read_text(encoding="utf-8"))))


def test_what_cannot_be_replayed(hec):
    run = shutil.copy(GOLDEN / "resnet18.hec", hec.folder)
    none = hec("whatif", run)
    assert none.returncode != 0 and "--trace=full" in none.stderr and not none.stdout
    assert none.returncode == 69
    for wrong, word in (("nothing", "--list"), ("grahps", 'did you mean "graphs"?'), ("compute", "0 to 100"), ("data=x", "0 to 100"), ("comm=1", "no number")):
        refused = hec("whatif", "-e", wrong, run)
        assert refused.returncode == 2 and word in refused.stderr
    assert hec("whatif", "-e", "data=0.5", "-e", "data=0.2", run).returncode == 2
    assert hec("whatif", "--list").stdout.count("(") >= 12
    edits = {edit["name"]: edit for edit in json.loads(hec("whatif", "--list", "--json").stdout)["edits"]}
    assert edits["data"]["default"] == 0 and edits["comm"]["number"] is None and edits["compute"]["default"] is None


def test_an_edit_that_takes_more_has_no_interval(hec):
    """Proofs are of savings."""
    run = shutil.copy(GOLDEN / "ddp.hec", hec.folder)
    answer, = json.loads(hec("whatif", "--json", "-e", "data=3", run).stdout)["answers"]
    assert answer["saves_seconds"] < -0.05 and answer["saves_seconds_interval"] is None
    line, = [line for line in hec("whatif", "-e", "data=3", run).stdout.splitlines() if line.endswith("data=3")]
    assert "(" not in line and "+" in line


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")
FACTORS = (1, 1e2, 1e3, 1e6, 1e-6, 1e-9)  # percent, ms, us, MB, GB


def is_in(value, text):
    """Whether the text has the number, in some unit and to the digits that it shows."""
    for shown in NUMBER.findall(text):
        step = 10.0 ** -len(shown.partition(".")[2]) if "e" not in shown else 0
        if any(abs(float(shown) - value * factor) <= 0.51 * step + 0.006 * abs(value * factor) for factor in FACTORS):
            return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_terminal_and_json_say_the_same(hec, name):
    """Titles, evidence and levers of the terminal are the JSON's, and their words have the JSON's numbers."""
    report = report_of(hec, name)
    words = " ".join(hec("report", "-v", hec.folder / f"{name}.hec", env={"COLUMNS": "300"}).stdout.split())
    assert report["findings"] or report["headline"].startswith("no cause stands out: busy")
    for place, finding in enumerate(report["findings"]):
        if finding["cause"] == "none" and place:
            continue  # busy, yet something is worth fixing
        for text in [finding["title"], finding["lever"], *(fact["text"] for fact in finding["evidence"])]:
            assert " ".join(text.split()) in words
        for fact in finding["evidence"]:
            assert fact["value"] is None or is_in(fact["value"], fact["text"]), fact
        assert finding["actionable"] == (finding["cause"] != "none" and finding["confidence"] >= 0.3 and max(
            (saving[1] for saving in (finding["predicted"]["seconds_fraction"], finding["predicted"]["joules_fraction"]) if saving),
            default=0) >= 0.05)


def test_an_older_format_is_read_and_copied(hec):
    """resnet18.hec was recorded when a device had no vendor. A copy is of the present format, and is reported alike."""
    expected = report_of(hec, "resnet18")
    assert format_of(GOLDEN / "resnet18.hec") == 1
    assert [device["vendor"] for device in expected["devices"]] == ["nvidia"] * len(expected["devices"])
    assert hec("gather", "-o", "copy.hec", hec.folder / "resnet18.hec").returncode == 0
    assert format_of(hec.folder / "copy.hec") > 1
    report = hec.report("copy.hec")
    del report["run"]["file"], report["self"]["file_bytes"]
    assert not list(differences(report, expected))


@pytest.mark.parametrize("verb", [["report"], ["export", "--csv", "-o", "-"], ["gather"]])
def test_a_newer_format_is_named(hec, verb):
    file = bytearray((GOLDEN / "resnet18.hec").read_bytes())
    file[60:64] = (99).to_bytes(4, "big")
    (hec.folder / "newer.hec").write_bytes(file)
    done = hec(*verb, "newer.hec")
    assert done.returncode == 65 and done.stdout == "" and "newer.hec was written by a newer HEC (format 99" in done.stderr
    assert [path.name for path in hec.folder.iterdir()] == ["newer.hec"]


def test_the_example_is_a_report(hec):
    """docs/example-report.txt is the report of a golden run, and README.md begins with it."""
    shutil.copy(GOLDEN / "data_decode.hec", hec.folder)
    done = hec("report", "--color", "never", "data_decode.hec", env={"COLUMNS": "80", "LC_ALL": "C.UTF-8"})
    example = GOLDEN.parents[1] / "docs" / "example-report.txt"
    if os.environ.get("HEC_GOLDEN_UPDATE") == "1":
        example.write_text(done.stdout, encoding="utf-8")
        pytest.skip("example-report.txt written anew; README.md is by hand")
    assert done.stdout == example.read_text(encoding="utf-8")
    readme = (GOLDEN.parents[1] / "README.md").read_text(encoding="utf-8")
    shown = readme[readme.index("```text\n") + len("```text\n"):readme.index("```\n\n<!-- output:end")]
    assert done.stdout.startswith(shown)


def test_a_number_is_found_in_words():
    assert is_in(0.416, "42 % of the run") and is_in(0.0123456, "12.35 ms a step of 80 ms") and is_in(98765.0, "9.876e+04 a step")
    assert not is_in(0.43, "42 % of the run") and not is_in(0.0128, "12.35 ms a step of 80 ms") and not is_in(2.0, "no number")


def test_a_difference_is_seen():
    expected = {"a": [1.0, {"b": None}], "c": 2}
    assert not list(differences({"a": [1.0 + 1e-12, {"b": None}], "c": 2}, expected))
    for other in ({"a": [1.0 + 1e-8, {"b": None}], "c": 2}, {"a": [1.0, {"b": 0}], "c": 2}, {"a": [1.0], "c": 2},
                  {"a": [1.0, {"b": None}]}, {"a": [1.0, {"b": None}], "c": 2, "d": 0}, {"a": [1.0, {"b": None}], "c": True}):
        assert len(list(differences(other, expected))) == 1, other


@pytest.mark.parametrize("name", NAMES)
def test_nothing_names_the_machine(name, tmp_path):
    assert not PRIVATE.search((GOLDEN / f"{name}.hec").read_bytes())
    path = shutil.copy(GOLDEN / f"{name}.hec", tmp_path)
    database = sqlite3.connect(path)
    facts = dict(database.execute("SELECT key, value FROM meta"))
    database.close()
    assert facts["hostname"] == "host" and "folder" not in facts and " /" not in f" {facts['command']}"
    assert facts["gathered_by"].startswith("hec ")


@pytest.mark.parametrize("name", ["launch_decode", "ddp"])
def test_peak_memory_and_what_is_left(hec, name):
    report = report_of(hec, name)
    used = [device for device in report["devices"] if device["used"]]
    for device in used:
        assert device["memory_peak_bytes"] == device["metrics"]["gpu_mem_used"]["max"] > 0
        assert device["memory_left_bytes"] == pytest.approx(device["memory_bytes"] - device["memory_peak_bytes"])
    assert len(re.findall(r"^    memory +\S+ .B in use at the peak, \S+ .B left$", hec("report", "-v", f"{name}.hec").stdout, re.M)) == len(used)
