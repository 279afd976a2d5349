"""deploy/: what would be installed on nodes says what the program understands, and asks for no more than it needs."""
import pathlib
import re
import shutil
import socket
import stat
import subprocess

import pytest
import yaml

from conftest import BINARY, HANGS_S, ROOT

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
    rights = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"}
    assert not {made["kind"] for path in DEPLOY.glob("kubernetes/[bm]*/*.yaml") for made in yaml.safe_load_all(path.read_text())} & rights
    assert of_kind("ClusterRole")[0]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]  # in api/, for who asks for it


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl here")
def test_with_the_api_server_the_links_are_not_mounted():
    made = subprocess.run(["kubectl", "kustomize", DEPLOY / "kubernetes" / "api"], capture_output=True, text=True, timeout=HANGS_S)
    assert made.returncode == 0, made.stderr
    daemon = next(thing for thing in yaml.safe_load_all(made.stdout) if thing["kind"] == "DaemonSet")
    spec = daemon["spec"]["template"]["spec"]
    container, = spec["containers"]
    assert spec["automountServiceAccountToken"] and "NODE_NAME" in {entry["name"] for entry in container["env"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]} == {
        "pod-resources", "state", "run", "tmp"}


def test_objects_refer_to_each_other():
    daemon = of_kind("DaemonSet")[0]
    template = daemon["spec"]["template"]
    monitor, by_service, service = (of_kind(kind)[0] for kind in ("PodMonitor", "ServiceMonitor", "Service"))
    labels = template["metadata"]["labels"]
    for selector in (daemon["spec"]["selector"], monitor["spec"]["selector"]):
        assert selector["matchLabels"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert by_service["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert template["spec"]["serviceAccountName"] == of_kind("ServiceAccount")[0]["metadata"]["name"]
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert {end["port"] for end in by_service["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}
    for path in DEPLOY.glob("kubernetes/*/kustomization.yaml"):
        for resource in yaml.safe_load(path.read_text())["resources"]:
            assert (path.parent / resource).exists(), resource


@pytest.mark.parametrize("kind, endpoints", [("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")])
def test_a_target_leaves_the_labels_of_tenants_alone(kind, endpoints):
    rules = of_kind(kind)[0]["spec"][endpoints][0]["relabelings"]
    dropped = next(rule["regex"] for rule in rules if rule.get("action") == "labeldrop")
    for label in ("pod", "namespace", "container"):
        assert re.fullmatch(dropped, label)
    assert {rule.get("targetLabel") for rule in rules} >= {"instance", "node"}


def test_the_operator_selects_rules_and_monitors():
    """By the label `release`, which kube-prometheus-stack asks for; the rules are those of the files."""
    done = subprocess.run([DEPLOY / "prometheus" / "operator", "mine"], capture_output=True, text=True, check=True, timeout=HANGS_S)
    for made, name in zip(yaml.safe_load_all(done.stdout), ("rules", "alerts"), strict=True):
        assert made["kind"] == "PrometheusRule" and made["metadata"]["labels"] == {"release": "mine"}
        assert made["spec"] == yaml.safe_load((DEPLOY / "prometheus" / f"{name}.yml").read_text())
    for kind in ("PodMonitor", "ServiceMonitor"):
        assert of_kind(kind)[0]["metadata"]["labels"]["release"]


def test_joules_are_as_late_as_prometheus_asks():
    container = of_kind("DaemonSet")[0]["spec"]["template"]["spec"]["containers"][0]
    lag = float(container["args"][container["args"].index("--scrape-interval") + 1])
    scrapes = [endpoint["interval"] for monitor in of_kind("PodMonitor") for endpoint in monitor["spec"]["podMetricsEndpoints"]]
    scrapes.append(yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["global"]["scrape_interval"])
    assert scrapes and all(float(scrape.removesuffix("s")) <= lag for scrape in scrapes)


# kubernetes.io/docs/concepts/security/pod-security-standards: what `restricted` asks for, `baseline` included.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def against_restricted(spec):
    """What PodSecurity has against a pod."""
    of_pod = spec.get("securityContext", {})
    found = [f"spec.{name}" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    found += [f"volume {volume['name']}" for volume in spec.get("volumes", []) if not set(volume) - {"name"} <= VOLUMES]
    for container in spec.get("initContainers", []) + spec["containers"]:
        security = {**of_pod, **container.get("securityContext", {})}
        rights = security.get("capabilities", {})
        wrong = {
            "privileged": security.get("privileged"), "allowPrivilegeEscalation": security.get("allowPrivilegeEscalation") is not False,
            "capabilities": "ALL" not in rights.get("drop", []) or set(rights.get("add", [])) - {"NET_BIND_SERVICE"},
            "runAsNonRoot": security.get("runAsNonRoot") is not True, "runAsUser": security.get("runAsUser") == 0,
            "seccompProfile": security.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"),
            "procMount": security.get("procMount", "Default") != "Default", "hostPort": any("hostPort" in port for port in container.get("ports", [])),
        }
        found += [f"{container['name']}: {name}" for name, is_wrong in wrong.items() if is_wrong]
    return found


def test_a_job_is_admitted_where_pods_are_restricted():
    assert against_restricted(of_kind("DaemonSet")[0]["spec"]["template"]["spec"]) != []  # the check sees something
    spec = of_kind("Job")[0]["spec"]["template"]["spec"]
    assert against_restricted(spec) == []
    claims = {made["metadata"]["name"]: made for made in of_kind("PersistentVolumeClaim")}
    volumes = {made["metadata"]["name"]: made["spec"] for made in of_kind("PersistentVolume")}
    for volume in spec["volumes"]:
        if "persistentVolumeClaim" not in volume:
            continue
        claim = claims[volume["persistentVolumeClaim"]["claimName"]]
        bound = volumes[claim["spec"]["volumeName"]]
        assert bound["hostPath"]["path"] == "/run/hec" and bound["claimRef"] == {
            "namespace": claim["metadata"]["namespace"], "name": claim["metadata"]["name"]}
        assert bound["storageClassName"] == claim["spec"]["storageClassName"] and bound["accessModes"] == claim["spec"]["accessModes"]
        assert claim["metadata"]["namespace"] == of_kind("Job")[0]["metadata"]["namespace"]


def test_the_image_is_built_of_sources_alone():
    """What git keeps is in the context, but for recordings; trees of builds, the history and caches are not."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]

    def ignored(path):
        parts = pathlib.PurePosixPath(path).parts
        return any(pathlib.PurePosixPath(*parts[:end]).match(pattern) if pattern.startswith("**/") else
                   end <= 1 + pattern.count("/") and pathlib.PurePosixPath(*parts[:end]).match(pattern)
                   for end in range(1, len(parts) + 1) for pattern in patterns)

    for path in (".git/HEAD", "build/CMakeCache.txt", "build/asan/x.o", "dist/hec-portable/bin/hec", "web/node_modules/x/y.js",
                 "bench/__pycache__/x.pyc", "job.hec"):
        assert ignored(path), path
    for path in ("CMakeLists.txt", "Makefile", "src/cli/main.c", "scripts/build", "scripts/portable", "deploy/container/Containerfile",
                 "python/hec/__init__.py", "web/README.md", "LICENSE"):
        assert not ignored(path), path
    if (ROOT / ".git").exists():
        kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        assert all(path.startswith(".ci/") or path.endswith(".hec") for path in kept if ignored(path))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_knows_every_line_of_the_unit(tmp_path):
    unit = tmp_path / "hec-agent.service"
    unit.write_text((DEPLOY / "systemd" / "hec-agent.service").read_text().replace("/usr/bin/hec", BINARY))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0 and "hec-agent" not in done.stderr, done.stderr


def programs(folder, **bodies):
    for name, body in bodies.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(stat.S_IRWXU)


@pytest.mark.parametrize("job, said", [("41", "job 41 of ada: 1684000 J on this node"), ("4", None), ("", None)])
def test_the_epilog_adds_up_a_job(tmp_path, job, said):
    """On all devices and parts, and of no job whose id only begins so, nor what another user claims to be of it; when the counters were
    read after the job's end. What the prolog wrote of the job is gone then."""
    jobs = tmp_path / "jobs"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HEC_JOB_MAP": str(jobs), "SLURM_JOB_USER": "ada"}
    for other, gpus in (("410", "0"), (job, "0,2-3")):
        subprocess.run([DEPLOY / "slurm" / "prolog.sh"], env={**environment, "SLURM_JOB_ID": other, "SLURM_JOB_GPUS": gpus}, check=True, timeout=HANGS_S)
    if job:
        assert {path.name: path.read_text() for path in jobs.glob("[0-9]*")} == {
            "0": f"410 ada\n{job} ada\n", "2": f"{job} ada\n", "3": f"{job} ada\n"}
    (tmp_path / "page").write_text('# TYPE hec_energy_joules_total counter\n'
                                   'hec_energy_joules_total{gpu="0",part="active",hpc_job="41",hpc_step="0"} 1e6\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="41",user="ada"} 684000.2\n'
                                   'hec_device_energy_age_seconds{gpu="0"} 0.2\n'
                                   'hec_device_energy_age_seconds{gpu="1"} 3.4\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="410"} 5\n'
                                   'hec_energy_joules_total{gpu="1",part="idle",hpc_job="41",user="eve"} 9e9\n'
                                   'hec_job_seconds_total{hpc_job="41"} 7\n')
    (tmp_path / "clock").write_text("1000\n")
    tick = f"echo $(($(cat {tmp_path}/clock) + 1)) >{tmp_path}/clock"  # each second of sleep
    programs(tmp_path, curl=f"echo . >>{tmp_path}/asked; cat {tmp_path}/page", logger=f'echo "$*" >>{tmp_path}/log', sleep=tick,
             date=f"cat {tmp_path}/clock")
    done = subprocess.run([DEPLOY / "slurm" / "epilog.sh"], env={**environment, "SLURM_JOB_ID": job}, timeout=HANGS_S)
    assert done.returncode == 0
    log = tmp_path / "log"
    assert {path.name: path.read_text() for path in jobs.glob("[0-9]*")}["0"].startswith("410 ada\n")
    assert not job or not any(line.startswith(job + " ") for path in jobs.glob("[0-9]*") for line in path.read_text().splitlines())
    if job == "41":  # a counter that was read 3.4 s ago, by a clock of seconds, may be of before the end for 6 s
        assert (tmp_path / "asked").read_text().count(".") == 7
    assert (log.read_text().strip() if log.exists() else None) == (said and f"-t hec {said}")


@pytest.mark.parametrize("variables, line", [({"HEC_ARRAY_TASKS": "1"}, "41 ada 40_7\n"), ({}, "41 ada\n"), ({"HEC_ARRAY_TASKS": "1", "SLURM_JOB_ID": "40"}, "40 ada\n"),
                                             ({"HEC_ARRAY_TASKS": "1", "SLURM_JOB_USER": ""}, "41\n")])
def test_the_prolog_asks_for_the_task_of_an_array_where_it_may(tmp_path, variables, line):
    """squeue as it answers for a job of an array (every job of it), and for one of none."""
    programs(tmp_path, squeue="echo 40 40_N/A; echo 41 40_7; echo 42 40_8")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HEC_JOB_MAP": str(tmp_path / "jobs"), "SLURM_JOB_USER": "ada", "SLURM_JOB_ID": "41",
                   "SLURM_JOB_GPUS": "2"}
    subprocess.run([DEPLOY / "slurm" / "prolog.sh"], env={**environment, **variables}, check=True, timeout=HANGS_S)
    assert (tmp_path / "jobs" / "2").read_text() == line


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
        done = subprocess.run([DEPLOY / "slurm" / "task_prolog.sh"], env=environment, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0 and bool(done.stdout) == speaks
    exported = dict(re.fullmatch(r"export (\w+)=(.*)", line).groups() for line in done.stdout.splitlines())
    for name in ("CUDA_INJECTION64_PATH", "HEC_LIB", "PYTHONPATH") if speaks else ():
        assert pathlib.Path(exported[name].partition(":")[0]).exists(), name
    assert not speaks or exported["PYTHONPATH"].endswith(":/mine")


def cron_job():
    return of_kind("CronJob")[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_off_peak_may_list_and_patch_jobs_alone():
    spec = cron_job()
    assert against_restricted(spec) == []
    account, = [made for made in of_kind("ServiceAccount") if made["metadata"]["name"] == spec["serviceAccountName"]]
    role, = [made for made in of_kind("ClusterRole") if made["metadata"]["name"] == account["metadata"]["name"]]
    assert role["rules"] == [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch"]}]
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for container in spec["initContainers"] + spec["containers"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("hours, status", [("00:00-24:00", 0), ("co2<1", 1), ("price<1", 2), ("nonsense", 64)])
def test_the_cron_job_asks_hec(tmp_path, hours, status):
    """Its own command, with the file and the folder of a test."""
    (tmp_path / "carbon.csv").write_text("time,Carbon intensity gCO2eq/kWh\n2000-01-01 00:00,100\n2099-01-01 00:00,100\n")
    (tmp_path / "price.csv").write_text("time,price_per_kwh\n2000-01-01 00:00,100\n2000-01-01 01:00,100\n")
    program, option, line = cron_job()["initContainers"][0]["command"]
    line = line.replace("/opt/hec/bin/hec", f"{BINARY} ").replace("/answer", str(tmp_path)).replace("/grid", str(tmp_path))
    line = line.replace("--carbon-file", f"--price-file {tmp_path}/price.csv --carbon-file")
    done = subprocess.run([program, option, line], env={"WHEN": hours, "PATH": "/usr/bin:/bin"}, timeout=HANGS_S)
    assert done.returncode == 0 and (tmp_path / "status").read_text() == f"{status}\n"
    assert bool((tmp_path / "line").read_text()) == (status != 64)


@pytest.mark.parametrize("status, patched", [(0, ["a train", "b tune"]), (1, []), (2, []), (64, [])])
def test_jobs_that_opted_in_are_unsuspended(tmp_path, status, patched):
    (tmp_path / "status").write_text(f"{status}\n")
    (tmp_path / "line").write_text("true: co2 is 100\n")
    programs(tmp_path, kubectl=f'printf "%s\\n" "$*" >>{tmp_path}/log; [ "$1" != get ] || printf "a train\\nb tune\\n"')
    done = subprocess.run([DEPLOY / "kubernetes" / "off-peak" / "unsuspend.sh"], env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ANSWER": str(tmp_path)},
                          capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == (status if status > 2 else 0), done
    log = (tmp_path / "log").read_text().splitlines() if patched else []
    assert (tmp_path / "log").exists() == bool(patched)
    if patched:
        assert "--selector hec.energy/when=off-peak" in log[0] and "@.spec.suspend==true" in log[0]
        assert log[1:] == [f'--namespace {job.split()[0]} patch job {job.split()[1]} --type merge --patch {{"spec":{{"suspend":false}}}}'
                           for job in patched]


@pytest.mark.parametrize("status, released", [(0, ["41", "50"]), (1, []), (2, []), (65, [])])
def test_jobs_that_opted_in_are_released(tmp_path, status, released):
    """No other comment, no job that an administrator holds or that waits for something else, no comment that only begins so."""
    programs(tmp_path, hec=f'echo "$*" >>{tmp_path}/asked; echo "true: co2 is 100"; exit {status}',
             squeue="cat <<END\n41 JobHeldUser off-peak\n42 JobHeldAdmin off-peak\n43 Priority off-peak\n44 JobHeldUser (null)\n"
                    "45 JobHeldUser off-peak no\n46 JobHeldUser no off-peak\n47 JobHeldUser\n50 JobHeldUser off-peak\n50 JobHeldUser off-peak\nEND",
             scontrol=f'echo "$*" >>{tmp_path}/log')
    done = subprocess.run([DEPLOY / "slurm" / "off_peak.sh", "--when", "co2<200 | 22:00-06:00"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
                          capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == (status if status > 2 else 0), done
    assert (tmp_path / "asked").read_text() == "run --check --when co2<200 | 22:00-06:00\n"
    log = (tmp_path / "log").read_text().splitlines() if released else []
    assert log == [f"release {job}" for job in released] and (tmp_path / "log").exists() == bool(released)
    assert done.stdout == "".join(f"job {job} released: true: co2 is 100\n" for job in released)
