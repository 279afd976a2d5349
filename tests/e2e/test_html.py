"""Pages of `--html`: their data obeys the schemas and adds up, nothing from outside is markup, and a file is written whole or not at all."""
import base64
import hashlib
import html.parser
import json
import resource
import shutil
import signal
import sqlite3
import subprocess

import jsonschema
import pytest

from conftest import GOLDEN, HANGS_S, schema, Screen

TYPICAL_BYTES = 1_500_000
ALLOWED = {"html", "head", "meta", "link", "title", "style", "body", "div", "noscript", "pre", "script"}


class Page(html.parser.HTMLParser):
    """A page as a browser without scripts reads it: its elements, and the text in each."""

    def __init__(self, data):
        super().__init__()
        self.bytes, self.tags, self.text, self.attributes, self.open = data, [], {}, {}, []
        self.feed(data.decode("utf-8"))
        self.close()
        scripts = [i for i, tag in enumerate(self.tags) if tag == "script"]
        assert len(scripts) == 2 and set(self.tags) <= ALLOWED, self.tags
        self.data = json.loads(self.text[scripts[0]])
        assert self.attributes[scripts[0]] == {"type": "application/json", "id": "hec-page"}
        assert self.data["schema"] == "hec.page/1"
        policy = next(self.attributes[i]["content"] for i, tag in enumerate(self.tags) if "http-equiv" in self.attributes[i])
        rules = dict(rule.split(None, 1) for rule in policy.split("; "))
        assert rules["default-src"] == rules["base-uri"] == "'none'" and "unsafe" not in policy
        for rule, at in (("script-src", scripts[1]), ("style-src", self.tags.index("style"))):
            digest = base64.b64encode(hashlib.sha256(self.text[at].encode()).digest()).decode()
            assert rules[rule] == f"'sha256-{digest}'", f"the policy does not allow what is inlined: {rule}"
        assert not any(name.startswith("on") or name == "style" for each in self.attributes.values() for name in each)
        assert self.attributes[self.tags.index("html")] == {"lang": "en"}

    def handle_starttag(self, tag, attrs):
        self.attributes[len(self.tags)] = dict(attrs)
        self.text[len(self.tags)] = ""
        self.open.append(len(self.tags))
        self.tags.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.tags[self.open.pop()] != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.text[self.open[-1]] += data

    def plain(self):
        return self.text[self.tags.index("pre")]


def page(hec, *words):
    done = hec(*words, "--html", "-o", "page.html")
    assert done.returncode == 0 and not done.stdout, done.stderr
    return Page((hec.folder / "page.html").read_bytes())


def check_view(view, report):
    """Cells are as many as they say, levels tell the same, and states add up to the ledger's seconds."""
    length = view["duration_s"]
    for series in view["series"]:
        assert series["levels"] and series["unit"] and series["name"]
        coarse, fine = series["levels"][0], series["levels"][-1]
        for level in series["levels"]:
            cells = len(level["mean"])
            assert cells <= 4096 and (cells - 1) * level["step_s"] < length <= (cells + 1) * level["step_s"] + 1e-6
            for i, mean in enumerate(level["mean"]):
                low, high = (level.get(key, level["mean"])[i] for key in ("min", "max"))
                assert (mean is None) == (low is None) == (high is None)
                assert mean is None or low - abs(low) * 1e-3 <= mean <= high + abs(high) * 1e-3
        most = [max((x for x in level.get("max", level["mean"]) if x is not None), default=None) for level in (coarse, fine)]
        assert most[0] == most[1], "extremes are kept"
    for states in view["states"]:
        device = next(d for d in report["devices"] if d["index"] == states["device"])
        ledger = {row["state"]: row["traced_seconds"] for row in device["ledger"]}
        ledger["comm"] = ledger.get("comm", 0) + ledger.pop("waiting", 0)  # who came last is not known at each instant
        for level in states["levels"]:
            sums = [0] * len(states["names"])
            for i, shares in enumerate(level["shares"]):
                cell = min(level["step_s"], length - level["from_s"] - i * level["step_s"])
                assert shares is None or sum(shares) < 1.002
                for k, share in enumerate(shares or []):
                    sums[k] += share * cell
            for name, seconds in zip(states["names"], sums):
                assert seconds == pytest.approx(ledger[name], rel=2e-3, abs=1e-3)
        assert {name for name, seconds in ledger.items() if seconds > 0} == set(states["names"])
    if "steps" in view:
        assert len(view["steps"]["start_s"]) == len(view["steps"]["ms"]) <= view["steps"]["total"]
    if "detail" in view:
        detail = view["detail"]
        assert {lane["kind"] for lane in detail["lanes"]} <= {"state", "stream", "thread", "phase"}
        for lane in detail["lanes"]:
            assert len(lane["start_us"]) == len(lane["us"]) == len(lane["name_index"])
            assert all(0 <= i < len(detail["names"]) for i in lane["name_index"])
            assert all(at + us <= 1e6 * (detail["to_s"] - detail["from_s"]) + 1 for at, us in zip(lane["start_us"], lane["us"]))


@pytest.mark.parametrize("name", ["none_train", "data_decode", "ddp"])
def test_page_of_a_real_run(hec, name):
    """Traced, inferred from calls, and several devices of which a part was traced."""
    shutil.copy(GOLDEN / f"{name}.hec", hec.folder / "r.hec")
    found = page(hec, "report", "r.hec")
    (report,), (view,) = found.data["reports"], found.data["views"]
    assert found.data["kind"] == "report" and report == hec.report("r.hec"), "the report is unchanged"
    jsonschema.validate(report, schema("report"))
    check_view(view, report)
    assert view["states"] and view["detail"]["lanes"] and view["steps"]["total"] == report["steps"]["count"]
    assert {"gpu_power", "host_cpu_busy"} <= {series["metric"] for series in view["series"]}
    assert len(found.bytes) < TYPICAL_BYTES and report["headline"].split(":")[0] in " ".join(found.plain().split())
    assert hec("report", "--html", "r.hec").stdout.encode() == found.bytes, "to standard output, and the same bytes"


def test_page_of_a_simulated_run_and_a_comparison(hec):
    for name in ("a", "b"):
        hec.ok("run", "-q", "--sim", "h200", "--trace=full", "-o", f"{name}.hec", "--", hec.path, "sim", "data-starved", "-s", "1", "--marks")
    found = page(hec, "compare", "a.hec", "b.hec")
    jsonschema.validate(found.data["compare"], schema("compare"))
    assert found.data["kind"] == "compare" and len(found.data["reports"]) == len(found.data["views"]) == 2
    for report, view in zip(found.data["reports"], found.data["views"]):
        jsonschema.validate(report, schema("report"))
        check_view(view, report)
    code = [finding["code"] for finding in found.data["reports"][0]["findings"] if finding["cause"] == "data"]
    assert code and "DataLoader(" in code[0] and "\n" in code[0]


def test_pages_of_a_receipt_and_a_sweep(hec):
    hec.ok("ab", "-n", 2, "--warm-up", 0, "--units", 10, "--in-place", "-o", "ab.json", "--", "sleep", "0.01", ":::", "sleep", "0.02")
    found = page(hec, "verify", "ab.json")
    jsonschema.validate(found.data["receipt"], schema("receipt"))
    assert found.data["receipt"]["digest"] == json.loads((hec.folder / "ab.json").read_text())["digest"]
    done = hec.ok("sweep", "-n", 1, "--units", 8, "--in-place", "--html", "batch=1,2", "--", "sh", "-c", "sleep 0.0{batch}")
    found = Page(done.stdout.encode())
    jsonschema.validate(found.data["sweep"], schema("sweep"))
    assert found.data["kind"] == "sweep"


A = ("--", "sleep", "0.01", ":::", "sleep", "0.02")
PAIRS = ("ab", "-n", 2, "--warm-up", 0, "--seed", 1, "--units", 10, "--in-place")


def test_the_page_of_an_experiment(hec):
    """It is that of `hec verify --html`, beside the receipt or where it is asked for; what is printed is what is printed without."""
    done = hec(*PAIRS, "-o", "ab.json", "--md", "--html", *A)
    assert done.returncode == 0 and done.stderr.endswith("\nhec: page: ab.html\n"), done.stderr
    found = Page((hec.folder / "ab.html").read_bytes())
    assert found.data["kind"] == "receipt" and found.bytes.decode() == hec("verify", "--html", "ab.json").stdout
    assert done.stdout == hec("verify", "--md", "ab.json").stdout
    done = hec(*PAIRS, "-o", "r", "--html", *A)
    assert done.returncode == 0 and (hec.folder / "r.html").exists(), done.stderr
    before = inode(hec.folder / "r.html")
    done = hec(*PAIRS, "-o", "r", "-f", "--json", "--html=r.html", *A)
    assert done.returncode == 0 and done.stdout == (hec.folder / "r").read_text(), done.stderr
    assert inode(hec.folder / "r.html") != before and (hec.folder / "r.html").read_text() == hec("verify", "--html", "r").stdout
    done = hec(*PAIRS, "--html=p.html", *A)
    (receipt,) = hec.folder.glob("ab-*.json")
    assert done.returncode == 0 and (hec.folder / "p.html").read_text() == hec("verify", "--html", receipt).stdout


def test_a_page_that_cannot_be_is_refused_before_the_first_trial(hec):
    for name in ("there.html", "there"):
        (hec.folder / name).write_text("what was there")
    (hec.folder / "folder").mkdir()
    touch = ("--", "touch", "ran", ":::", "touch", "ran")
    for words, sentence in ((["--html=no/p.html"], "cannot create no/p.html: No such file"), (["--html=there/p.html"], "Not a directory"),
                            (["--html=folder"], "is a directory"), (["--html="], "name of a file"), (["--html=-"], "name of a file"),
                            (["-o", "there.json", "--html"], "there.html exists already; -f"), (["--html=there.html"], "exists already"),
                            (["-o", "x.html", "--html=x.html"], "x.html is the receipt"),
                            (["-o", "folder/x.json", "--html=./folder/../folder/x.json"], "is the receipt")):
        for verb, command in ((PAIRS, touch), (("try", "--in-place"), touch[:3])):
            done = hec(*verb, *words, *command)
            assert done.returncode and sentence in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)
    assert not (hec.folder / "ran").exists() and (hec.folder / "there.html").read_text() == "what was there"
    done = hec(*PAIRS, "-o", "r.json", "-f", "--html=/dev/full", *A)
    assert done.returncode == 74 and "No space left" in done.stderr and done.stdout, "what is printed does not depend on the page"


HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>", "\" onload='alert(1)' x=\"", "]]>&lt;&#60;",
           "\x1b]0;owned\x07\x1b[2J", "\u2028\u2029\u202e\ufeff", "';alert(1)//\\", "</noscript></pre><svg onload=alert(1)>"]


def test_hostile_text_is_no_markup(hec):
    """Names of kernels, files, threads, phases and units, the command and events of a run file."""
    shutil.copy(GOLDEN / "none_train.hec", hec.folder / "r.hec")
    with sqlite3.connect(hec.folder / "r.hec") as file:
        def change(table, key, column, also=""):
            for i, (row,) in enumerate(file.execute(f"SELECT {key} FROM {table} WHERE {column} NOT IN ('data', 'loss') {also}").fetchall()):
                text = HOSTILE[i % len(HOSTILE)].encode() + (b"\xff\xc0\x80\xed\xa0\x80" if i % 2 else b"") + str(row).encode()
                file.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {key} = ?", (text, row))
        change("trace_name", "id", "text")
        change("track", "id", "name", "AND name IS NOT NULL")
        change("event", "id", "text")
        change("device", "device_index", "name")
        for key in ("command", "hostname", "os", "cpu"):
            file.execute("UPDATE meta SET value = CAST(? AS TEXT) WHERE key = ?", ("".join(HOSTILE).encode() + b"\xfe", key))
    found = page(hec, "report", "r.hec")
    (report,), (view,) = found.data["reports"], found.data["views"]
    jsonschema.validate(report, schema("report"))
    check_view(view, report)
    assert any("</script>" in kernel["name"] for kernel in report["kernels"]), "the names are there, as data"
    assert any("onerror" in name for name in view["detail"]["names"])
    assert b"\x1b" not in found.bytes and b"\x07" not in found.bytes and b"</script><script>alert" not in found.bytes
    data = found.bytes.split(b'id="hec-page">')[1].split(b"</script>")[0]
    assert not set(data) & set(b"<>&") and data.isascii()
    assert b"alert" not in found.bytes.split(b"<style>")[0].replace(b"&#60;", b"").split(b"<title>")[0]


def inode(path):
    return path.stat().st_ino


def test_a_file_is_replaced_whole_or_not_at_all(hec):
    shutil.copy(GOLDEN / "copies.hec", hec.folder / "r.hec")
    target = hec.folder / "p.html"
    target.write_text("what was there")
    before = inode(target)

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
    assert hec("report", "--html", "-o", "p.html", "r.hec").returncode == 2 and inode(target) == before, "not without -f"
    done = hec("report", "-f", "--html", "-o", "p.html", "r.hec", preexec_fn=full)
    assert done.returncode == 74 and "p.html" in done.stderr and not done.stdout
    assert target.read_text() == "what was there" and inode(target) == before
    assert sorted(path.name for path in hec.folder.iterdir() if path.name.startswith("p.html")) == ["p.html"], "nothing half is left"
    assert hec("report", "-f", "--html", "-o", "p.html", "r.hec").returncode == 0
    assert inode(target) != before and Page(target.read_bytes())
    (hec.folder / "link.html").symlink_to("p.html")
    assert hec("report", "-f", "--html", "-o", "link.html", "r.hec").returncode == 0 and (hec.folder / "link.html").is_symlink()
    (hec.folder / "full").symlink_to("/dev/full")
    done = hec("report", "-f", "--html", "-o", "full", "r.hec")
    assert done.returncode == 74 and "No space left" in done.stderr and (hec.folder / "full").is_symlink()
    with open("/dev/full", "w") as nowhere:
        done = subprocess.run([hec.path, "report", "--html", "r.hec"], cwd=hec.folder, stdout=nowhere, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74
    assert hec("report", "--html", "-o", ".", "r.hec").returncode == 2


@pytest.mark.parametrize("words", [("report", "r.hec"), ("compare", "r.hec", "s.hec"), ("verify", "no.json"),
                                   ("sweep", "batch=1,2", "--", "true", "{batch}")])
def test_a_terminal_gets_no_page(hec, words):
    for name in ("r", "s"):
        shutil.copy(GOLDEN / "copies.hec", hec.folder / f"{name}.hec")
    screen, at = Screen(), 1 + (words[0] == "sweep")
    done = subprocess.run([hec.path, *words[:at], "--html", *words[at:]], cwd=hec.folder, stdout=screen.fd, stderr=subprocess.PIPE, text=True, timeout=HANGS_S)
    screen.end()
    assert done.returncode == 2 and "terminal" in done.stderr and ("-o" in done.stderr or "> FILE" in done.stderr)


def test_page_of_an_import_without_steps(hec):
    """What is replayed is what was recorded, not the time until the clock ends; and no counter is said to be missing on the card."""
    hec.ok("import", "-q", "-o", "r.hec", GOLDEN.parent / "data" / "kineto" / "event_sync_multi_stream.json.gz")
    found = page(hec, "report", "r.hec")
    (report,), (view,) = found.data["reports"], found.data["views"]
    assert report["steps"]["count"] == 0 and 0 < view["replay"]["recorded"]["seconds"] <= report["run"]["seconds"]
    assert all(device["compute"]["why"] != "this device has no hardware counters that can be read while it works"
               for device in report["devices"] if device["compute"])
