"""deploy/: what would be installed on nodes says what the program understands, and asks for no more than it needs."""
import pathlib
import re
import shutil
import socket
import stat
import subprocess

import pytest
import yaml

from conftest import BINARY, ROOT

DEPLOY = ROOT / "deploy"
OBJECTS = [(path.name, made) for path in sorted(DEPLOY.glob("kubernetes/**/*.yaml"))
           for made in yaml.safe_load_all(path.read_text())]


def of_kind(kind):
    found = [made for _, made in OBJECTS if made["kind"] == kind]
    assert found, kind
    return found


def options_of(words):
    return [word.partition("=")[0] for word in words if word.startswith("-")]


def test_every_option_is_one_of_the_agent():
    known = subprocess.run([BINARY, "agent", "--help"], capture_output=True, text=True, check=True).stdout
    container = of_kind("DaemonSet")[0]["spec"]["template"]["spec"]["containers"][0]
    unit = (DEPLOY / "systemd" / "hec-agent.service").read_text()
    words = [*container["args"], *(word for line in re.findall(r"ExecStart=(.*)", unit) for word in line.split()),
             *yaml.safe_load(re.search(r"^CMD (.*)$", (DEPLOY / "container" / "Containerfile").read_text(), re.M)[1])]
    assert len(options_of(words)) > 3
    for option in options_of(words):
        assert re.search(rf"(^|\s){option}\b", known), option


def test_the_daemon_set_has_few_rights():
    spec = of_kind("DaemonSet")[0]["spec"]["template"]["spec"]
    security = spec["containers"][0]["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and not security["allowPrivilegeEscalation"]
    assert security["readOnlyRootFilesystem"] and "privileged" not in security
    assert not spec["automountServiceAccountToken"] and not spec.get("hostNetwork")
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in spec["volumes"]}
    for volume in spec["volumes"]:
        path = volume.get("hostPath", {}).get("path", "")
        assert not path or mounts[volume["name"]].get("readOnly") or path.endswith("/hec"), volume
    assert not {made["kind"] for _, made in OBJECTS} & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"}


def test_objects_refer_to_each_other():
    daemon = of_kind("DaemonSet")[0]
    template = daemon["spec"]["template"]
    monitor = of_kind("PodMonitor")[0]
    labels = template["metadata"]["labels"]
    for selector in (daemon["spec"]["selector"], monitor["spec"]["selector"]):
        assert selector["matchLabels"].items() <= labels.items()
    assert template["spec"]["serviceAccountName"] == of_kind("ServiceAccount")[0]["metadata"]["name"]
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports
    for path in DEPLOY.glob("kubernetes/*/kustomization.yaml"):
        for resource in yaml.safe_load(path.read_text())["resources"]:
            assert (path.parent / resource).exists(), resource


def test_a_target_leaves_the_labels_of_tenants_alone():
    rules = of_kind("PodMonitor")[0]["spec"]["podMetricsEndpoints"][0]["relabelings"]
    dropped = next(rule["regex"] for rule in rules if rule.get("action") == "labeldrop")
    for label in ("pod", "namespace", "container"):
        assert re.fullmatch(dropped, label)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_knows_every_line_of_the_unit(tmp_path):
    unit = tmp_path / "hec-agent.service"
    unit.write_text((DEPLOY / "systemd" / "hec-agent.service").read_text().replace("/usr/bin/hec", BINARY))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "hec-agent" not in done.stderr, done.stderr


@pytest.mark.parametrize("job, said", [("41", "job 41 of ada: 1684000 J on this node"), ("4", None), ("", None)])
def test_the_epilog_adds_up_a_job(tmp_path, job, said):
    """On all devices and parts, and of no job whose id only begins so, nor what another user claims to be of it."""
    (tmp_path / "page").write_text('# TYPE hec_energy_joules_total counter\n'
                                   'hec_energy_joules_total{gpu="0",part="active",hpc_job="41"} 1e6\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="41",user="ada"} 684000.2\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="410"} 5\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="41",user="eve"} 9e9\n'
                                   'hec_job_seconds_total{hpc_job="41"} 7\n')
    for name, body in (("curl", f"cat {tmp_path}/page"), ("logger", f'echo "$*" >>{tmp_path}/log')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    done = subprocess.run([DEPLOY / "slurm" / "epilog.sh"], env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": job,
                                                                 "SLURM_JOB_USER": "ada"}, timeout=60)
    assert done.returncode == 0
    log = tmp_path / "log"
    assert (log.read_text().strip() if log.exists() else None) == (said and f"-t hec {said}")


@pytest.mark.parametrize("change, speaks", [
    ({}, True), ({"CUDA_VISIBLE_DEVICES": ""}, False), ({"CUDA_INJECTION64_PATH": "/theirs.so"}, False),
    ({"HEC_AGENT_SOCKET": "/nowhere"}, False),
])
def test_a_step_reports_where_it_can(tmp_path, change, speaks):
    """What the prolog exports is there, in a tree of HEC; no step without a GPU or agent, or beside another tool, is changed."""
    prefix = pathlib.Path(BINARY).resolve().parents[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent.sock"))
        environment = {"PATH": "/usr/bin:/bin", "HEC_PREFIX": str(prefix), "HEC_AGENT_SOCKET": str(tmp_path / "agent.sock"),
                       "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": "/mine", **change}
        done = subprocess.run([DEPLOY / "slurm" / "task_prolog.sh"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and bool(done.stdout) == speaks
    exported = dict(re.fullmatch(r"export (\w+)=(.*)", line).groups() for line in done.stdout.splitlines())
    for name in ("CUDA_INJECTION64_PATH", "HEC_LIB", "PYTHONPATH") if speaks else ():
        assert pathlib.Path(exported[name].partition(":")[0]).exists(), name
    assert not speaks or exported["PYTHONPATH"].endswith(":/mine")
