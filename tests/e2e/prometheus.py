"""A real Prometheus (Debian's) on a port of its own, and the expressions that people ask it."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.parse
import urllib.request

import yaml

from conftest import HANGS_S, ROOT

DEPLOY = ROOT / "deploy"


def listens(pid):
    """The port on which the process listens; None: on none. Not every version says it."""
    with contextlib.suppress(OSError):
        sockets = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                return int(fields[1].rpartition(":")[2], 16)


class Prometheus:
    def __init__(self, folder, targets, interval="1s", rules_interval="1s", relabel=()):
        """targets: of static_configs; relabel: of relabel_configs. The rules of deploy/ are evaluated, every rules_interval instead of once a minute.
        A scrape has `interval` to answer, and one that is later takes a target's series away until the next: what is compared is waited for."""
        self.folder = pathlib.Path(folder)
        files = []
        for path in DEPLOY.glob("prometheus/*.yml"):
            content = yaml.safe_load(path.read_text())
            if "groups" in content and "tests" not in content:
                for group in content["groups"]:
                    group["interval"] = rules_interval
                (self.folder / path.name).write_text(yaml.safe_dump(content))
                files.append(path.name)
        config = {"global": {"scrape_interval": interval, "evaluation_interval": rules_interval}, "rule_files": files,
                  "scrape_configs": [{"job_name": "hec", "static_configs": targets, "relabel_configs": list(relabel)}]}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log = open(self.folder / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
             "--web.listen-address=127.0.0.1:0"], stdout=self.log, stderr=self.log)
        self.address = "http://127.0.0.1:%d" % self.wait(lambda: listens(self.process.pid), "it does not listen")
        self.wait(self.ready, "it does not get ready")

    def text(self):
        return (self.folder / "prometheus.log").read_text()

    def ready(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(self.address + "/-/ready", timeout=HANGS_S).status == 200

    def wait(self, what, why):
        end = time.monotonic() + HANGS_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()
            found = what()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{why() if callable(why) else why}\n{self.text()[-4000:]}")

    def get(self, path, **query):
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=HANGS_S) as answer:
            return json.load(answer)["data"]

    def ask(self, expression, **query):
        return self.get("query", query=expression, **query)["result"]

    def close(self):
        self.process.terminate()
        self.process.wait(HANGS_S)
        self.log.close()


def dashboard_expressions(variables, folder=DEPLOY / "grafana"):
    """(where, expression) of each panel, and of each variable what its values are taken from."""
    for path in sorted(folder.glob("*.json")):
        made = json.loads(path.read_text())
        for panel in made["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", filled(target["expr"], variables)
        for variable in made["templating"]["list"]:
            match = re.fullmatch(r"label_values\((.*), *(\w+)\)", variable.get("definition", ""))
            if match:
                yield f"{path.name}: {variable['name']}", filled(f"count by ({match[2]}) ({match[1]})", variables)


def filled(expression, variables):
    for name, value in {"__range": "5m", "__rate_interval": "1m", "instance": ".*", "gpu": ".*", **variables}.items():
        expression = expression.replace("$" + name, value)
    return expression


def rule_expressions():
    for path in sorted(DEPLOY.glob("prometheus/*.yml")):
        content = yaml.safe_load(path.read_text())
        for group in content.get("groups", []):
            for rule in group["rules"]:
                yield f"{path.name}: {rule.get('record') or rule['alert']}", rule["expr"]


def published_expressions():
    for line in (ROOT / "tests" / "data" / "dashboard-expressions.txt").read_text().splitlines():
        if not line.startswith("#"):
            yield "dashboard-expressions.txt", filled(line, {})
