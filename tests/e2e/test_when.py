"""hec run --when: a command waits for the grid, or for an hour; nothing is guessed, and nothing is stopped once it has begun."""
import datetime
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import BINARY
from on_machine import on_machine

HOUR = 3600
MAPS = "Datetime (UTC),Zone id,Carbon intensity gCO2eq/kWh (Life cycle)\n"
PRICES = "time,price_per_mwh\n"


def utc(t):
    return datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def put(path, text):
    """As a cron job does it: by rename."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.rename(path)


def table(path, head, rows):
    """rows: seconds from now -> value"""
    now = int(time.time())
    put(path, head + "".join(f"{utc(now + after)},{value}\n" for after, value in rows.items()))
    return now


def maps(path, rows):
    return table(path, MAPS, {after: f"DE,{value}" for after, value in rows.items()})


def watttime(path, kind, value):
    points = [{"point_time": utc(time.time() + after), "value": value} for after in range(-HOUR, HOUR, 300)]
    put(path, json.dumps({"data": points, "meta": {"region": "CAISO_NORTH", "signal_type": kind, "units": "lbs_co2_per_mwh",
                                                   "data_point_period_seconds": 300}}))


def text_of_event(report):
    texts = [event["text"] for event in report["events"] if event["kind"] == "when"]
    assert len(texts) == 1, texts
    return texts[0]


def flat(text):
    return " ".join(text.split())


@on_machine("h200")
def test_it_waits_until_the_price_is_low(hec):
    now = table(hec.folder / "p.csv", PRICES, {-60: 300, 0: 300, 60: 250, 120: 79, 180: 300})
    done = hec.ok("run", "-o", "run.hec", "--when", "price<0.08", "--price-file", "p.csv", "--", "date", "+%s")
    assert now + 120 <= int(done.stdout) < now + 180
    assert "waiting for price<0.08: price is 0.3; true from" in done.stderr
    said = text_of_event(hec.report("run.hec"))
    assert said.startswith("waited ") and said.endswith(" for price<0.08: price is 0.079"), said
    assert f"hec: {said}\n" in done.stderr
    assert f"When {said}" in flat(hec.ok("report", "run.hec").stdout)


@on_machine("h200")
def test_a_file_that_is_replaced_is_read_again(hec):
    now = table(hec.folder / "p.csv", PRICES, {-60: 300, 60: 300})
    renewer = subprocess.Popen(["sh", "-c", f"sleep 90; printf '{PRICES.strip()}\\n{utc(now + 80)},1\\n{utc(now + 600)},1\\n' > p.new; "
                                "mv p.new p.csv"], cwd=hec.folder)
    done = hec.ok("run", "-q", "-o", "run.hec", "--when", "price<0.08", "--price-file", "p.csv", "--", "date", "+%s")
    assert renewer.wait() == 0
    assert now + 90 <= int(done.stdout) < now + 150
    assert done.stderr == ""


@on_machine("h200")
def test_until_it_runs_in_any_case(hec):
    now = table(hec.folder / "p.csv", PRICES, {-60: 300, 0: 300, HOUR: 1})
    done = hec.ok("run", "-o", "run.hec", "--when", "price<0.08", "--price-file", "p.csv", "--until", "1.5m", "--", "date", "+%s")
    assert now + 90 <= int(done.stdout) < now + 120
    assert "which did not come before --until: price is" in flat(done.stderr)
    assert "did not come before --until" in text_of_event(hec.report("run.hec"))


@on_machine("h200")
def test_hours_are_of_the_local_clock(hec):
    begin = datetime.datetime.now().replace(second=0, microsecond=0) + datetime.timedelta(minutes=3)
    hours = f"{begin:%H:%M}-{begin + datetime.timedelta(hours=1):%H:%M}"
    done = hec.ok("run", "-q", "-o", "run.hec", "--when", hours, "--", "date", "+%s")
    assert begin.timestamp() <= int(done.stdout) < begin.timestamp() + 60


@on_machine("h200")
def test_what_would_fail_fails_before_the_wait(hec):
    """Not after a night."""
    table(hec.folder / "p.csv", PRICES, {-HOUR: 300, HOUR: 1, 2 * HOUR: 1})
    when = ["--when", "price<0.08", "--price-file", "p.csv"]
    before = time.time()
    for words, status in ((["--with", "power_cap=400"], 77), (["--tune"], 77), (["--with", "no_such_lever=1"], 2), (["-o", "p.csv"], 2)):
        done = hec("run", *when, *words, "--", "true")
        assert done.returncode == status and "waiting" not in done.stderr, (words, done)
    assert hec("run", *when, "--", "no-such-command").returncode == 127
    assert time.time() - before < HOUR


def test_true_at_once(hec):
    maps(hec.folder / "c.csv", {-HOUR: 100, 0: 120, HOUR: 500})
    done = hec("run", "-o", "run.hec", "--sim", "h200", "--when", "co2<200|23:59-24:00", "--carbon-file", "c.csv", "--", BINARY, "sim",
               "--seconds", "2", "healthy-train")
    assert done.returncode == 0 and "waiting" not in done.stderr
    report = hec.report("run.hec")
    assert "did not wait for co2<200|23:59-24:00: co2 is 1" in text_of_event(report)
    price = report["totals"]["price"]
    assert price["grams_co2_per_kwh"] in (100, 120) and not price["grams_co2_per_kwh_is_default"]
    assert price["grams_co2_per_kwh_from"] == "average, Electricity Maps, DE, life cycle"
    assert report["totals"]["grams_co2"] == pytest.approx(report["totals"]["joules"] / 3.6e6 * price["grams_co2_per_kwh"])
    assert "g/kWh: average, Electricity Maps, DE, life cycle" in flat(hec.ok("report", "run.hec").stdout)
    chosen = hec.report("run.hec", "--carbon", "7")["totals"]["price"]
    assert chosen["grams_co2_per_kwh"] == 7 and chosen["grams_co2_per_kwh_from"] is None


@on_machine("h200")
def test_the_carbon_of_a_run_is_its_mean_over_time(hec):
    now = maps(hec.folder / "c.csv", {-60: 100, 0: 100, 60: 100, 120: 400, 180: 400})
    hec.ok("run", "-q", "-o", "run.hec", "--carbon-file", "c.csv", "--", "sleep", str(now + 180 - time.time()))
    price = hec.report("run.hec")["totals"]["price"]
    assert price["grams_co2_per_kwh"] == pytest.approx(200, abs=5)
    done = hec.ok("run", "-q", "-o", "long.hec", "--carbon-file", "c.csv", "--", "sleep", "70")
    assert "--carbon-file has not all of the time" in done.stderr  # and what is not known is not guessed
    price = hec.report("long.hec")["totals"]["price"]
    assert price["grams_co2_per_kwh_is_default"] and price["grams_co2_per_kwh_from"] is None


def test_check_says_how_it_is_and_runs_nothing(hec):
    maps(hec.folder / "c.csv", {-HOUR: 300, 0: 300, HOUR: 300, 2 * HOUR: 100})
    maps(hec.folder / "old.csv", {-9 * HOUR: 100, -8 * HOUR: 100})
    for words, status, sentence in (
        (["co2<400", "--carbon-file", "c.csv"], 0, "true: co2 is 300 g/kWh (average, Electricity Maps, DE, life cycle)\n"),
        (["co2<200", "--carbon-file", "c.csv"], 1, "false: co2 is 300 g/kWh (average, Electricity Maps, DE, life cycle); true from"),
        (["co2<99", "--carbon-file", "c.csv"], 1, "; the files do not say when it will be true\n"),
        (["co2<200", "--carbon-file", "old.csv"], 2, "not known: co2 is not known; the files do not say"),
        (["co2<200|00:00-24:00", "--carbon-file", "old.csv"], 0, "true: co2 is not known, it is "),
        (["co2<200", "--carbon-file", "old.csv", "--carbon-file", "c.csv"], 1, "false: co2 is 300"),
        (["-q", "co2<400", "--carbon-file", "c.csv"], 0, ""),
    ):
        at = words.index(next(word for word in words if not word.startswith("-")))
        done = hec("run", "--check", *words[:at], "--when", *words[at:], "--", "touch", "ran")
        assert done.returncode == status and done.stdout.find(sentence) >= 0 and done.stderr == "", (words, done)
        assert done.stdout.count("\n") == (words[0] != "-q")
    assert sorted(os.listdir(hec.folder)) == ["c.csv", "old.csv"]


def test_what_is_refused(hec):
    maps(hec.folder / "c.csv", {-HOUR: 300, 0: 300})
    watttime(hec.folder / "moer.json", "co2_moer", 900)
    watttime(hec.folder / "aoer.json", "co2_aoer", 900)
    (hec.folder / "bad.csv").write_text(PRICES + "2026-01-01 00:00,1\n2026-01-01 00:00,nan\n")
    for words, status, sentence in (
        (["--when", "co2<200"], 2, "--when: co2 needs --carbon-file FILE"),
        (["--when", "price<1", "--carbon-file", "c.csv"], 2, "--when: price needs --price-file FILE"),
        (["--when", "co2<200|prize<1", "--carbon-file", "c.csv"], 2, "--when: column 9: co2<N, price<N or HH:MM-HH:MM belongs here"),
        (["--when", "co2<1", "--carbon-file", "none.csv"], 66, "--carbon-file: none.csv: No such file or directory"),
        (["--when", "price<1", "--price-file", "bad.csv"], 65, "--price-file: bad.csv: line 3: \"nan\" is no number"),
        (["--when", "co2<1", "--carbon-file", "c.csv", "--carbon-file", "moer.json"], 2,
         "moer.json has marginal carbon and c.csv has average carbon: they answer other questions, and are not to be mixed"),
        (["--carbon-file", "aoer.json", "--carbon-file", "moer.json"], 2, "are not to be mixed"),
        (["--carbon-file", "aoer.json", "--carbon-file", "c.csv"], 2, "not to be mixed"),
        (["--when", "01:00-02:00", "--until", "soon"], 2, "--until: \"soon\" is no time"),
        (["--price-file", "bad.csv"], 2, "--price-file goes with --when"),
        (["--until", "1h"], 2, "--until goes with --when"),
        (["--check"], 64, "--check goes with --when"),
        (["--when", "co2<200", "--check"], 64, "needs --carbon-file"),
        (["--check", "--wen", "co2<200"], 64, "did you mean --when?"),
    ):
        done = hec("run", *words, "--", "touch", "ran")
        assert done.returncode == status and sentence in done.stderr, (words, done)
    assert not (hec.folder / "ran").exists() and not list(hec.folder.glob("*.hec"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(hec, number):
    maps(hec.folder / "c.csv", {-HOUR: 300, 0: 300, HOUR: 300})
    process = hec.popen("run", "--when", "co2<200", "--carbon-file", "c.csv", "--", "touch", "ran", stderr=subprocess.PIPE)
    try:
        assert "waiting for co2<200" in process.stderr.readline()
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait() == -number and "the command was not run" in said
    finally:
        process.kill()
        process.wait()
    assert sorted(os.listdir(hec.folder)) == ["c.csv"]


def test_a_signal_that_is_ignored_is_ignored(hec):
    maps(hec.folder / "c.csv", {-HOUR: 300, 0: 300, HOUR: 300})
    process = hec.popen("run", "-f", "-o", "run.hec", "--when", "co2<200", "--carbon-file", "c.csv", "--until", "2s", "--", "touch", "ran",
                        stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert "waiting for co2<200" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    process.stderr.read()
    assert process.wait() == 0 and (hec.folder / "ran").exists()
