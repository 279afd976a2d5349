"""Two processes share one real GPU: are the agent's shares right, and within its bound? About 110 s; python3 and PyTorch, nothing else.

    python3 bench/gpu/agent/share/run.py --hec HEC --out FILE.json [--together 30]
    HEC run --sim h200 -- python3 bench/gpu/agent/share/run.py --hec HEC --out FILE.json --loads sim:fp32,sim:memory-bound

Both processes have a context all the time. First nothing runs (the idle floor), then each runs alone: joules above the floor a
step, read here from the device's counter. Then both run at once beside each other. What is compared is over that time alone:
what the agent gave each (its active part), and the steps that each did times its joules a step alone. That is not quite a
truth: programs that share a device may draw more or less than alone (`sum_ratio` says how much, all in all), so
`error_scaled` is against shares that add up to what was drawn. `by_utilisation` is what utilisation without watts would give.
`bound` is what the agent says its joules of that time may be off by, in 95 of 100 cases (hec_energy_error_joules), and `inside` whether
they are. `looks` says how much more the driver's looks at whose turn it is vary than as many independent ones would: variance of
means of 1, 5 and 20 s; hundreds of seconds (--together 300) are needed to see it.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
IDLE_S, ALONE_S, GAP_S, TOGETHER_S = 12, 10, 7, 30


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_us", ctypes.c_ulonglong), ("sm", ctypes.c_uint), ("memory", ctypes.c_uint),
                ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


class Device:
    """The counter and the processes' utilisation, without HEC."""

    def __init__(self, card):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.handle = ctypes.c_void_p()
        self.check(self.nvml.nvmlInit_v2())
        self.check(self.nvml.nvmlDeviceGetHandleByIndex_v2(card, ctypes.byref(self.handle)))
        self.last_us = 0

    @staticmethod
    def check(code):
        if code != 0:
            raise RuntimeError(f"NVML says {code}")

    def name(self):
        text = ctypes.create_string_buffer(96)
        self.check(self.nvml.nvmlDeviceGetName(self.handle, text, 96))
        return text.value.decode()

    def joules(self):
        value = ctypes.c_ulonglong()
        self.check(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(value)))
        return value.value / 1e3

    def utilisation(self):
        """Since the last call: {pid: per cent}, and the microseconds that it is of. Whom the driver leaves out did not run."""
        samples, count = (Sample * 256)(), ctypes.c_uint(256)
        if self.nvml.nvmlDeviceGetProcessUtilization(self.handle, samples, ctypes.byref(count),
                                                     ctypes.c_ulonglong(self.last_us)) != 0:
            return {}, 0
        got = [s for s in samples[: count.value] if s.time_us > self.last_us and s.sm <= 100]
        since, self.last_us = self.last_us, max([self.last_us] + [s.time_us for s in got])
        return {s.pid: s.sm for s in got}, self.last_us - since if since else 0


class Program:
    def __init__(self, load, job, card):
        self.load, self.job = load, job
        environment = {**os.environ, "SLURM_JOB_ID": job, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(card)}
        self.process = subprocess.Popen([sys.executable, str(HERE / "program.py"), load], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    def ready(self):
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self.load} did not start")

    def begin(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def steps(self):
        return json.loads(self.process.stdout.readline())["steps"]


class Agent:
    def __init__(self, hec, folder, card):
        self.card, self.pages = str(card), []  # every page that was read, for who looks for a fault
        self.process = subprocess.Popen([hec, "agent", "--listen", "127.0.0.1:0", "--scrape-interval", "0", "--state-dir", folder],
                                        stderr=subprocess.PIPE, text=True)
        self.url = re.search(r"http://[\d.:]+", self.process.stderr.readline())[0]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def read(self):
        """joules of the card: {"device", "parts", (job, part)..., (job, "bound")...}"""
        page = urllib.request.urlopen(self.url + "/metrics", timeout=10).read().decode()
        self.pages.append(page)
        got = {"device": 0.0, "parts": 0.0}
        for match in re.finditer(r'^(hec_device_energy_joules_total|hec_energy_(?:error_joules|joules_total))\{(.*)\} (\S+)$', page, re.M):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            if labels["gpu"] != self.card:
                continue
            if match[1] == "hec_device_energy_joules_total":
                got["device"] += float(match[3])
            elif match[1] == "hec_energy_error_joules":
                got[(labels.get("hpc_job", "-"), "bound")] = float(match[3])
            else:
                key = (labels.get("hpc_job", "-"), labels["part"])
                got["parts"] += float(match[3])
                got[key] = got.get(key, 0.0) + float(match[3])
        return got

    def settled(self):
        """After a gap: when its readings of the counter have come."""
        time.sleep(GAP_S)
        return self.read()


def counted(device, action, seconds):
    before, began = device.joules(), time.monotonic()
    result = action()
    left = began + seconds - time.monotonic()
    if left > 0:
        time.sleep(left)
    return result, device.joules() - before, time.monotonic() - began


def alone(program, seconds):
    program.begin(seconds)
    return program.steps()


def together(programs, device, agent, seconds, windows, series):
    for program in programs:
        program.begin(seconds)
    begun = time.monotonic()
    while time.monotonic() < begun + seconds - 1:
        time.sleep(1)
        page = agent.read()
        series.append({"seconds": round(time.monotonic() - begun, 3), "counter": device.joules(),
                       "agent": {key if isinstance(key, str) else " ".join(key): value for key, value in page.items()}})
        percents, us = device.utilisation()
        if us:
            windows.append((percents, us))
    return [program.steps() for program in programs]


def mean_percent(samples):
    """By the time that each is of."""
    return sum(percent * us for percent, us in samples) / sum(us for _, us in samples) if samples else 0


def looks(samples):
    """Of two programs: the first one's part of the driver's looks, and the variance of its mean over 1, 5 and 20 s against that of
    as many independent looks, five a second."""
    parts = [first / (first + second) for (first, _), (second, _) in zip(*samples) if first + second]
    mean = sum(parts) / len(parts)
    ratios = {}
    for block in (1, 5, 20):
        means = [sum(parts[i : i + block]) / block for i in range(len(parts) - block + 1)]
        if len(parts) >= 4 * block and 0 < mean < 1:
            variance = sum((value - mean) ** 2 for value in means) / len(means) / (1 - block / len(parts))
            ratios[block] = variance * 5 * block / (mean * (1 - mean))
    return {"part_of_first": mean, "variance_against_independent": ratios}


def grown(after, before, key):
    """Bounds of two times: one of the joules in between, which is never too small (docs/metrics.md)."""
    return max(0, after.get(key, 0) ** 2 - before.get(key, 0) ** 2) ** 0.5 if key in after else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hec", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--loads", default="gemm,elementwise")
    parser.add_argument("--card", type=int, default=0, help="by NVML's numbers")
    parser.add_argument("--together", type=float, default=TOGETHER_S, help="seconds")
    options = parser.parse_args()
    os.environ["HEC"] = os.path.abspath(options.hec)
    began = time.monotonic()
    device = Device(options.card)
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(os.environ["HEC"], folder, options.card)
        programs = [Program(load, str(9001 + i), options.card) for i, load in enumerate(options.loads.split(","))]
        for program in programs:
            program.ready()
        _, idle_j, idle_s = counted(device, lambda: None, IDLE_S)
        floor_w = idle_j / idle_s
        out = {"device": device.name(), "floor_watts": floor_w, "loads": []}
        for program in programs:
            steps, joules, seconds = counted(device, lambda p=program: alone(p, ALONE_S), ALONE_S)
            out["loads"].append({"load": program.load, "alone_steps": steps, "alone_watts": joules / seconds,
                                 "joules_a_step": (joules - floor_w * seconds) / steps})
            before = agent.settled()
            out["loads"][-1]["agent_joules_alone"] = {part: joules for (job, part), joules in
                                                      ((key, value) for key, value in before.items() if isinstance(key, tuple)) if job == program.job}
        device.utilisation()
        windows, series = [], []
        steps, joules, seconds = counted(device, lambda: together(programs, device, agent, options.together, windows, series), options.together)
        after = agent.settled()
        for program in programs:
            program.process.kill()
        agent.process.terminate()
        agent.process.wait()
    drawn = joules - floor_w * seconds
    expected = [load["joules_a_step"] * count for load, count in zip(out["loads"], steps)]
    out |= {"together_seconds": seconds, "together_watts": joules / seconds, "sum_ratio": sum(expected) / drawn,
            "sum_of_parts_error": after["parts"] / after["device"] - 1,
            "agent_device_joules": after["device"] - before["device"], "agent_parts_joules": after["parts"] - before["parts"],
            "agent_seconds": options.together + GAP_S,
            "unattributed_joules": sum(after[key] - before.get(key, 0) for key in after if key[1] == "unattributed"),
            "seconds": time.monotonic() - began, "series": series}
    samples = [[(percents.get(program.process.pid, 0), us) for percents, us in windows] for program in programs]
    percents = list(map(mean_percent, samples))
    if len(programs) == 2 and sum(percents):
        alone_seconds = [count / load["alone_steps"] for load, count in zip(out["loads"], steps)]
        out["looks"] = looks(samples) | {"part_of_first_by_steps": alone_seconds[0] / sum(alone_seconds)}
    for load, program, count, truth, own, percent in zip(out["loads"], programs, steps, expected, samples, percents):
        key = (program.job, "active")
        given = after.get(key, 0) - before.get(key, 0)
        bound = grown(after, before, (program.job, "bound"))
        load |= {"together_steps": count, "alone_measured_joules": truth, "agent_joules": given, "error": given / truth - 1,
                 "error_scaled": given / (truth / out["sum_ratio"]) - 1, "bound_joules": bound,
                 "bound": bound / given if bound is not None and given else None,
                 "inside": bound is not None and abs(given - truth) <= bound,
                 "inside_scaled": bound is not None and abs(given - truth / out["sum_ratio"]) <= bound,
                 "utilisation_samples": own,
                 "by_utilisation_joules": drawn * percent / sum(percents) if percent else None}
    pathlib.Path(options.out).write_text(json.dumps(out, indent=1) + "\n")
    pathlib.Path(options.out).with_suffix(".prom").write_text("\n".join(agent.pages))
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
