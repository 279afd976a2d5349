"""`hec explain`: every cause that a report may name is explained, for people and as JSON."""
import json

import pytest

from conftest import BINARY, Hec, schema

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
    assert [row["state"] for row in known["states"] if row["busy"]] == ["compute", "comm", "copy"]
    done = hec("explain", "words")
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80
    words = " ".join(done.stdout.split())
    assert all(f"{row['word']} {row['meaning']}" in words for row in known["words"])


def test_unknown_cause_is_one_sentence_with_the_names(hec):
    done = hec("explain", "nonsense")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and all(name in done.stderr for name in CAUSES)
    assert hec("explain", "data", "host").returncode == 2


def test_completion_knows_the_causes(hec):
    for shell in ("bash", "zsh"):
        assert " ".join(CAUSES) in hec("__completion", shell).stdout
