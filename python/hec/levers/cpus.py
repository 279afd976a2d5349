"""What this process may use of the machine."""

import os


def usable() -> float:
    """CPUs, by affinity and by the quota of its control groups."""
    count = float(len(os.sched_getaffinity(0)))
    try:
        with open("/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return count
    for _, controllers, path in groups:
        if controllers in ("", "cpu", "cpu,cpuacct", "cpuacct,cpu"):
            while True:
                count = min(count, _quota(controllers, path))
                if path in ("", "/"):
                    break
                path = os.path.dirname(path)
    return count


def _quota(controllers: str, path: str) -> float:
    try:
        if not controllers:
            with open("/sys/fs/cgroup%s/cpu.max" % path.rstrip("/")) as file:
                quota, period = file.read().split()
        else:
            folder = "/sys/fs/cgroup/%s%s" % (controllers, path.rstrip("/"))
            with open(folder + "/cpu.cfs_quota_us") as one, open(folder + "/cpu.cfs_period_us") as other:
                quota, period = one.read().strip(), other.read().strip()
        return float(quota) / float(period) if quota not in ("max", "-1") else float("inf")
    except (OSError, ValueError):
        return float("inf")


def local_ranks() -> int:
    """Processes of the job on this machine, which share its CPUs."""
    try:
        return max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    except ValueError:
        return 1


def shared_memory_bytes() -> int:
    """Free in /dev/shm, through which workers pass batches on."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def memory_bytes() -> int:
    """Memory that is available without swapping."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 0
