"""A real Slurm of one node on loopback, in a folder of its own: munged, slurmctld and slurmd of Debian's munge, slurmctld, slurmd and
slurm-client, started without systemd, with the prologs and the epilog of deploy/slurm. Root only."""
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
NEEDED = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
SECONDS = 60  # a machine may be busy: what is not there then never comes

# what a cluster's processes are known by: cgroups as on most (version 1, or 2 without systemd), or none
KINDS = {
    "v1": ("proctrack/cgroup", "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"),
    "v2": ("proctrack/cgroup", "CgroupPlugin=cgroup/v2\nCgroupMountpoint={unified}\nIgnoreSystemd=yes\n"),
    "none": ("proctrack/linuxproc", "CgroupPlugin=cgroup/v1\n"),
}
CONF = """ClusterName=hec
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType={proctrack}
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
MinJobAge=300
Prolog={folder}/prolog.sh
PrologFlags=Alloc
TaskProlog={folder}/task_prolog.sh
Epilog={folder}/epilog.sh
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:8 State=UP
"""


def missing():
    return [package for program, package in NEEDED.items() if not shutil.which(program)]


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    return [each.getsockname()[1] for each in held]


def until(what, why, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise RuntimeError(why() if callable(why) else why)
        time.sleep(0.1)
    return found


def unified():
    """Where cgroups of version 2 are mounted; None: nowhere."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return line.split()[1]


class Slurm:
    def __init__(self, folder, kind, hooks):
        """hooks: the environment of the scripts of deploy/slurm, HEC_AGENT and others."""
        self.folder = pathlib.Path(folder)
        self.host = socket.gethostname().split(".")[0]
        self.processes = []
        self.folder.chmod(0o755)
        (self.folder / "out").mkdir()
        (self.folder / "out").chmod(0o777)
        munge = self.folder / "munge"
        for path in (munge, self.folder / "state", self.folder / "spool"):
            path.mkdir()
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        for path in (munge, munge / "key"):
            shutil.chown(path, "munge", "munge")
        for name in ("prolog", "task_prolog", "epilog"):
            script = self.folder / f"{name}.sh"
            exports = "".join(f"export {key}='{value}'\n" for key, value in hooks.items())
            script.write_text(f"#!/bin/sh\n{exports}exec {ROOT}/deploy/slurm/{name}.sh\n")
            script.chmod(0o755)
        proctrack, cgroup = KINDS[kind]
        (self.folder / "cgroup.conf").write_text(cgroup.format(unified=unified()))
        os.mknod(self.folder / "nvidia0", 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # Slurm wants a device; none is used
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/nvidia0\n")
        (self.folder / "slurm.conf").write_text(CONF.format(host=self.host, ports=free_ports(2), folder=self.folder, cpus=os.cpu_count(),
                                                             proctrack=proctrack))
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self.start(["runuser", "-u", "munge", "--", "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                        f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"])
            until((munge / "socket").exists, self.said)
            self.start(["slurmctld", "-D"])
            self.start(["slurmd", "-D", "-N", self.host])
            until(lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle", self.said)
        except BaseException:
            self.close()
            raise

    def start(self, command):
        with open(self.folder / "daemons.err", "ab") as log:
            self.processes.append(subprocess.Popen(command, env=self.env, stderr=log))

    def said(self):
        return "\n".join(path.read_text()[-3000:] for path in (*self.folder.glob("*.log"), self.folder / "daemons.err"))

    def ask(self, *command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60).stdout.strip()

    def submit(self, script, *options, user=None, env=None):
        """The job's id."""
        path = self.folder / f"job-{time.monotonic_ns()}.sh"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        command = ["sbatch", "--parsable", "-n1", "--gpus=1", "-o", f"{self.folder}/out/%j", "-D", "/tmp", *options, str(path)]
        if user:
            command = ["runuser", "-u", user, "--", *command]
        done = subprocess.run(command, env={**self.env, **(env or {})}, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(done.stderr + self.said())
        return done.stdout.strip()

    def wait(self, seconds=600):
        until(lambda: not self.ask("squeue", "-h"), self.said, seconds)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
