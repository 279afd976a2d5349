"""hec.report(): a run file as data, as text and as IPython's display protocol asks for it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import hec

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data_decode.hec"


@pytest.fixture
def run_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HEC_BIN", os.environ["HEC"])
    monkeypatch.delenv("HEC_PRICE", raising=False)
    return pathlib.Path(shutil.copy(GOLDEN, tmp_path))


def said(*arguments):
    return subprocess.run([os.environ["HEC"], "report", *arguments], capture_output=True, text=True, check=True).stdout


def test_data_and_text_are_those_of_the_command(run_file):
    report = hec.report(run_file)
    assert report.data == json.loads(said("--json", run_file)) and report.data["findings"][0]["cause"] == "data"
    assert str(report) == said("--color", "never", run_file) and "starved for data" in str(report)
    assert repr(report) == f"hec.report({str(run_file)!r})" and "\033" not in str(report)


def display(thing):
    """What IPython's display formatter sends to a notebook: each form that is there and is not None."""
    forms = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_"}
    made = {kind: getattr(thing, method)() for kind, method in forms.items() if callable(getattr(thing, method, None))}
    return {kind: form for kind, form in made.items() if form is not None}


def test_a_notebook_gets_the_page_and_markdown(run_file):
    shown = display(hec.report(str(run_file)))
    assert shown["text/markdown"] == said("--md", run_file)
    has_page = "--html" in subprocess.run([os.environ["HEC"], "report", "--help"], capture_output=True, text=True).stdout
    assert ("text/html" in shown) == has_page
    assert not has_page or "Content-Security-Policy" in shown["text/html"]


PAGE = """#!/bin/sh
case "$*" in
*--html*) shift; while [ "$1" != -o ]; do shift; done; printf '<script>"&amp;"</script><p title="a">' >"$2" ;;
*) exec "$HEC" "$@" ;;
esac
"""


def test_the_page_is_in_a_frame_that_reaches_nothing(run_file, tmp_path, monkeypatch):
    (tmp_path / "page").write_text(PAGE)
    (tmp_path / "page").chmod(0o755)
    monkeypatch.setenv("HEC_BIN", str(tmp_path / "page"))
    frame = display(hec.report(run_file))["text/html"]
    assert re.fullmatch(r'<iframe sandbox="allow-scripts" allow="clipboard-write" [^<>]*></iframe>', frame), "all of the page is in one attribute"
    assert "allow-same-origin" not in frame
    assert 'srcdoc="&lt;script&gt;&quot;&amp;amp;&quot;&lt;/script&gt;&lt;p title=&quot;a&quot;&gt;"' in frame


def test_what_cannot_be_read_is_said_in_hecs_words(run_file, tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="nothing.hec"):
        hec.report(tmp_path / "nothing.hec")
    monkeypatch.chdir(tmp_path)
    run_file.rename("-o.hec")
    assert hec.report("-o.hec").data["run"]["command"], "no option"
    monkeypatch.setenv("HEC_BIN", str(tmp_path / "no such"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="HEC_BIN"):
        hec.report("-o.hec")


def test_the_command_of_the_same_tree_is_found(tmp_path, source):
    package = tmp_path / "share" / "hec" / "python" / "hec"
    package.parent.mkdir(parents=True)
    shutil.copytree(source / "python/hec", package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hec").symlink_to(os.environ["HEC"])
    program = "from hec import _report; print(_report._command())"
    environment = {name: value for name, value in os.environ.items() if name != "HEC_BIN"}
    done = subprocess.run([sys.executable, "-c", program], env={**environment, "PYTHONPATH": str(package.parent)},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "bin" / "hec")


def test_marks_need_none_of_it():
    program = "import sys, hec; hec.step(); print([name for name in ('hec._report', 'json', 'subprocess', 'html') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True,
                          env={**os.environ, "HEC_SOCKET": ""}).stdout == "[]\n"  # fmt: skip
