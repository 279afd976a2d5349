"""cases.py FOLDER KUBE_APISERVER: on the simulated machine of `hec run --sim`: the manifests of deploy/kubernetes at a real API server, and the
agent with exactly their rights on a node that is made up. Prints JSON; `good` says whether each thing is so."""
import json
import subprocess
import sys
import time

from node import ROOT, Node
from server import Server

NODE = "node-7"
DEPLOY = ROOT / "deploy" / "kubernetes"


class Site:
    def __init__(self, folder, program):
        self.server = Server(f"{folder}/server", program)
        self.version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        self.minor = int(self.version.split(".")[1])
        self.server.ask("POST", "/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE}})
        self.server.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1",
                                                                         "metadata": {"name": "nvidia"}, "handler": "nvidia"})
        for namespace in ("team", "default"):
            self.namespace(namespace)
        self.node = Node(f"{folder}/node")

    def namespace(self, name, **labels):
        self.server.status("POST", "/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}})
        self.account(name)

    def account(self, name):
        """That of each namespace, which a controller makes."""
        self.server.status("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}})

    def pod(self, name, node=NODE, **annotations):
        return self.server.ask("POST", "/api/v1/namespaces/team/pods", {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": node, "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "train"}]}})

    def daemon(self):
        return self.server.ask("GET", "/apis/apps/v1/namespaces/hec/daemonsets/hec-agent")

    def close(self):
        self.node.close()
        self.server.close()


def manifests(site):
    """All are accepted, and so is the pod that the DaemonSet's controller would make of them."""
    out = {}
    for name in ("base", "api"):
        done = site.server.kubectl("apply", "-k", DEPLOY / name)
        out[name] = done.stdout.split("\n")[:-1] if done.returncode == 0 else done.stderr
        site.account("hec")
        template = site.daemon()["spec"]["template"]
        spec = {**template["spec"], "nodeName": NODE, "nodeSelector": {}}
        if spec["automountServiceAccountToken"] and site.minor < 24:
            spec["automountServiceAccountToken"] = False  # its token is a secret there, which a controller makes
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"hec-agent-{name}", "labels": template["metadata"]["labels"]}, "spec": spec}
        try:
            out[f"{name} pod"] = site.server.ask("POST", "/api/v1/namespaces/hec/pods", pod)["spec"]["priority"]
        except OSError as error:
            out[f"{name} pod"] = error.read().decode()
    done = site.server.kubectl("apply", "-f", DEPLOY / "job-example.yaml")
    out["job-example"] = done.stdout.split("\n")[:-1] if done.returncode == 0 else done.stderr
    return {**out, "good": all(isinstance(value, list) or value == 2000001000 for value in out.values())}


def pod_security(site):
    """Who enforces what admits the example's pod, and the agent's. A server before 1.23 has no PodSecurity."""
    if site.minor < 23:
        return {"not_asked": "this server has no PodSecurity", "good": True}
    job = site.server.ask("GET", "/apis/batch/v1/namespaces/default/jobs/train")["spec"]["template"]["spec"]
    agent = site.daemon()["spec"]["template"]["spec"]
    out = {}
    for level in ("restricted", "baseline", "privileged"):
        site.namespace(level, **{"pod-security.kubernetes.io/enforce": level})
        for name, spec in (("job", job), ("agent", agent)):
            pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
                   "spec": {**spec, "serviceAccountName": "default", "serviceAccount": "default", "automountServiceAccountToken": False}}
            out[f"{name} where {level}"] = site.server.status("POST", f"/api/v1/namespaces/{level}/pods", pod)
    return {**out, "good": list(out.values()) == [200, 403, 200, 403, 200, 200]}


def rights(site):
    """Of the account as shipped: it may list pods, and nothing else that the agent could be used for."""
    token = site.server.token("hec", "hec-agent")
    asked = {"list pods": ("GET", "/api/v1/pods?limit=1"), "get a pod": ("GET", "/api/v1/namespaces/hec/pods/hec-agent-base"),
             "watch pods": ("GET", "/api/v1/pods?watch=1&timeoutSeconds=1"), "list secrets": ("GET", "/api/v1/secrets"),
             "list nodes": ("GET", "/api/v1/nodes"), "delete a pod": ("DELETE", "/api/v1/namespaces/hec/pods/hec-agent-base"),
             "make a token": ("POST", "/api/v1/namespaces/hec/serviceaccounts/hec-agent/token", {})}
    out = {what: site.server.status(*request, token=token) for what, request in asked.items()}
    return {**out, "good": out.pop("list pods") == 200 and set(out.values()) == {403}}


def fresh(site, names, links):
    """Pods of those names, each with a program on the GPU that all share."""
    site.node.end_loads()
    for name in names:
        site.node.add(site.pod(name), links=links)


def base(site):
    """The DaemonSet of base: names by the kubelet's links, without a token."""
    site.server.kubectl("apply", "-k", DEPLOY / "base")
    fresh(site, ("a-0", "b-0"), True)
    agent = site.node.agent(site.daemon(), site.server)
    named = agent.until_names([("team", "a-0", "main"), ("team", "b-0", "main")])
    shared = agent.names()
    fresh(site, ("k-0",), True)
    alone = agent.until_names([("team", "k-0", "main")])
    time.sleep(12)  # the kubelet is asked every 10 s
    dcgm = [tuple(labels.get(name) for name in ("namespace", "pod", "container")) for labels, _ in agent.page().all("DCGM_FI_DEV_GPU_UTIL")]
    out = {"two share": shared, "named": named, "alone": alone, "dcgm": dcgm, "said": agent.said()[-500:], "ended": agent.stop()}
    return {**out, "good": named and alone and dcgm == [("team", "k-0", "main")] and out["ended"] == 0}


def api(site):
    """The DaemonSet of api: names by the API server, with the account's token; then without the right, with a token that is refused, without a
    server; each of them is said once, costs no joule, and is over when its reason is."""
    site.server.kubectl("apply", "-k", DEPLOY / "api")
    token = site.node.root / "account" / "token"
    (site.node.root / "account" / "ca.crt").write_bytes((site.server.folder / "ca.crt").read_bytes())
    token.write_text(site.server.token("hec", "hec-agent"))
    fresh(site, ("c-0", "d-0"), False)
    agent = site.node.agent(site.daemon(), site.server, NODE_NAME=NODE)
    steps = {"named": agent.until_names([("team", "c-0", "main"), ("team", "d-0", "main")])}
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hec-agent"

    def meanwhile(what, pods, cause, cure):
        """New pods while it is so: known by their uid. Then they have names."""
        cause()
        site.node.end_loads()
        made = [site.pod(pod) for pod in pods] if what != "no server" else pods
        for pod in made:
            site.node.add(pod, links=False)
        uids = [("", pod["metadata"]["uid"], "main") for pod in made]
        steps[f"{what}: by uid"] = agent.until_names(uids)
        steps[f"{what}: said"] = [line for line in agent.said().splitlines() if "names of pods" in line][-1:]
        cure()
        steps[f"{what}: named again"] = agent.until_names([("team", pod["metadata"]["name"], "main") for pod in made], 180)

    meanwhile("no right", ("e-0", "f-0"), lambda: site.server.ask("DELETE", binding), lambda: site.server.kubectl("apply", "-k", DEPLOY / "api"))
    meanwhile("token refused", ("g-0", "h-0"), lambda: token.write_text("of nobody"), lambda: token.write_text(site.server.token("hec", "hec-agent")))
    waiting = [site.pod("i-0"), site.pod("j-0")]
    time.sleep(0.1)
    meanwhile("no server", waiting, lambda: site.server.stop("apiserver"), site.server.serve)
    site.node.end_loads()
    static = "0123456789abcdef0123456789abcdef"
    pod = site.pod("static-node-7", **{"kubernetes.io/config.hash": static, "kubernetes.io/config.mirror": static, "kubernetes.io/config.source": "file"})
    site.node.add(pod, links=False, uid=static)
    steps["a static pod"] = agent.until_names([("team", "static-node-7", "main")])
    page = agent.page()
    whole, parts = page.sum("hec_device_energy_joules_total"), page.sum("hec_energy_joules_total")
    steps["joules add up"] = abs(parts / whole - 1) < 1e-6
    steps["said"] = agent.said()[-1500:]
    ended = agent.stop()
    return {**steps, "ended": ended, "good": ended == 0 and all(value for value in steps.values())}


CASES = {"manifests": manifests, "pod_security": pod_security, "rights": rights, "base": base, "api": api}


def main(folder, program, *names):
    site = Site(folder, program)
    out = {"server": site.version}
    try:
        for name in names or CASES:
            out[name] = CASES[name](site)
            print(name, json.dumps(out[name]), file=sys.stderr, flush=True)
        with open(f"{folder}/result.json", "w") as file:
            json.dump(out, file, indent=1)
    finally:
        site.close()
    return 0 if all(each["good"] for each in out.values() if isinstance(each, dict)) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
