"""`hec explain`: every cause that a report may name is explained, for people and as JSON."""
import json
import re
import shutil

import pytest

from conftest import BINARY, GOLDEN, Hec, schema

CAUSES = schema("report")["$defs"]["finding"]["properties"]["cause"]["enum"]


def test_all_causes_in_a_line_each(hec):
    done = hec("explain")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:len(CAUSES)]] == CAUSES
    assert max(map(len, lines)) <= 80


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    done = Hec(BINARY, tmp_path_factory.mktemp("explained"))("explain", "--json")
    assert done.returncode == 0 and done.stderr == ""
    return json.loads(done.stdout)


def test_json_has_every_cause(explained):
    assert explained["schema"] == "hec.causes/1"
    assert [cause["cause"] for cause in explained["causes"]] == CAUSES


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_says_all_that_it_must(hec, explained, name):
    (cause,) = [c for c in explained["causes"] if c["cause"] == name]
    for key in ("title", "meaning", "detection", "saving", "lever"):
        assert cause[key], key
    assert cause["thresholds"] and cause["advice"]
    for limit in cause["thresholds"]:
        assert limit["meaning"] and limit["source"], "a threshold has a source"
    for advice in cause["advice"]:
        assert advice["framework"] and advice["text"]
        assert advice["code"] is None or advice["code"].endswith("\n")
    if name != "none":
        assert any(a["framework"] in ("PyTorch", "CUDA", "any", "serving") for a in cause["advice"])
    done = hec("explain", name)
    words = " ".join(done.stdout.split())
    assert done.returncode == 0 and cause["title"] in words and "signs" in words
    for part in (cause["meaning"], cause["detection"], cause["lever"]):
        assert " ".join(part.split()) in words
    code = {"    " + line for advice in cause["advice"] for line in (advice["code"] or "").splitlines()}
    assert max(len(line) for line in done.stdout.splitlines() if line not in code) <= 80, "code is not wrapped"
    assert "\033" not in done.stdout
    assert json.loads(hec("explain", "--json", name).stdout)["causes"] == [cause]


def test_words_of_the_reports(hec):
    """Each word that a report uses for being busy is explained, and each state."""
    known = json.loads(hec("explain", "--json", "words").stdout)
    assert known["schema"] == "hec.words/1" and all(row["meaning"] for row in known["words"] + known["states"])
    names = [row["word"] for row in known["words"]]
    assert {"busy", "idle", "driver utilisation", "engine active", "SM active", "occupancy", "max occ"} <= set(names)
    assert [row["state"] for row in known["states"] if row["busy"]] == ["compute", "comm", "waiting", "copy"]
    done = hec("explain", "words")
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80
    words = " ".join(done.stdout.split())
    assert all(f"{row['word']} {row['meaning']}" in words for row in known["words"])


LABEL = re.compile(r"^(?: {0,4})([A-Za-z][A-Za-z' ?]*?)\d*\s*$")
HEADS = ["time", "share", "energy", "mean power", "driver utilisation", "SM active", "occupancy", "tensor", "DRAM", "memory", "PCIe in",
         "PCIe out", "NVLink in", "NVLink out", "count", "mean", "max occ", "launched by", "glimpse", "inferred", "CUPTI", "rough", "estimated",
         "by replay", "pageable", "pinned", "confidence", "set-up", "unit"]


def test_every_word_of_a_report_is_known(hec):
    """The labels of all golden reports and the names in the schema's tables, one by one."""
    defs = schema("report")["$defs"]
    asked = {name for kind, field in (("screen_row", "row"), ("ledger_row", "state"), ("kernel_class", "class"), ("event", "kind"))
             for name in defs[kind]["properties"][field]["enum"]} | {name for name in defs["device"]["properties"]["ledger_basis"]["enum"] if name}
    for path in sorted(GOLDEN.glob("*.hec")):
        shutil.copy(path, hec.folder)
        for line in hec.ok("report", "-v", "--color=never", path.name, env={"COLUMNS": "80", "LC_ALL": "C.UTF-8"}).stdout.splitlines():
            label = LABEL.match(line[:13]) if len(line) > 13 and line[12] == " " else None
            asked |= {label[1].strip(" ?")} if label else set()
    assert {"Ledger", "because", "outside", "timeline", "Host", "CPU energy", "Scale out"} <= asked
    for word in sorted(asked | set(HEADS)):
        done = hec("explain", *word.split())
        assert done.returncode == 0 and len(done.stdout) > 20, word


def test_a_word_alone(hec):
    done = hec("explain", "sm", "ACTIVE")
    assert done.returncode == 0 and "at least one warp resident" in " ".join(done.stdout.split()) and "occupancy" not in done.stdout
    assert [row["word"] for row in json.loads(hec("explain", "--json", "CUPTI").stdout)["words"]] == ["CUPTI"]
    assert hec("explain", "device_lost").stdout == hec("explain", "device lost").stdout


def test_unknown_cause_is_one_sentence_with_the_names(hec):
    done = hec("explain", "nonsense")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and all(name in done.stderr for name in CAUSES)
    assert hec("explain", "data", "host").returncode == 2


def test_completion_knows_the_causes(hec):
    for shell in ("bash", "zsh"):
        assert " ".join(CAUSES) in hec("__completion", shell).stdout
