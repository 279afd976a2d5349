"""The documents: pages made of tables are up to date, links lead somewhere, the index names every page, quoted reports are real."""
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

DOCS = ROOT / "docs"
LIST = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
TRACKED = subprocess.run(LIST, capture_output=True, text=True).stdout.split() if shutil.which("git") else []
PAGES = [ROOT / name for name in TRACKED if (ROOT / name).is_file()] or sorted(  # no clone, or no git: what is known to hold pages
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "deploy").rglob("*.md"), *(ROOT / "bench" / "results").rglob("*.md")])
CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)


def prose(page):
    """Without code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", lambda code: "x" * len(code.group()), CODE.sub("", page.read_text(encoding="utf-8")))


def anchors(page):
    """As GitHub makes them of headings."""
    found = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", CODE.sub("", page.read_text(encoding="utf-8")), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower().replace("\\", "")
        found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def broken(page):
    for target in re.findall(r"(?:\]\(|^\[[^]]+\]:[ \t]+)([^)\s]+)", prose(page), re.M):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT):
            yield f"{page.relative_to(ROOT)}: no file {target}"
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
            yield f"{page.relative_to(ROOT)}: no heading {target}"


def test_links_lead_somewhere():
    assert len(PAGES) > 50
    assert not [problem for page in PAGES for problem in broken(page)]


def test_a_broken_link_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "there.md").write_text("# A `heading`, of [it](x)\n")
    (tmp_path / "page.md").write_text("[a](there.md#a-heading-of-it) [b](gone.md) [c](there.md#gone) [d](https://x/y) `[e](code.md)`\n\n[e]: lost.md\n```\n[f](code.md)\n```\n")
    assert list(broken(tmp_path / "page.md")) == ["page.md: no file gone.md", "page.md: no heading there.md#gone",
                                                  "page.md: no file lost.md"]


def test_the_index_names_every_page():
    index = prose(DOCS / "README.md")
    for page in sorted(DOCS.glob("*.*")):
        assert f"]({page.name})" in index or page.name == "README.md", page.name


def test_pages_of_tables_are_what_the_tables_say(hec):
    done = subprocess.run([sys.executable, ROOT / "scripts" / "gen-pages", hec.path, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}renew them: scripts/gen-pages build/bin/hec"


@pytest.mark.parametrize("change", ["causes.md", "levers.md"])
def test_a_page_that_differs_is_seen(hec, change):
    for name in ("scripts/gen-pages", "scripts/columns.py", "docs/causes.md", "docs/levers.md", "docs/lever-hazards.md", "docs/words.md"):
        (hec.folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, hec.folder / name)
    page = hec.folder / "docs" / change
    page.write_text(page.read_text(encoding="utf-8").replace("Needs ", "Wants ").replace("idle", "busy"), encoding="utf-8")
    done = subprocess.run([sys.executable, hec.folder / "scripts" / "gen-pages", hec.path, "--check"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.split()[0] == f"docs/{change}"


def test_quoted_reports_are_of_the_example():
    """But for the run on the simulated GPU, which is said to be one."""
    example = (DOCS / "example-report.txt").read_text(encoding="utf-8")
    quoted = re.findall(r"^```text\n(.*?)^```$", (DOCS / "getting-started.md").read_text(encoding="utf-8"), re.M | re.S)
    assert len(quoted) == 3 and "on a simulated h200" in quoted[0]
    for part in quoted[1:]:
        assert part in example


@pytest.mark.parametrize("page", ["getting-started.md", "README.md"])
def test_quoted_commands_and_options_exist(hec, page):
    """Each `hec VERB --option` of a page that people type from is in the help."""
    text = (ROOT / page if page == "README.md" else DOCS / page).read_text(encoding="utf-8")
    verbs = set(re.findall(r"^\s+([a-z]+) ", hec("--help").stdout, re.M))
    for verb, rest in re.findall(r"(?:^|`| )hec ([a-z]+)\b([^`\n]*)", text):
        if verb not in verbs or verb in ("sim",):
            continue
        known = hec(verb, "--help").stdout
        for option in re.findall(r"(?<=[ \[|])--[a-z-]+", rest.split(" -- ")[0]):
            assert option in known, (verb, option)
