"""Receipts of experiments on the simulated GPU: `hec verify`, its replay, and `hec check` against a baseline."""
import concurrent.futures
import hashlib
import json
import os
import subprocess
import unicodedata

import jsonschema
import pytest
import test_ab

from conftest import BINARY, HANGS_S, Hec, ROOT, schema

SCHEMA = schema("receipt")
SIM = ["--sim", "h200", "--warm-up", 0, "--steps", 20]
TRAIN = [BINARY, "sim", "healthy-train", "--marks", "--seconds", 3]
SLOW = [BINARY, "sim", "fp32", "--marks", "--seconds", 3]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with ab.json (fp32 against TF32: saved) and base.json, and the options for trials here."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("check"))
    place = [] if test_ab.layers_work(hec) else ["--in-place"]
    with concurrent.futures.ThreadPoolExecutor(2) as at_once:
        ab = at_once.submit(hec, "ab", *SIM, *place, "-n", 2, "-o", "ab.json", "--", *SLOW, ":::", *TRAIN, timeout=HANGS_S)
        base = at_once.submit(hec, "check", *SIM, *place, "-o", "base.json", "--", *TRAIN, timeout=HANGS_S)
    assert ab.result().returncode == 0, ab.result().stderr
    assert base.result().returncode == 0, base.result().stderr
    return hec, place


def canonical(value):
    """As docs/receipts.md says."""
    if value is None or isinstance(value, bool):
        return {None: b"n", True: b"t", False: b"f"}[value]
    if isinstance(value, (int, float)):
        return b"#%.17g;" % value
    if isinstance(value, str):
        return b'"%d:%s' % (len(value.encode()), value.encode())
    if isinstance(value, list):
        return b"[" + b"".join(map(canonical, value)) + b"]"
    return b"{" + b"".join(canonical(k) + canonical(value[k]) for k in sorted(value, key=str.encode)) + b"}"


def test_receipt_of_an_experiment(made):
    hec, _ = made
    receipt = json.loads((hec.folder / "ab.json").read_text())
    jsonschema.validate(receipt, SCHEMA)
    content = canonical({key: value for key, value in receipt.items() if key != "digest"})
    assert receipt["digest"] == hashlib.sha256(content).hexdigest()
    assert receipt["verdict"]["verdict"] == "saved" and receipt["commands"]["b"][0] == BINARY
    assert {fact["name"] for fact in receipt["facts"]} >= {"device", "driver", "power_limit", "cpu", "host", "measured"}
    assert [trial["pair"] for trial in receipt["trials"]] == [0, 0, 1, 1] and receipt["conditions"]["steps"] == 20
    assert receipt["verdict"]["cost"]["joules_paid_after"]["shown"]
    done = hec("verify", "ab.json", "base.json")
    assert done.returncode == 0 and done.stdout.startswith("ab.json: verified: saved: B takes"), done.stderr
    assert "base.json: verified: a baseline of 3 trials" in done.stdout
    text = hec("verify", "--md", "ab.json").stdout
    assert text.startswith("**saved: B takes") and "| energy |" in text and "this has paid: after" in text


def test_changed_receipts_do_not_hold(made):
    hec, _ = made
    receipt = json.loads((hec.folder / "ab.json").read_text())
    next(trial for trial in receipt["trials"] if trial["side"] == "A")["steady"]["joules"] *= 1.001
    (hec.folder / "changed.json").write_text(json.dumps(receipt))
    done = hec("verify", "changed.json")
    assert done.returncode == 1 and "digest" in done.stderr and "joules_per_unit" not in done.stdout
    assert "verdict.quantities[2].a: the receipt says" in done.stderr, done.stderr
    for text, status in (("{}", 65), ("", 65), (json.dumps({**receipt, "schema": "hec.receipt/9"}), 65)):
        (hec.folder / "other.json").write_text(text)
        done = hec("verify", "other.json")
        assert done.returncode == status and done.stderr.count("\n") == 1 and "other.json" in done.stderr
    assert hec("verify", "missing.json").returncode == 66
    assert hec("verify").returncode == 2


def test_replay(made):
    hec, place = made
    done = hec("verify", "--replay", "--yes", *place, "-o", "again.json", "ab.json")
    assert done.returncode in (0, 1) and "replay:  saved: B takes" in done.stdout, done.stderr
    assert "hec: A: " in done.stderr and hec("verify", "again.json").returncode == 0
    again = json.loads((hec.folder / "again.json").read_text())
    assert again["plan"] == json.loads((hec.folder / "ab.json").read_text())["plan"]
    done = hec("verify", "--replay", *place, "ab.json")
    assert done.returncode == 2 and "--yes" in done.stderr and "fp32 --marks" in done.stderr and not done.stdout
    done = hec("verify", "--replay", "base.json")
    assert done.returncode == 2 and "no verdict to replay" in done.stderr


def test_a_replay_shows_all_that_it_would_run(made):
    hec, place = made
    payload = "true " + "x" * 1500 + "; touch ran"
    done = hec("ab", "--sim", "h200", *place, "-n", 2, "--warm-up", 0, "-o", "long.json", "--", "true", ":::", "sh", "-c", payload)
    assert done.returncode in (0, 1), done.stderr
    (hec.folder / "ran").unlink(missing_ok=True)
    done = hec("verify", "--replay", "--in-place", "long.json")
    assert done.returncode == 2 and "touch ran" in done.stderr and not (hec.folder / "ran").exists()


HIDING = {
    "colours of the background": "\x1b[8m; touch ran\x1b[0m", "a line that is written over": "; touch ran\rhec: A: true", "a line cleared": "; touch ran\x1b[2K\x1b[1A",
    "backspaces": "; touch ran" + "\b" * 40, "a forged line": "true\nhec: B: true\n; touch ran", "turned round": "\u202enar hcuot ;\u202c; touch ran",
    "no width": "; to\u200buch ran; touch ran", "many words": None, "blanks": " " * 5000 + "; touch ran", "quotes": "'; touch ran; '", "a title": "\x1b]0;x\x07; touch ran",
    "a long word": "x" * 200000 + "; touch ran", "wide": "\u3000" * 3000 + "; touch ran", "C1": "\x9b8m; touch ran", "an empty word": "; touch ran",
}


@pytest.mark.parametrize("name", HIDING)
def test_no_word_hides_another_from_who_is_asked(made, name):
    """The receipt is somebody's; its digest is made anew. All that would run is shown as text, and nothing runs unasked."""
    hec, _ = made
    receipt = json.loads((hec.folder / "ab.json").read_text())
    words = ["sh", "-c", "true", *["x"] * 20000, "touch ran"] if HIDING[name] is None else ["sh", "-c", "true" + HIDING[name], ""]
    receipt["commands"]["b"] = words
    receipt["digest"] = hashlib.sha256(canonical({key: value for key, value in receipt.items() if key != "digest"})).hexdigest()
    (hec.folder / "hiding.json").write_text(json.dumps(receipt))
    done = hec("verify", "--replay", "--in-place", "-o", "hidden.json", "hiding.json", input="y\n", errors="replace")
    assert done.returncode in (2, 65) and not (hec.folder / "ran").exists(), done.stderr[-500:]
    if done.returncode == 65:
        return  # it is not even a receipt
    line, = [line for line in done.stderr.splitlines() if line.startswith("hec: B: ")]
    assert "touch ran" in line and len(line) >= sum(map(len, words)), line[:300]
    assert not [c for c in done.stderr if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"]


def test_a_receipt_keeps_no_secrets(made):
    hec, place = made
    secrets = {"SLURM_JWT": "eyJhbGciOiJIUzI1NiJ9.SECRET", "HF_ENDPOINT": "https://bob:SECRET@hub.example/", "HF_TOKEN": "SECRET"}
    done = hec("ab", "--sim", "h200", *place, "-n", 2, "--warm-up", 0, "-o", "secret.json", "--", "true", ":::",
               "sh", "-c", "true", "--password", "SECRET", env=secrets)
    assert done.returncode in (0, 1), done.stderr
    text = (hec.folder / "secret.json").read_text()
    assert "SECRET" not in text
    assert json.loads(text)["withheld"] == ["word 5 of command B", "HF_ENDPOINT", "HF_TOKEN"]
    done = hec("verify", "--replay", "--yes", "--in-place", "secret.json")
    assert done.returncode == 2 and "word 5 of command B is not in the receipt" in done.stderr


@pytest.mark.parametrize("words, kept", [(["-p", "SECRET", "-b", "8"], ["-p", "[withheld]", "-b", "8"]), (["-pSECRET9"], ["-p[withheld]"]),
                                         (["--login", "bob:SECRET"], ["--login", "bob:[withheld]"]), (["--pin", "739104"], ["--pin", "[withheld]"]),
                                         (["-P", "two SECRET words"], ["-P", "[withheld]"]), (["-u", "bob:SECRET"], ["-u", "bob:[withheld]"]),
                                         (["-p", "8", "-k", "0.9", "-w", "./x", "-a", "net50"], None)])
def test_options_that_nobody_knows(made, words, kept):
    """What they name is not known, so their value is kept only where its form shows that it is no secret; a replay runs what was kept whole."""
    hec, place = made
    (hec.folder / "tool.sh").write_text("exit 0")
    command = ["sh", "tool.sh", *words]
    done = hec("ab", "-f", "--sim", "h200", *place, "-n", 2, "--warm-up", 0, "-o", "tool.json", "--", *command, ":::", *command)
    assert done.returncode in (0, 1), done.stderr
    receipt = json.loads((hec.folder / "tool.json").read_text())
    assert receipt["commands"]["a"][2:] == receipt["commands"]["b"][2:] == (kept or words)
    assert "SECRET" not in (hec.folder / "tool.json").read_text() and (len(receipt["withheld"]) > 0) == bool(kept)
    done = hec("verify", "--replay", "--yes", "--in-place", "tool.json")
    assert ("is not in the receipt" in done.stderr) == bool(kept) and ("replay:" in done.stdout) == (not kept), done.stderr


@pytest.mark.parametrize("command, status, words", [(TRAIN, 0, "within: "), (SLOW, 1, "regressed: ")])
def test_check(made, command, status, words):
    hec, place = made
    summary = hec.folder / f"summary-{status}.md"
    done = hec("check", "--sim", "h200", *place, "--baseline", "base.json", "--max-joules", "+20%", "--md", summary, "-n", 3,
               "--", *command, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.returncode == status and words in done.stdout, done.stdout + done.stderr
    assert summary.read_text().startswith(f"**hec check: {words}") and "| energy per unit |" in summary.read_text()
    assert "time per unit" in done.stdout.replace("\n", " ") or "  time " in done.stdout


def test_what_cannot_be_checked(made):
    """On another device, and of a command that fails; 1 would say that it is slower."""
    hec, place = made
    summary = hec.folder / "grows.md"
    summary.write_text("before\n")
    if os.geteuid() == 0:
        os.chown(summary, 65533, 65533)  # as in a job's container, where it is the runner's
    done = hec("check", "--sim", "a100", *place, "--baseline", "base.json", "-n", 1, "--md", summary, "--", *TRAIN,
               env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.returncode == 2 and "could not say" in done.stdout and "NVIDIA H200 in the baseline" in done.stdout
    assert summary.read_text().startswith("before\n**hec check: could not say")
    done = hec("check", "--sim", "h200", *place, "--baseline", "base.json", "--", "sh", "-c", "exit 3")
    assert done.returncode == 2 and "exit status 3" in done.stderr
    done = hec("check", *place, "--", "true")
    assert done.returncode == 64 and "--baseline FILE" in done.stderr
    base = json.loads((hec.folder / "base.json").read_text())
    base["trials"][0]["steady"]["joules"] *= 2
    (hec.folder / "bad.json").write_text(json.dumps(base))
    done = hec("check", *place, "--baseline", "bad.json", "--", "true")
    assert done.returncode == 65 and "does not hold" in done.stderr
    assert hec("check", *place, "-o", "base.json", "--", "true").returncode == 64  # kept, unless --force is given


def test_examples_for_ci():
    """Valid YAML, and each command is one that hec understands."""
    yaml = pytest.importorskip("yaml")
    github = yaml.safe_load((ROOT / "examples" / "ci" / "github-actions.yml").read_text())
    gitlab = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab-ci.yml").read_text())
    steps = [step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step]
    text = "\n".join(steps + [line for job in gitlab.values() for line in job["script"]]).replace("\\\n", "")
    commands = [line.split("hec ", 1)[1].split(" -- ")[0].split() for line in text.splitlines() if "hec check -" in line or "hec verify " in line]
    assert len(commands) == 6
    help_of = {verb: hec_help(verb) for verb in ("check", "verify")}
    for verb, *words in commands:
        for word in words:
            assert not word.startswith("--") or f"{word} " in help_of[verb] or f"{word}=" in help_of[verb], word


def hec_help(verb):
    return subprocess.run([BINARY, verb, "--help"], capture_output=True, text=True, check=True).stdout
