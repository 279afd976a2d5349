"""The kubelet's list of devices, against a server of stock gRPC, and against servers that are none."""
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.parse

import grpc
import yaml

from agent_common import Agent, Machine, Page
from conftest import HANGS_S, ROOT
from fake_kubelet import CLASSES, Kubelet, response

TLS = pathlib.Path(__file__).with_name("agent_tls")
PROGRAM = os.path.join(os.environ["HEC_BINARY_DIR"], "tests/bin/kubelet_list")
GPU = "GPU-51a1ed00-0000-4000-8000-000000000001"
MIG = "MIG-51a1ed00-0000-4001-8000-000000000001"
PODS = [
    ("ml", "train-0", {"main": {"nvidia.com/gpu": [GPU]}, "side": {"example.com/nic": ["eth0"]}}),
    ("ml", "mig", {"a": {"nvidia.com/mig-3g.71gb": [MIG]}, "b": {"nvidia.com/gpu": ["MIG-" + GPU + "/2/0"]}}),
    ("gke", "shared", {"c": {"nvidia.com/gpu": ["nvidia3/gi2", "nvidia4/vgpu0", "nvidia5/gi1/vgpu2", "nvidia6"]}}),
    ("serve", "slices", {"d": {"nvidia.com/gpu.shared": [GPU + "::0", GPU + "::11"]}}),
    ("x", "odd", {"e": {"nvidia.com/gpu": ["", "GPU", "nvidia", "nvidia0/gi", "nvidia1234567", GPU + "/1/0 ", "GPU-" + "a" * 200]}}),
    ("x", 'bad"name', {"f": {"nvidia.com/gpu": [GPU]}}),
    ("x", "none", {}),
]
ROWS = [
    f"{GPU} -1 -1 ml train-0 main",
    f"{MIG} -1 -1 ml mig a",
    f"{GPU} -1 2 ml mig b",
    "- 3 2 gke shared c",
    "- 4 -1 gke shared c",
    "- 5 1 gke shared c",
    "- 6 -1 gke shared c",
    f"{GPU} -1 -1 serve slices d",
    f"{GPU} -1 -1 serve slices d",
]


def start(path, results=1, speed=1):
    return subprocess.Popen([PROGRAM, path, str(results), str(speed)], stdout=subprocess.PIPE, text=True)


def ask(path, results=1, speed=1):
    program = start(path, results, speed)
    lines = program.communicate(timeout=HANGS_S)[0].splitlines()
    assert program.returncode == 0
    return lines


def sock(tmp_path):
    return os.path.relpath(tmp_path / "k.sock")  # a path of a socket is at most 107 bytes long


def test_list_of_stock_grpc(tmp_path):
    with Kubelet(sock(tmp_path), PODS):
        lines = ask(sock(tmp_path))
    assert lines == ROWS + [f"list {len(ROWS)} 8"]


def test_long_list_and_empty_one(tmp_path):
    many = [("ns", f"pod-{i}", {"c": {"nvidia.com/gpu": [GPU + f"::{i}"], "x.com/y": ["z" * 900]}}) for i in range(2100)]
    with Kubelet(sock(tmp_path), many):
        lines = ask(sock(tmp_path))
    assert lines[-1] == "list 2048 52" and lines[2047].split()[4] == "pod-2047"
    with Kubelet(sock(tmp_path), []):
        assert ask(sock(tmp_path)) == ["list 0 0"]


def test_too_long_a_list(tmp_path):
    with Kubelet(sock(tmp_path), [("n", "p", {"c": {"x.com/y": ["z" * 5_000_000]}})]):
        lines = ask(sock(tmp_path))
    assert "longer than 4 MiB" in lines[0]


def list_of(program):
    """The next list; errors before it, of a server that is not there or slow, are passed over."""
    rows = []
    for line in program.stdout:
        if line.startswith("list "):
            return rows
        if not line.startswith("error "):
            rows.append(line.rstrip())


def test_kubelet_that_restarts(tmp_path):
    program = start(sock(tmp_path), 10**6, speed=50)
    for pods, rows in (PODS[:1], ROWS[:1]), (PODS[2:3], ROWS[3:7]):
        with Kubelet(sock(tmp_path), pods):
            assert list_of(program) == rows
        while not program.stdout.readline().startswith("error "):
            pass
    program.kill()
    program.communicate()


def test_kubelet_that_refuses_or_hangs(tmp_path):
    def refuses(context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    with Kubelet(sock(tmp_path), refuses):
        lines = ask(sock(tmp_path))
    assert "gRPC status 14" in lines[0]

    released = threading.Event()

    def hangs(context):
        released.wait(HANGS_S)
        return CLASSES["ListPodResourcesResponse"]()

    with Kubelet(sock(tmp_path), hangs):
        lines = ask(sock(tmp_path), speed=50)
        released.set()
    assert "no answer in 10 s" in lines[0]
    assert ask(sock(tmp_path / "absent"), 2, speed=100)[1].startswith("error -6 ")  # and asked once a minute


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4, 0, 0, b"")
OK = frame(1, 4, 1, b"\x88")  # :status 200


def data(message, flags=0, length=None, compressed=0):
    size = len(message) if length is None else length
    return frame(0, flags, 1, bytes([compressed]) + size.to_bytes(4, "big") + message)


TRAILERS = frame(1, 5, 1, b"\x00\x0bgrpc-status\x010")
GOOD = response(PODS[:1]).SerializeToString()


def test_servers_that_are_none(tmp_path):
    cases = [
        (SETTINGS + OK + data(GOOD) + TRAILERS, None),  # the same bytes are an answer when nothing is wrong
        (b"HTTP/1.1 200 OK\r\n\r\n", "error"),
        (os.urandom(100_000), "error"),
        (b"", "error"),
        (SETTINGS + OK + data(GOOD), "error"),
        (SETTINGS + data(GOOD) + TRAILERS, "error"),
        (SETTINGS + OK + data(GOOD, length=1 << 31) + TRAILERS, "not one plain message"),
        (SETTINGS + OK + data(GOOD, compressed=1) + TRAILERS, "not one plain message"),
        (SETTINGS + OK + data(GOOD + GOOD, length=len(GOOD)) + TRAILERS, "not one plain message"),
        (SETTINGS + OK + data(b"\xff" * 40) + TRAILERS, "cannot be read"),
        (SETTINGS + OK + b"".join(frame(0, 0, 1, b"\0" * 16384) for _ in range(300)), "error"),
        (SETTINGS * 3_000_000, "error"),
        (SETTINGS + OK + frame(9, 0, 1, b"\0" * 16000) * 9, "error"),
        (SETTINGS + frame(7, 0, 0, b"\0" * 8), "error"),
        (SETTINGS + OK + data(b"\x0a\x00" * 8000) * 1 + TRAILERS, None),
    ]
    path = sock(tmp_path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    for answer, expected in cases:
        program = start(path)

        def serve(answer=answer):
            peer = listener.accept()[0]
            peer.settimeout(30)
            try:
                asked = b""
                while not asked.endswith(frame(0, 1, 1, b"\0" * 5)) and (more := peer.recv(4096)):
                    asked += more
                peer.sendall(answer)
            except OSError:
                pass
            peer.close()

        server = threading.Thread(target=serve)
        server.start()
        first = program.stdout.readline()
        server.join()
        program.kill()
        program.communicate()
        if expected is None:
            assert not first.startswith("error"), (answer[:60], first)
        else:
            assert expected in first, (answer[:60], first)
    listener.close()


SHARED = "GPU-51a1ed00-0000-4000-8000-000000000000"
UIDS = ("1a2b3c4d-0001-4002-8003-a0b0c0d0e0f0", "1a2b3c4d-0001-4002-8003-a0b0c0d0e0f1")


def shared_node(root, containers):
    """A node's files: two pods, a-0 and b-0 of team, with a process each; containers: the names of theirs."""
    links = root / "var/log/containers"
    links.mkdir(parents=True)
    for at, (pod, uid, container) in enumerate(zip(("a-0", "b-0"), UIDS, containers)):
        place, digits = root / "proc" / str(100 + at), f"{at}{'ab' * 31}c"
        place.mkdir(parents=True)
        (place / "stat").write_text(f"{100 + at} (train) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 7 1000 100 0 0\n")
        slice_ = uid.replace("-", "_")
        (place / "cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{slice_}.slice/cri-containerd-{digits}.scope\n")
        (place / "mountinfo").write_text(f"9 8 8:1 /var/lib/kubelet/pods/{uid}/containers/{container}/0f1e /dev/termination-log rw - ext4 /dev/sda rw\n")
        (place / "status").write_text("Name:\ttrain\nUid:\t0\t0\t0\t0\n")
        (links / f"{pod}_team_{container}-{digits}.log").symlink_to(f"/var/log/pods/team_{pod}_{uid}/{container}/0.log")
    return [("team", pod, {container: {"nvidia.com/gpu.shared": [f"{SHARED}::{at}"]}})
            for at, (pod, container) in enumerate(zip(("a-0", "b-0"), containers))]


def owners_seen(tmp_path, node, pods, mounts, account=(), env=None):
    """(namespace, pod, container) of all active joules, where the agent sees so much of the node's files."""
    seen, sockets = tmp_path / "seen", node / "var/lib/kubelet/pod-resources"
    shutil.rmtree(seen, ignore_errors=True)
    sockets.mkdir(parents=True, exist_ok=True)
    for path in ("/proc", *mounts):
        if (node / path[1:]).exists():
            (seen / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (seen / path[1:]).symlink_to((node / path[1:]).resolve())
    with Kubelet(os.path.relpath(sockets / "kubelet.sock"), pods):
        done = subprocess.run([PROGRAM.replace("kubelet_list", "pods_page"), os.path.relpath(seen), *account], capture_output=True, text=True,
                              timeout=HANGS_S, env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stderr
    page = Page(done.stdout)
    assert page.sum("hec_energy_joules_total") == page.one("hec_device_energy_joules_total") > 14000
    return {tuple(labels.get(name) for name in ("namespace", "pod", "container"))
            for labels, _ in page.all("hec_energy_joules_total", part="active")}


def test_two_pods_on_a_gpu_are_named_with_the_manifest_as_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    daemon = next(made for made in yaml.safe_load_all((ROOT / "deploy/kubernetes/base/agent.yaml").read_text()) if made["kind"] == "DaemonSet")
    spec = daemon["spec"]["template"]["spec"]
    hosts = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in spec["volumes"]}
    container, = spec["containers"]
    assert not {"DCGM_POD_RESOURCES_KUBELET_SOCKET"} & {entry["name"] for entry in container["env"]}  # the usual paths
    mounts = [mount["mountPath"] for mount in container["volumeMounts"] if hosts[mount["name"]] == mount["mountPath"]]
    assert spec["hostPID"] and "/var/lib/kubelet/pod-resources" in mounts
    same = shared_node(tmp_path / "same", ("main", "main"))
    assert owners_seen(tmp_path, tmp_path / "same", same, mounts) == {("team", "a-0", "main"), ("team", "b-0", "main")}
    sockets = [path for path in mounts if "log" not in path]  # without the links: by the names of their containers, and nothing that may be false
    assert owners_seen(tmp_path, tmp_path / "same", same, sockets) == {(None, uid, "main") for uid in UIDS}
    apart = shared_node(tmp_path / "apart", ("train", "serve"))
    assert owners_seen(tmp_path, tmp_path / "apart", apart, sockets) == {("team", "a-0", "train"), ("team", "b-0", "serve")}


class ApiServer(http.server.BaseHTTPRequestHandler):
    """Lists pods as Kubernetes does, of one node, for one token, as metadata alone where that is asked for."""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        self.server.asked.append((url.path, query))
        right = self.headers["Authorization"] == "Bearer of the node" and "as=PartialObjectMetadataList" in self.headers["Accept"]
        body = json.dumps({"kind": "PartialObjectMetadataList", "items": [
            {"metadata": {"name": pod, "namespace": "team", "uid": uid, **more}} for pod, uid, more in self.server.pods]}).encode()
        self.send_response(200 if right else 403)
        self.send_header("Content-Length", str(len(body) if right else 0))
        self.end_headers()
        self.wfile.write(body if right else b"")

    def log_message(self, *_):
        pass


def test_without_the_links_the_api_server_names_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("of the node\n")
    shutil.copy(TLS / "cert.pem", account / "ca.crt")
    pods = shared_node(tmp_path / "same", ("main", "main"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    with http.server.HTTPServer(("127.0.0.1", 0), ApiServer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        # b-0 is a static pod: its cgroup has the hash of its file
        server.asked, server.pods = [], [("a-0", UIDS[0], {}), ("b-0", "00000000-0001-4002-8003-a0b0c0d0e0f1",
                                                              {"annotations": {"kubernetes.io/config.hash": UIDS[1]}})]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port), "NODE_NAME": "node-7"}
        sockets = ["/var/lib/kubelet/pod-resources"]
        found = owners_seen(tmp_path, tmp_path / "same", pods, sockets, (os.path.relpath(account), UIDS[1]), env)
        server.shutdown()
    assert found == {("team", "a-0", "main"), ("team", "b-0", "main")}
    assert server.asked[0] == ("/api/v1/pods", {"fieldSelector": ["spec.nodeName=node-7"], "resourceVersion": ["0"]})


def test_pod_that_has_a_device_and_does_nothing(tmp_path, hec):
    """Allocated and idle: its joules are the pod's, of whichever replica; a process that is no pod's shares them."""
    uuid = "GPU-51a1ed00-0000-4000-8000-000000000000"
    machine = Machine(hec, "h200x2")
    pods = [("ml", "notebook-0", {"main": {"nvidia.com/gpu.shared": [uuid + "::0", uuid + "::1"]}})]
    with Kubelet(sock(tmp_path), pods):
        path = os.path.relpath(tmp_path / "k.sock", hec.folder)
        agent = Agent(hec, "--state-dir", "kept", "--pod-resources-kubelet-socket", path, env=machine.env)
        held = {"gpu": "0", "pod": "notebook-0", "namespace": "ml", "container": "main"}
        page = agent.until(lambda page: page.sum("hec_energy_joules_total", part="idle", **held) > 0)
        assert page.all("hec_energy_joules_total", gpu="1", pod="notebook-0") == []
        # it has no context anywhere, and is allocated all the same: what GpuIdleAllocated asks for
        states = {(labels["gpu"], labels["state"]): value for labels, value in page.all("hec_device_state_seconds_total")}
        assert states["0", "idle_allocated"] > 0 and states["1", "idle_allocated"] == 0 and states["1", "idle_free"] > 0
        for name in ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"):  # as dcgm-exporter's: rules and autoscalers select by pod
            assert len(page.all(name, **held)) == 1 and len(page.all(name, gpu="0")) == 1 and "pod" not in page.all(name, gpu="1")[0][0]
        load = machine.play("idle-allocated", 60)
        before = page.sum("hec_energy_joules_total", **held)
        page = agent.until(lambda page: page.sum("hec_energy_joules_total", command="hec", part="idle") > 60)
        assert page.sum("hec_energy_joules_total", **held) > before + 50
        assert page.sum("hec_energy_joules_total", gpu="1", part="unattributed") == 0
        for gpu in "01":
            whole = page.one("hec_device_energy_joules_total", gpu=gpu)
            assert abs(page.sum("hec_energy_joules_total", gpu=gpu) - whole) < 0.001 * whole
        load.kill()
        load.wait()
        assert agent.stop() == 0
    machine.close()
