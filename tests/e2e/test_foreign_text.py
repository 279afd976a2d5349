"""What a command, a run file of somebody or a name printed reaches no output as control sequences: through every verb, in every form."""
import shutil
import sqlite3
import subprocess
import unicodedata

import pytest

from conftest import GOLDEN, HANGS_S

ATTACKS = ["\x1b]0;owned\x07\x1b[2J\x1b[31m", "\u202eabc\u2066", "\u200b\ufeff\u2028", "\x9b31m\x85", "\r\nhec: forged\n", "\x00\x01\x7f",
           "<img src=x onerror=alert(1)> [a](http://b) @all `x` |",
           "\x1b]8;;http://e/\x1b\\link\x1b]8;;\x1b\\", "\x1bP1$r0m\x1b\\\x1b_G1\x1b\\\x1b^x\x1b\\", "\x9d0;t\x9c\x90q\x9c", "\x1b[6n\x1b[c\x1b[?1049h\x05",
           "\x0b\x0c\x08\x08\x07", "\U000e0041\U000e0042\U000e007f", "\u115f\u1160\u3164\uffa0\u2800", "\u034f\u17b4\u180b\ufe00\U000e0100",
           "\u00ad\u061c\u180e\ufff9x\ufffa\ufffb", "\u2066\u2067\u2068\u2069\u202a\u202d", "\x1b%G\x1b(0\x0e\x0f\x1b#8\x1bc"]
# beside Unicode's categories of what shows nothing: fillers, selectors, what may be ignored
BLANK = {*range(0x180b, 0x1810), *range(0xfe00, 0xfe0e), *range(0xe0000, 0xe1000), 0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0}
META = {"command", "hostname", "os", "cpu", "driver", "kernel", "user", "python"}
OUTPUTS = [("report", "r.hec"), ("report", "-v", "r.hec"), ("report", "--md", "r.hec"), ("report", "--json", "r.hec"),
           ("report", "--html", "r.hec"), ("compare", "--unlike", "r.hec", "s.hec"), ("compare", "--unlike", "s.hec", "r.hec"),
           ("compare", "--unlike", "--md", "s.hec", "r.hec"), ("compare", "--unlike", "--json", "s.hec", "r.hec"),
           ("compare", "--unlike", "--html", "s.hec", "r.hec"), ("whatif", "r.hec"), ("whatif", "--json", "r.hec"),
           ("export", "--csv", "-o", "-", "r.hec"), ("gather", "-f", "-o", "g.hec", "r.hec"), ("report", "g.hec"), ("export", "--csv", "x\x1b[31m.hec"),
           ("report", "x\x1b[31m\u202e.hec"), ("verify", "x\x1b]0;t\x07.json"), ("explain", "\x1b[31m"), ("import", "-q", "x\x1b[2J")]


def spoil(path):
    """Every text of the run file begins with an attack; how many there are."""
    count = 0
    with sqlite3.connect(path) as file:
        for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'").fetchall():
            for column, kind in [(row[1], row[2]) for row in file.execute(f"PRAGMA table_info({table})")]:
                if "TEXT" not in kind.upper() or table == "series" or (table, column) in (("meta", "key"), ("event", "kind")):
                    continue
                for (value,) in file.execute(f"SELECT DISTINCT {column} FROM {table} WHERE typeof({column})='text'").fetchall():
                    if table == "meta" and not {row[0] for row in file.execute("SELECT key FROM meta WHERE value=?", (value,))} <= META:
                        continue
                    text = (ATTACKS[count % len(ATTACKS)] + value).encode()
                    file.execute(f"UPDATE {table} SET {column}=CAST(? AS TEXT) WHERE {column}=?", (text, value))
                    count += 1
    return count


def controls(text):
    return {c for c in text.replace("\r\n", "\n") if (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") or ord(c) in BLANK) and c not in "\n\t"}


def assert_harmless(what, *texts):
    for text in texts:
        assert not controls(text), (what, controls(text), text[:500])
        assert not [line for line in text.splitlines() if line.startswith("hec: forged")], (what, text)


@pytest.mark.parametrize("name", ["none_train.hec", "copies.hec", "ddp.hec"])
def test_a_hostile_run_file_through_every_verb(hec, name):
    shutil.copy(GOLDEN / name, hec.folder / "r.hec")
    shutil.copy(GOLDEN / name, hec.folder / "s.hec")
    assert spoil(hec.folder / "r.hec") > 10
    for words in OUTPUTS:
        done = subprocess.run([hec.path, *words], cwd=hec.folder, capture_output=True, timeout=HANGS_S)
        assert_harmless(words, done.stdout.decode(), done.stderr.decode())


PRINTS = "printf 'one\\033[31mred\\033[0m\\033]0;title\\007\\rhec: forged\\r\\n\\342\\200\\256back\\000\\233\\tend'; exit 3"


@pytest.mark.parametrize("words", [("ab", "-n", 2, "--in-place", "--warm-up", 0, "--", "sh", "-c", PRINTS, ":::", "true"),
                                   ("check", "-n", 1, "--in-place", "--warm-up", 0, "-o", "c.json", "--", "sh", "-c", PRINTS),
                                   ("try", "--in-place", "--", "sh", "-c", PRINTS),
                                   ("sweep", "-n", 1, "--in-place", "a=1", "--", "sh", "-c", PRINTS, "{a}")],
                         ids=lambda words: words[0])
def test_what_a_failing_command_printed(hec, words):
    """It is shown, in lines, and without what a terminal would obey."""
    done = hec(*words, errors="replace")
    assert done.returncode and "onered\n" in done.stderr and "title" not in done.stderr, done.stderr
    assert not controls(done.stderr.replace("\ufffd", "")) and "\tend" in done.stderr
