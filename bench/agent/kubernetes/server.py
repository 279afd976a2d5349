"""A real etcd and kube-apiserver on loopback, in a folder of their own, with RBAC; no controllers, no scheduler, no kubelet: who uses it makes
the pods that a DaemonSet or a Job would make, from their templates."""
import json
import pathlib
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

ADMIN = "admin-of-the-bench"


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def until(what, why, seconds=120):
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise RuntimeError(why() if callable(why) else why)
        time.sleep(0.1)
    return found


class Server:
    def __init__(self, folder, program):
        self.folder, self.program = pathlib.Path(folder), program
        self.folder.mkdir()
        self.port, etcd, peer = free_port(), free_port(), free_port()
        self.processes = {}
        self.make_keys()
        self.context = ssl.create_default_context(cafile=self.folder / "ca.crt")
        self.etcd = f"http://127.0.0.1:{etcd}"
        self.start("etcd", ["etcd", "--data-dir", self.folder / "data", "--listen-client-urls", self.etcd, "--advertise-client-urls", self.etcd,
                            "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                            "--initial-cluster", f"default=http://127.0.0.1:{peer}"])
        self.serve()

    def make_keys(self):
        """One certificate, of itself, for 127.0.0.1; a key for tokens of accounts."""
        key, cert = self.folder / "server.key", self.folder / "ca.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=bench",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        subprocess.run(["openssl", "genrsa", "-out", self.folder / "accounts.key", "2048"], check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n")
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(cert)}}],
            "users": [{"name": "bench", "user": {"token": ADMIN}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}]}))

    def start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)

    def serve(self):
        accounts = self.folder / "accounts.key"
        self.start("apiserver", [self.program, f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                                 f"--tls-cert-file={self.folder}/ca.crt", f"--tls-private-key-file={self.folder}/server.key",
                                 f"--service-account-key-file={accounts}", f"--service-account-signing-key-file={accounts}",
                                 "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
                                 f"--token-auth-file={self.folder}/tokens.csv", "--service-cluster-ip-range=10.0.0.0/24",
                                 f"--cert-dir={self.folder}", "--allow-privileged=true", "--advertise-address=127.0.0.1",
                                 "--endpoint-reconciler-type=none"])
        until(self.ready, lambda: (self.folder / "apiserver.log").read_text()[-3000:])

    def ready(self):
        try:
            return self.ask("GET", "/readyz", raw=True) == "ok" and self.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
        except (OSError, urllib.error.HTTPError):
            return False

    def ask(self, method, path, body=None, raw=False, token=ADMIN):
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method, data=body and json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
            text = answer.read().decode()
        return text if raw else json.loads(text)

    def status(self, method, path, body=None, token=ADMIN):
        try:
            self.ask(method, path, body, True, token)
            return 200
        except urllib.error.HTTPError as error:
            return error.code

    def token(self, namespace, account, seconds=3600):
        made = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}})
        return made["status"]["token"]

    def kubectl(self, *arguments):
        return subprocess.run(["kubectl", f"--kubeconfig={self.folder}/kubeconfig", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              cwd=self.folder)

    def stop(self, name):
        process = self.processes.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def close(self):
        for name in list(self.processes)[::-1]:
            self.stop(name)
