"""deploy/: rules, alerts and dashboards, and the page, before the real promtool and a real Prometheus."""
import collections
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import pytest
import yaml

from agent_common import SANITIZED, Agent, Machine, parse
from conftest import BINARY, HANGS_S, Hec
from prometheus import (DEPLOY, ROOT, Prometheus, dashboard_expressions, published_expressions, rule_expressions)

PAGES = pathlib.Path(os.environ.get("HEC_BINARY_DIR", str(ROOT / "build"))) / "tests" / "bin" / "fleet_pages"


def run(*command, **options):
    return subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=HANGS_S, **options)


def page(node=0, seconds=100, gpus="8+"):
    done = run(PAGES, gpus, "page", node, seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout


def complaints(text):
    """What promtool says of a page, but for dcgm-exporter's own names and labels, which are no matter of ours."""
    done = run("promtool", "check", "metrics", input=text)
    lines = [line for line in done.stderr.splitlines() if line and not line.lower().startswith("dcgm_")]
    assert not any("error" in line.lower() for line in lines), done.stderr
    return lines


def test_promtool_has_nothing_against_the_page():
    assert complaints(page()) == []
    assert complaints("# TYPE hec_x_total gauge\nhec_x_total 1\n") != []


@pytest.mark.parametrize("command", [
    ["check", "config", "prometheus.yml"], ["check", "rules", "rules.yml", "alerts.yml"], ["test", "rules", "rules_test.yml"],
])
def test_promtool_has_nothing_against_the_rules(command):
    done = run("promtool", *command, cwd=DEPLOY / "prometheus")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test():
    tested = re.findall(r"alertname: (\w+)", (DEPLOY / "prometheus" / "rules_test.yml").read_text())
    named = re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus" / "alerts.yml").read_text())
    assert named and set(named) == set(tested)


def test_dashboards_are_what_their_source_makes(tmp_path):
    done = run(DEPLOY / "grafana" / "make", tmp_path)
    assert done.returncode == 0, done.stderr
    for made in tmp_path.iterdir():
        assert made.read_text() == (DEPLOY / "grafana" / made.name).read_text(), f"run deploy/grafana/make for {made.name}"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (DEPLOY / "grafana").glob("*.json")}


def test_the_document_has_the_tables_of_the_program():
    text = (ROOT / "docs" / "metrics.md").read_text()
    tables = re.search(r"<!-- tables:begin[^\n]*-->\n(.*)<!-- tables:end -->", text, re.S).group(1)
    printed = run(PAGES.with_name("agent_tables")).stdout
    assert tables == run(sys.executable, ROOT / "scripts" / "columns.py", "--wrap", input=printed).stdout


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Three nodes in eight ways of use: the first has lost a counter, the second cannot save, the third drops; a fourth is down."""
    pages = subprocess.Popen([PAGES, "8+", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(pages.stdout.readline())
    nodes = [{"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/{node}/metrics", "instance": f"node-{node}"}}
             for node in range(3)]
    nodes.append({"targets": ["127.0.0.1:1"], "labels": {"instance": "down"}})
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), nodes)
    yield server
    server.close()
    pages.stdin.close()
    pages.wait(HANGS_S)


def expressions(**variables):
    yield from dashboard_expressions(variables)
    yield from rule_expressions()
    yield from published_expressions()


def test_every_expression_returns_data(fleet):
    # that a target has gone shows after an hour: rules_test.yml
    left = [row for row in expressions(team="speech", tenant="asr-0") if row[0] != "alerts.yml: HecAgentAbsent"]
    assert len(left) > 60

    def all_there():
        left[:] = [row for row in left if not fleet.ask(row[1])]
        return not left

    fleet.wait(all_there, lambda: f"no data: {left}")


def wait_for(server, expression, count):
    """So many series of it or more, of one instant: a target may not have been scraped yet, or its last scrape have come too late."""
    found = []

    def complete():
        found[:] = server.ask(expression)
        return len(found) >= count

    server.wait(complete, lambda: f"not {count}: {expression}, {found}")
    return found


def assert_adds_up(server, devices):
    device = "sum by (instance, UUID) (hec_device_energy_joules_total)"
    for parts in ("hec_energy_joules_total", "hec_device_state_joules_total"):
        off = wait_for(server, f"abs(sum by (instance, UUID) ({parts}) - {device})", devices)
        assert len(off) == devices and all(float(series["value"][1]) < 1e-5 for series in off), (parts, off)


def test_what_prometheus_keeps_adds_up(fleet):
    """OpenMetrics was asked for, names are as in the text format, and each joule is in one series of each kind."""
    assert_adds_up(fleet, 24)
    fleet.wait(lambda: [target["health"] for target in fleet.get("targets")["activeTargets"]].count("up") == 3,
               lambda: fleet.get("targets"))
    kinds = fleet.get("metadata", metric="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    assert kinds["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"][0]["type"] == "unknown"
    assert fleet.get("metadata", metric="hec_device_energy_joules")["hec_device_energy_joules"][0]["unit"] == "joules"


def test_the_documented_number_of_series():
    """What a GPU costs a Prometheus, by default (docs/fleet.md)."""
    pages = [page(node, gpus="8") for node in range(40)]
    a_gpu = sum(not line.startswith("#") for text in pages for line in text.splitlines()) / (8 * len(pages))
    said = float(re.search(r"series scraped \| [\d ]+: ([\d.]+) a GPU", (ROOT / "docs" / "fleet.md").read_text())[1])
    assert a_gpu <= 40 and a_gpu == pytest.approx(said, abs=0.2)
    whole = [page(node, gpus="8a") for node in range(40)]
    assert sum(map(len, whole)) > sum(map(len, pages)) and all(families(text).keys() <= families(more).keys()
                                                               for text, more in zip(pages, whole))


def test_nodes_stay_apart(tmp_path):
    """The scrape configuration as shipped: dashboards of others group by `node`, and GPU 0 of two nodes are two."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"][0]
    pages = subprocess.Popen([PAGES, "2+", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(pages.stdout.readline())
    nodes = [{"targets": [f"{host}:{port}"], "labels": {"__metrics_path__": f"/{node}/metrics"}}
             for node, host in enumerate(("127.0.0.1", "localhost"))]
    server = Prometheus(tmp_path, nodes, relabel=config["relabel_configs"])
    try:
        wait_for(server, "hec_device_up", 4)
        seen = wait_for(server, "avg by (node, gpu) (dcgm_gpu_utilization)", 4)
        assert {(row["metric"]["node"], row["metric"]["gpu"]) for row in seen} == {
            (node, gpu) for node in ("127.0.0.1", "localhost") for gpu in "01"}
    finally:
        server.close()
        pages.stdin.close()
        pages.wait(HANGS_S)


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A real agent of a simulated node with eight GPUs, of which a program uses one."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("node"))
    machine = Machine(hec, "h200x8")
    started = Agent(hec, "--use-old-namespace", env=machine.env)
    program = machine.play("data-starved", 300)
    yield started
    assert started.stop() == 0
    program.kill()
    program.wait(HANGS_S)
    machine.close()


@pytest.fixture(scope="module")
def watched(agent, tmp_path_factory):
    server = Prometheus(tmp_path_factory.mktemp("watched"), [{"targets": [f"{agent.host}:{agent.port}"]}])
    yield server
    server.close()


def families(text):
    """Name of each family: its type, its help, and the names of its labels."""
    found = collections.defaultdict(set)
    for line in text.splitlines():
        if line.startswith("# "):
            found[line.split()[2]].add(line)
        else:
            name, labels = re.fullmatch(r"(\w+)(\{.*\})? \S+", line).groups()
            found[name].update(re.findall(r'(\w+)="', labels or ""))
    return found


# Of a node where nothing is wrong and no job reports: what its dashboards do not show.
QUIET = re.compile(r"alerts\.yml|job\.json: (?!Energy|Cost|CO2|Power|Busy)|"
                   r"rules\.yml: hec:tenant_(recoverable|state|reported|units)|"
                   r"fleet\.json: (Jobs by what|Scale out)|node\.json: (Host|Throttled|Lost to|XID errors)")


def test_dashboards_show_the_agent(agent, watched):
    page = agent.until(lambda page: page.all("hec_energy_joules_total", part="active", command="hec"))
    labels = page.all("hec_energy_joules_total", part="active", command="hec")[0][0]
    left = [row for row in expressions(team=labels["user"], tenant=labels["command"]) if not QUIET.match(row[0])]
    assert len(left) > 60

    def all_there():
        left[:] = [row for row in left if not watched.ask(row[1])]
        return not left

    watched.wait(all_there, lambda: f"no data: {left}")
    assert len(wait_for(watched, "DCGM_FI_DEV_POWER_USAGE", 8)) == 8


def test_pages_that_are_made_up_are_like_real_ones(agent, watched):
    wait_for(watched, "DCGM_FI_DEV_POWER_USAGE", 8)  # the page is complete
    text = agent.page().text
    real, made = families(text), families(page())
    assert complaints(text) == []
    assert set(real) <= set(made)
    for name, what in real.items():
        assert what <= made[name], name


def test_what_prometheus_keeps_of_the_agent_adds_up(watched):
    assert_adds_up(watched, 8)


def slurm_processes(folder, count):
    """A /proc of `count` processes from 100 on, each of a Slurm job of that number."""
    for pid in range(100, 100 + count):
        place = folder / str(pid)
        place.mkdir(parents=True)
        (place / "stat").write_text(f"{pid} (train) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 7 1000 100 0 0\n")
        (place / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{pid}/step_0/user/task_0\n")
        (place / "status").write_text("Name:\ttrain\nUid:\t0\t0\t0\t0\n")


def lost(tmp_path, lag, jobs, seconds, gap, kept=0, billed="increase({})"):
    """The part of the jobs' joules that is not billed at scrapes of 15 s, asked of promtool; their last values are the truth. kept: the series
    end, so many scrapes later, and the bill is made after that."""
    slurm_processes(tmp_path / "proc", jobs)
    done = run(PAGES.with_name("node_scrapes"), tmp_path / "proc", lag, jobs, seconds, gap)
    assert done.returncode == 0, done.stderr
    pages = [parse(text) for text in done.stdout.split("# scrape\n")[1:]]
    series = collections.defaultdict(lambda: ["_"] * len(pages))
    for at, page in enumerate(pages):
        device, sums = None, collections.Counter()
        for name, labels, value in page:
            if name in ("hec_energy_joules_total", "hec_device_energy_joules_total", "hec_device_state_joules_total"):
                sums[name] += value
            if name == "hec_energy_joules_total" and "hpc_job" in labels and labels["part"] == "active":
                series[name + "{" + ",".join(f'{key}="{text}"' for key, text in sorted(labels.items())) + "}"][at] = str(value)
        assert max(sums.values()) - min(sums.values()) < 1e-6 * max(sums.values()) + 1e-9, sums  # of one time, in every scrape
    assert len(series) == jobs
    end = f"{15 * (len(pages) - 1 + (kept and kept + 20))}s"
    rest = f" {{}}x{kept - 1} stale" if kept else ""
    window = "hec_energy_joules_total[" + end + "]"
    total = sum(float(values[-1]) for values in series.values())
    assert total > 0.9 * jobs * seconds * 480
    test = {"evaluation_interval": "15s", "tests": [{
        "interval": "15s", "input_series": [{"series": name, "values": " ".join(values) + rest.format(values[-1])} for name, values in series.items()],
        "promql_expr_test": [{"expr": f"sum({billed.replace('{}', window)})", "eval_time": end,
                              "exp_samples": [{"labels": "{}", "value": -1}]}]}]}
    (tmp_path / "test.yml").write_text(json.dumps(test))
    said = run("promtool", "test", "rules", tmp_path / "test.yml").stdout + run("promtool", "test", "rules", tmp_path / "test.yml").stderr
    return 1 - float(re.search(r"got:\s*\{\} (\S+)", said.replace("\n", " "))[1]) / total


@pytest.mark.parametrize("jobs, seconds, gap, without", [(9, 12, 30, 0.2), (14, 5, 20, 0.6)])
def test_jobs_shorter_than_a_scrape_are_counted(tmp_path, jobs, seconds, gap, without):
    """A series begins with 0 and outlives its job: at most 2 % are lost. With no lag most of it is. increase() adds half a scrape behind the end
    of a series: it is there for 300 s after its job, so at most 2.5 % are billed too much; what docs/fleet.md bills by is exact."""
    assert abs(lost(tmp_path / "late", 17, jobs, seconds, gap)) <= 0.02
    assert -0.025 <= lost(tmp_path / "ended", 17, jobs, seconds, gap, 300 // 15) <= 0
    assert abs(lost(tmp_path / "exact", 17, jobs, seconds, gap, 300 // 15, "max_over_time({}) - min_over_time({})")) < 1e-6
    assert lost(tmp_path / "at_once", 0, jobs, seconds, gap) > without


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes pages, but for the first, which it refuses."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(503 if len(self.server.got) == 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_metrics_are_pushed(tmp_path):
    """The page's samples, all of them, as OTLP has them; what a collector refuses is counted."""
    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as collector:
        collector.got = []
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{collector.server_port}/v1/metrics"
        agent = Agent(Hec(BINARY, tmp_path), "--sim", "h200x2", "--otlp", url,
                      env={**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": "x-scope=a b,authorization=Bearer t",
                           "OTEL_METRIC_EXPORT_INTERVAL": "1000"})
        page = agent.until(lambda page: page.all("hec_agent_dropped_total", what="otlp_pages")[0][1] == 1 and len(collector.got) > 1)
        assert agent.stop() == 0
        collector.shutdown()
    path, headers, made = collector.got[1]
    assert path == "/v1/metrics" and headers["Content-Type"] == "application/json"
    assert headers["x-scope"] == "a b" and headers["authorization"] == "Bearer t"
    (resource,) = made["resourceMetrics"]
    attributes = {entry["key"]: entry["value"]["stringValue"] for entry in resource["resource"]["attributes"]}
    assert attributes["service.name"] == "hec-agent" and attributes["host.name"]
    metrics = {metric["name"]: metric for scope in resource["scopeMetrics"] for metric in scope["metrics"]}
    assert set(metrics) == {name for name, _, _ in page.samples}
    energy = metrics["hec_device_energy_joules_total"]
    assert energy["unit"] == "J" and energy["sum"]["isMonotonic"] and energy["sum"]["aggregationTemporality"] == 2
    for point, (labels, _) in zip(energy["sum"]["dataPoints"], page.all("hec_device_energy_joules_total")):
        assert {entry["key"]: entry["value"]["stringValue"] for entry in point["attributes"]} == labels
        assert point["asDouble"] > 0 and abs(int(point["timeUnixNano"]) / 1e9 - time.time()) < 600
    assert "sum" in metrics["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] and "gauge" in metrics["DCGM_FI_DEV_GPU_TEMP"]


@pytest.mark.parametrize("url, env, why", [
    ("collector:4318", {}, "begins with http://"), ("http://c/", {"OTEL_EXPORTER_OTLP_HEADERS": "x"}, "no list of NAME=VALUE"),
    ("http://c/", {"OTEL_METRIC_EXPORT_INTERVAL": "1s"}, "no number of milliseconds"),
])
def test_a_push_that_cannot_be_is_refused(url, env, why):
    done = run(BINARY, "agent", "--sim", "h200", "--listen", "127.0.0.1:0", "--otlp", url,
               *(["--no-sandbox"] if SANITIZED else []), env={**os.environ, **env})
    assert done.returncode == 2 and why in done.stderr
