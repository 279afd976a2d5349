"""Run files as Python and as Jupyter see them; imported only by :func:`hec.report`."""

import html
import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Optional, Union

_HEIGHT = 900  # of the page in a notebook, in pixels; it scrolls


def _candidates() -> "list[str]":
    """Where the command may be, best first: HEC_BIN, the tree that this package was installed in, the PATH."""
    named = os.environ.get("HEC_BIN")
    found = [named] if named else []
    for file in (os.path.abspath(__file__), os.path.realpath(__file__)):
        package = os.path.dirname(file)
        prefix = os.path.normpath(os.path.join(package, "..", "..", "..", ".."))
        if package == os.path.join(prefix, "share", "hec", "python", "hec"):
            found.append(os.path.join(prefix, "bin", "hec"))
    found.append("hec")
    return found


def _command() -> str:
    for candidate in _candidates():
        path = shutil.which(candidate)
        if path:
            return path
    raise FileNotFoundError("hec is not on the PATH; HEC_BIN may name it")


def _run(*arguments: str) -> str:
    done = subprocess.run([_command(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(said or "hec %s: status %d" % (arguments[0], done.returncode))
    return done.stdout.decode("utf-8", "replace")


class Report:
    """A run file. ``data`` is what ``hec report --json`` prints (docs/report.schema.json); ``str()`` of it is the report as
    on a terminal; in a notebook it is the page of ``hec report --html``."""

    def __init__(self, file: "Union[str, os.PathLike[str]]") -> None:
        path = os.fspath(file)
        self._file = os.path.join(os.curdir, path) if path.startswith("-") else path
        self.data: Dict[str, Any] = json.loads(_run("report", "--json", self._file))

    def __repr__(self) -> str:
        return "hec.report(%r)" % self._file

    def __str__(self) -> str:
        return _run("report", "--color", "never", self._file)

    def _repr_markdown_(self) -> str:
        return _run("report", "--md", self._file)

    def _repr_html_(self) -> Optional[str]:
        """The page in a frame of its own: it may run its own scripts, and reach neither the notebook nor the network."""
        with tempfile.TemporaryDirectory(prefix="hec-") as folder:
            path = os.path.join(folder, "report.html")
            try:
                _run("report", "--html", "-o", path, self._file)
            except RuntimeError:
                return None  # the notebook shows the Markdown
            with open(path, encoding="utf-8") as page:
                text = page.read()
        return '<iframe sandbox="allow-scripts" allow="clipboard-write" title="HEC report" style="width: 100%%; height: %dpx; border: 0" srcdoc="%s"></iframe>' % (
            _HEIGHT, html.escape(text, quote=True))  # fmt: skip
