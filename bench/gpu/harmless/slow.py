"""Part `slow`: whole processes in turns, without HEC and with it; and what HEC says that it costs."""
import concurrent.futures
import json
import random
import subprocess
import threading
import time

import catalogue
import playing

PROGRAMS = ("launch", "infer", "resnet18", "transformer", "ddp")
VARIANTS = {"none": None, "client": None, "nothing": ["--trace=off", "--hooks=off"], "hooks": ["--trace=off"],
            "auto": ["--trace=auto"], "full": ["--trace=full"]}
SECONDS, START_S = 8.0, 8.0  # of steps, and about what a program takes to start and end
LIMIT_S = 150
GRACE_S = 20  # after the part's time, then a run is cut and not counted


def claim_of(hec, path):
    """What the report says: a ratio and its interval; None is "unknown"."""
    done = subprocess.run([hec, "report", "--json", str(path)], text=True, capture_output=True)
    if done.returncode:
        return None
    trace = json.loads(done.stdout)["trace"]
    return {"overhead": trace["overhead"], "low": trace["overhead_low"], "high": trace["overhead_high"],
            "measured": trace["overhead_measured"], "coverage": trace["coverage"], "records": trace["records"], "why": trace["why"]}


class Slow:
    def __init__(self, player, options, result, cards, cpus):
        self.player, self.options, self.result, self.cards, self.cpus = player, options, result, cards, cpus
        self.deadline, self.lock, self.busy, self.usual = time.monotonic() + options.seconds_limit, threading.Lock(), [], {}
        self.end = self.deadline + GRACE_S
        self.rng = random.Random(time.time_ns())
        self.names = [name for name in PROGRAMS if name in options.only and catalogue.PROGRAMS[name].gpus <= len(cards)]
        self.variants = [name for name in VARIANTS if name in ("none", *options.variants)]

    def round(self, name, gpus, cpus):
        """One run of each variant in random order; None where one of them ended wrongly, {} where the time was up."""
        program, values = catalogue.PROGRAMS[name], {}
        command = catalogue.command(program, self.player.built, self.options.seconds or SECONDS, more=self.options.more)
        for variant in self.rng.sample(self.variants, len(self.variants)):
            left = self.end - time.monotonic()
            more = {"CUDA_INJECTION64_PATH": str(self.player.built / "client.so"), "PROBE_INJECT": "kernels"} if variant == "client" else {}
            run = self.player.play(command, min(LIMIT_S, left), gpus, hec=VARIANTS[variant], cpus=cpus, more=more)
            times = playing.times(run)
            if run["hung"] and left < LIMIT_S:
                self.player.forget(run)
                return {}
            if run["hung"] or run["status"] or not times:
                self.result.setdefault("failed", []).append([name, variant, run["status"], run["stderr"][-500:]])
                print(f"slow: {name} {variant}: status {run['status']}: {run['stderr'][-300:]}", flush=True)
                self.player.forget(run)
                return None
            values[variant] = times
            if variant in ("auto", "full"):
                values[variant]["claim"] = claim_of(self.player.hec, run["folder"] / "run.hec")
            self.player.forget(run)
        return values

    def next(self, gpus):
        """The program with fewest rounds that still fits into the time."""
        with self.lock:
            first = len(self.variants) * ((self.options.seconds or SECONDS) + START_S)
            names = [n for n in self.names if catalogue.PROGRAMS[n].gpus == gpus
                     and time.monotonic() + self.usual.get(n, first) * 1.1 < self.deadline]
            name = min(names, key=lambda n: len(self.result["rounds"].get(n, [])) + self.busy.count(n), default=None)
            if name:
                self.busy.append(name)
            return name

    def measure_one(self, name, gpus, cpus):
        start = time.monotonic()
        values = self.round(name, gpus, cpus)
        with self.lock:
            self.usual[name] = time.monotonic() - start
            self.busy.remove(name)
            if values:
                self.result["rounds"].setdefault(name, []).append(values)
            elif values is None and name in self.names:
                self.names.remove(name)
            self.options.save()

    def lane(self, card):
        share = len(self.cpus) // len(self.cards)
        cpus = self.cpus[card * share:(card + 1) * share]
        while name := self.next(1):
            self.measure_one(name, [card], cpus)

    def go(self):
        """Programs of two GPUs first, for their share of the time, with all CPUs; then one program a GPU at a time."""
        pairs = [name for name in self.names if catalogue.PROGRAMS[name].gpus > 1]
        whole, start = self.deadline, time.monotonic()
        self.deadline = start + (whole - start) * len(pairs) / max(1, len(self.names))
        while pairs and (name := self.next(2)):
            self.measure_one(name, [0, 1], self.cpus)
        self.deadline = whole
        with concurrent.futures.ThreadPoolExecutor(len(self.cards)) as pool:
            for lane in [pool.submit(self.lane, card) for card in range(len(self.cards))]:
                lane.result()


def measure(player, options, result, cards, cpus):
    result.setdefault("rounds", {})
    Slow(player, options, result, cards, cpus).go()
