"""A node's side of Kubernetes, made of what a kubelet makes: cgroups of containers, links to logs, the socket of pod resources; and the agent,
run with the rights, arguments and mounts of the DaemonSet as the API server has it."""
import os
import pathlib
import re
import subprocess
import sys

from server import until

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from agent_common import Page  # noqa: E402
from fake_kubelet import Kubelet  # noqa: E402

HEC = os.environ.get("HEC", str(ROOT / "build" / "bin" / "hec"))
DEVICE = "GPU-51a1ed00-0000-4000-8000-000000000000"  # the simulated one
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def cgroups():
    """Where version 2 is mounted."""
    return next(pathlib.Path(line.split()[1]) for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2")


class Node:
    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        for path in ("var/log/containers", "var/lib/kubelet/pod-resources", "var/lib/hec", "run/hec", "account"):
            (self.root / path).mkdir(parents=True)
        self.world = os.open(os.environ["HEC_SIM_WORLD"], os.O_RDWR)  # who has no capabilities cannot open it in another process
        self.containers, self.loads, self.made = [], [], []
        self.kubelet, self.count = None, 0

    def env(self, **more):
        return {**os.environ, "HEC_SIM_WORLD": f"/proc/self/fd/{self.world}", **more}

    def add(self, pod, container="main", links=True, uid=None):
        """A container of an API server's pod, with a program that uses the GPU."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        uid = uid or pod["metadata"]["uid"]
        self.count += 1
        digits = f"{self.count:02x}" * 32
        group = cgroups() / "kubepods.slice" / f"kubepods-pod{uid.replace('-', '_')}.slice" / f"cri-containerd-{digits}.scope"
        group.mkdir(parents=True)
        self.made += [group, group.parent]
        mounted = self.root / "var/lib/kubelet/pods" / uid / "containers" / container
        mounted.mkdir(parents=True)
        (mounted / "0f1e").touch()
        (self.root / "termination-log").touch()
        if links:
            (self.root / "var/log/containers" / f"{name}_{namespace}_{container}-{digits}.log").symlink_to("/var/log/pods/x")
        script = f"echo $$ >{group}/cgroup.procs && mount --bind {mounted}/0f1e {self.root}/termination-log && exec {HEC} sim fp32 --seconds 600"
        self.loads.append(subprocess.Popen(["unshare", "--mount", "sh", "-c", script], env=self.env(), pass_fds=[self.world],
                                           stdout=subprocess.DEVNULL))
        self.containers.append((namespace, name, {container: {"nvidia.com/gpu.shared": [f"{DEVICE}::{len(self.loads)}"]}}))
        self.list_resources()

    def list_resources(self):
        if self.kubelet:
            self.kubelet.__exit__()
        path = self.root / "var/lib/kubelet/pod-resources" / "kubelet.sock"
        path.unlink(missing_ok=True)
        self.kubelet = Kubelet(str(path), self.containers)
        self.kubelet.__enter__()

    def agent(self, daemon, server, **variables):
        return Agent(self, daemon["spec"]["template"]["spec"], server, variables)

    def end_loads(self):
        for load in self.loads:
            load.kill()
            load.wait()
        for group in self.made:
            until(lambda: not group.exists() or removed(group), f"{group} is still used")
        self.loads, self.containers, self.made = [], [], []

    def close(self):
        self.end_loads()
        if (top := cgroups() / "kubepods.slice").exists():
            removed(top)
        if self.kubelet:
            self.kubelet.__exit__()


def removed(group):
    try:
        group.rmdir()
        return True
    except OSError:
        return False


class Agent:
    """The container's command, as root without a capability, which sees of the node what the manifest mounts, and nothing else of it."""

    def __init__(self, node, spec, server, variables):
        container, = spec["containers"]
        hosts = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
        mounts = {mount["mountPath"]: node.root / hosts[mount["name"]][1:] for mount in container["volumeMounts"] if mount["name"] in hosts}
        assert spec["hostPID"] and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        empty = node.root / "empty"
        empty.mkdir(exist_ok=True)
        for path in ("/var/log/containers", "/var/lib/kubelet/pod-resources"):
            mounts.setdefault(path, empty)
        if spec["automountServiceAccountToken"]:
            mounts[ACCOUNT] = node.root / "account"
        binds = "".join(f"mkdir -p {path} && mount --bind {source} {path} && " for path, source in mounts.items())
        arguments = [word if word != ":9400" else "127.0.0.1:0" for word in container["args"]]
        arguments[arguments.index("--scrape-interval") + 1] = "0"
        # folders that a mount needs are of this namespace: the root file system of the machine keeps none of them
        layers = "".join(f"mkdir -p {node.root}/up{path} {node.root}/work{path} && mount -t overlay -o lowerdir={path},upperdir={node.root}/up{path},"
                         f"workdir={node.root}/work{path} none {path} && " for path in ("/var", "/run"))
        self.log = node.root / f"agent-{len(list(node.root.glob('agent-*')))}.log"
        env = node.env(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(server.port), **variables)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", f'{layers}{binds}exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$0" "$@"', HEC, *arguments],
                env=env, pass_fds=[node.world], stderr=log)
        self.address = until(lambda: re.search(r"http://([\d.:]+)", self.said()), self.said)[1]

    def said(self):
        assert self.process.poll() is None, self.log.read_text()
        return self.log.read_text()

    def page(self):
        import urllib.request
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            return Page(answer.read().decode())

    def names(self):
        """(namespace, pod, container) of those with active joules, since they were last asked for."""
        before = self.joules()
        until(lambda: sum(self.joules().values()) > sum(before.values()) + 1000, self.said)
        return sorted(key for key, value in self.joules().items() if value > before.get(key, 0) + 1)

    def joules(self):
        found = {}
        for labels, value in self.page().all("hec_energy_joules_total", part="active"):
            key = tuple(labels.get(name, "") for name in ("namespace", "pod", "container"))
            found[key] = found.get(key, 0) + value
        return found

    def until_names(self, names, seconds=90):
        try:
            until(lambda: self.names() == sorted(names), "", seconds)
            return True
        except RuntimeError:
            return False

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)
