"""The programs of one card, or of the jobs of several, one after the other: `lane.py --card N[,N] --hec HEC --out FOLDER`. An order is a line with a seed and the seconds
that are left; the answer is a line of JSON, the program's result.

Of each program: the clean step is timed, so that the drawn shares become sizes; the program runs under hec as a user would start it; then
all arms of the truth (as it is, without each inefficiency, without all, and what else a finding may be measured by) start at once and take
turns on the card. Arms in Python are forks of this process, which has imported PyTorch and never touches a device."""
import argparse
import concurrent.futures
import importlib.util
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "planted")]
import grammar
import grammar_jobs
import judge
import writers
from arms import Arm, Together
from serve import Counter

TURN_S, TURN_MOST_S, STEADY_S = 0.6, 3.0, 0.15
TURNS, TURNS_MOST = 3, 6
SURE = 0.03  # of the joules: more turns while a truth is known less well
READY_S, PROBE_READY_S = 60, 45
PROBES = 3
MEASURE_S = 15  # what is left for the others when a probe is not ready
RUN_MOST_S = 90
KEPT = (".py", ".cu", ".hec", ".json")
ENVIRONMENT = {"OMP_NUM_THREADS": "4", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
               "TOKENIZERS_PARALLELISM": "false", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}  # else an arm finds what another compiled


class Orders:
    """What an arm's program knows as its progress: it goes on as it is told, three parts an order: until it is steady, what is timed, and
    some more, so that the card's counter moves while it is steady."""

    def __init__(self, orders, answers, finish):
        self.orders, self.answers, self.finish = orders, answers, finish
        self.units, self.script = 0, self.play()

    def step(self, units):
        self.units = units
        return next(self.script, False)

    def say(self, **words):
        print(json.dumps({**words, "units": self.units}), file=self.answers, flush=True)

    def play(self):
        for _ in range(4):
            yield True
        self.finish()
        self.say(ready=True)
        for order in iter(self.orders.readline, ""):
            lead, timed, tail = map(int, order.split())
            for _ in range(lead):
                yield True
            self.finish()
            begin = time.perf_counter()
            for _ in range(timed):
                yield True
            enqueued = time.perf_counter()
            self.finish()
            end = time.perf_counter()
            for _ in range(tail):
                yield True
            self.say(steps=timed, begin=begin, enqueued=enqueued, end=end)
        yield False


def finisher(framework):
    """A function that returns when the device has done all that it was given."""
    if framework == "cupy":
        import cupy
        return cupy.cuda.runtime.deviceSynchronize
    if framework == "jax":
        import jax.numpy as jnp
        return lambda: (jnp.zeros(()) + 1).block_until_ready()
    import torch
    if framework == "ranks":
        return all_ranks_finished
    return torch.cuda.synchronize


def all_ranks_finished():
    import torch
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    torch.distributed.barrier()


def python_arm(path, framework, environment=None):
    def run(orders, answers):
        os.environ.update(environment or {})
        os.chdir(path.parent)
        spec = importlib.util.spec_from_file_location("drawn", path)
        module = sys.modules["drawn"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main(Orders(orders, answers, finisher(framework)))
    return run


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Meter:
    """The cards' energy counters, read while an arm works: they move every 20 to 100 ms."""

    def __init__(self, cards):
        self.counters = [Counter(card) for card in cards]

    def of(self, work):
        """(work(), [(time, joules)] of each card at its counter's edges meanwhile)."""
        edges, ended = [[(time.perf_counter(), counter.read())] for counter in self.counters], threading.Event()

        def watch():
            while not ended.wait(0.003):
                for counter, its_edges in zip(self.counters, edges):
                    before, now = time.perf_counter(), counter.read()
                    if now != its_edges[-1][1]:
                        its_edges.append((before, now))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return work(), [its_edges[1:] for its_edges in edges]  # the first is no edge
        finally:
            ended.set()
            watcher.join()


def joules(edges, begin, end):
    """Between two times, straight from edge to edge and beyond the last ones."""
    if len(edges) < 2:
        raise RuntimeError(f"the energy counter moved {len(edges)} times")

    def at(when):
        place = next((i for i in range(1, len(edges) - 1) if edges[i][0] >= when), len(edges) - 1)
        (t0, e0), (t1, e1) = edges[place - 1], edges[place]
        return e0 + (e1 - e0) * (when - t0) / (t1 - t0)

    return at(end) - at(begin)


class Program:
    """One drawn program in a folder of its own."""

    def __init__(self, lane, seed, until):
        self.lane, self.until = lane, until
        self.folder = lane.out / f"{seed:x}"
        self.spec = (grammar_jobs if len(lane.cards) > 1 else grammar).draw(seed)
        self.result = {"seed": seed, "spec": self.spec}

    def left(self, most):
        """Seconds for what is to be waited for."""
        left = self.until - time.monotonic()
        if left < 1:
            raise RuntimeError(judge.CUT)
        return min(most, left)

    def cut(self):
        """Whether all its time is over: what then did not answer says nothing of the program."""
        return self.until - time.monotonic() < 1

    def written(self, name, without, probe=None):
        """The source of an arm, in a folder of its own; of CUDA C++ what nvcc made of it."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / writers.file_name(self.spec)
        path.write_text(writers.source(self.spec, without, probe))
        return path

    def built(self, path):
        if path.suffix == ".cu":
            subprocess.run([self.lane.nvcc, "-O2", f"-arch=sm_{self.lane.options.arch}", "-lineinfo", "-o", path.with_suffix(""), path], check=True, capture_output=True, text=True,
                           timeout=self.left(60))
        return path

    def command(self, path):
        if "ranks" in self.spec:
            return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.spec['ranks']}", path.name]
        return [path.with_suffix("")] if path.suffix == ".cu" else [sys.executable, path.name]

    def arm(self, path):
        log = path.parent / "log"
        if path.suffix == ".cu":
            return Arm.started(self.command(path), {**os.environ, "ORDERS": "1"}, log, cwd=path.parent)
        if "ranks" not in self.spec:
            return Arm.forked(python_arm(path, self.spec["framework"]), log)
        job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(self.spec["ranks"])}
        return Together([Arm.forked(python_arm(path, "ranks", {**job, "RANK": str(rank), "LOCAL_RANK": str(rank)}), f"{log}{rank}")
                         for rank in range(self.spec["ranks"])])

    def size(self):
        """The clean step's seconds make drawn shares sizes."""
        drawn = self.spec
        self.spec = grammar.sized(drawn, 1e-4, 0)
        self.spec["knobs"].pop("gap", None)  # requests without a pause
        period = 1 if drawn["loop"] != "train_eval" else drawn["eval_every"]
        arm = self.arm(self.built(self.written("clean", frozenset(drawn["faults"]))))
        try:
            arm.hear(self.left(READY_S))
            first = arm.turn(f"{period} {3 * period} 0", self.left(READY_S))
            step = (first["end"] - first["begin"]) / first["steps"]
            again = arm.turn(f"3 {max(1, math.ceil(0.3 / step / period)) * period} 0", self.left(READY_S))
        finally:
            arm.end(5)
        clean = {"step": (again["end"] - again["begin"]) / again["steps"], "enqueue": (first["enqueued"] - first["begin"]) / first["steps"]}
        self.spec = grammar.sized(drawn, clean["step"], clean["enqueue"])
        self.result.update(spec=self.spec, clean=clean)

    def observe(self):
        """Under hec, as a user starts it: what it printed, and what the report says."""
        path, run = self.built(self.written("base", frozenset())), self.folder / "run.hec"
        hec = self.lane.options
        mode = [] if hec.trace == "auto" else [f"--trace={hec.trace}"]
        done = subprocess.run([hec.hec, "run", "-f", "-q", *mode, "-o", run, "--", *self.command(path)], cwd=path.parent, text=True,
                              capture_output=True, timeout=self.left(RUN_MOST_S), env={**os.environ, "SECONDS": str(hec.seconds)})
        printed = next((json.loads(line) for line in reversed(done.stdout.splitlines()) if line.startswith("{")), None)
        if done.returncode or not printed:
            alone = subprocess.run(self.command(path), cwd=path.parent, capture_output=True, timeout=self.left(RUN_MOST_S), env={**os.environ, "SECONDS": "1"})
            why = f"status {done.returncode}: {(done.stderr or done.stdout)[-2000:]}"
            raise RuntimeError(why if alone.returncode else f"{why}\n{judge.ONLY_UNDER_HEC}")
        told = subprocess.run([hec.hec, "report", "--json", "--units", str(printed["units"]), run], check=True, capture_output=True, text=True,
                              timeout=self.left(60)).stdout
        report = json.loads(told)
        (self.folder / "report.json").write_text(told)
        self.result.update(printed=printed, joules=report["totals"]["joules"], headline=report["headline"], caveats=report["caveats"],
                           steps=report["steps"], together=report["together"], scale_out=report["scale_out"],
                           findings=[{key: finding[key] for key in ("cause", "confidence", "actionable", "title", "lever_id", "predicted", "source")}
                                     for finding in report["findings"]])

    def probes(self):
        """Causes that are claimed or put first, of which no inefficiency of the program is, or another change than its fix: what else
        measures them. Of a server always how long it waits for requests."""
        planted = {grammar.FAULTS[name].causes[0] for name in self.spec["faults"]}
        planted = {cause for cause in planted if not judge.claims_more(self.spec, cause)}
        claimed = [judge.first_of(self.result)] + [row[0] for row in judge.claims(self.result) if row[2] >= judge.CLAIMED]
        claimed = [cause for cause in dict.fromkeys(claimed) if cause not in planted and cause != "quiet" and writers.probe_of(self.spec, cause)]
        return ["quiet"] * (self.spec["loop"] == "serve") + claimed[:PROBES]

    def without(self, cause):
        """Inefficiencies that the probe of a cause is without."""
        return frozenset(name for name in self.spec["faults"] if cause in judge.BESIDE and grammar.FAULTS[name].causes[0] == cause)

    def turn_of(self, arm, shape):
        lead, timed, tail = shape
        answer, edges = self.lane.meter.of(lambda: arm.turn(f"{lead} {timed} {tail}", self.left(READY_S)))
        units = answer["steps"] * answer["units"]
        return {"seconds": (answer["end"] - answer["begin"]) / units,
                "joules": sum(joules(card, answer["begin"], answer["end"]) for card in edges) / units}

    def shape(self, arm):
        """Steps of the three parts of a turn."""
        period = grammar.period(self.spec)
        ahead = 2 * (12 if self.spec["feed"] == "loader" else 0) + (20 if self.spec["loop"] == "serve" else 3)  # what is prepared in a pause
        first = arm.turn(f"{ahead} {max(2, period)} 0", self.left(READY_S))
        step = (first["end"] - first["begin"]) / first["steps"]
        most = max(period, int(TURN_MOST_S / step) // period * period)
        steady = math.ceil(STEADY_S / step)
        return ahead + steady, min(most, math.ceil(max(TURN_S, 3 * (period > 1) * period * step) / step / period) * period), steady

    def measure(self):
        """The truth: all arms take turns."""
        wanted = {name: self.written(name, without) for name, without in grammar.fixes(self.spec).items()}
        wanted |= {f"probe-{cause}": self.written(f"probe-{cause}", self.without(cause), cause) for cause in self.probes()}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.built, wanted.values()))
        together = not any(grammar.FAULTS[name].crowds for name in self.spec["faults"])  # else one after the other, none beside it
        truth, shapes = {}, {}
        for group in [wanted] if together else [{name: path} for name, path in wanted.items()]:
            self.take_turns(group, TURNS_MOST if together else TURNS, truth, shapes)
        self.result.update(truth=truth, shapes=shapes)

    def take_turns(self, paths, most, truth, shapes):
        """Of arms that are ready at the same time: adds their turns, and steps of those."""
        arms = {name: self.arm(path) for name, path in paths.items()}
        try:
            for name in list(arms):
                try:
                    arms[name].hear(self.left(READY_S) if name in grammar.fixes(self.spec) else max(1, self.left(PROBE_READY_S) - MEASURE_S))
                    shapes[name] = self.shape(arms[name])
                except RuntimeError as failure:
                    if not name.startswith("probe"):
                        raise RuntimeError(f"{name}: {failure}") from failure
                    self.result.setdefault("without_probe", {})[name] = str(failure)[-300:]
                    arms.pop(name).end(2)
            turn, round_s = 0, TURN_MOST_S * len(arms)
            truth |= {name: [] for name in arms}
            while turn < TURNS or (turn < most and judge.margin(truth) > SURE and self.left(2 * round_s) > round_s):
                for name in list(arms) if turn % 2 else reversed(list(arms)):
                    truth[name].append(self.turn_of(arms[name], shapes[name]))
                turn += 1
        finally:
            for arm in arms.values():
                arm.end(5)

    def play(self):
        begun = time.monotonic()
        try:
            self.size()
            self.observe()
            self.measure()
            self.result["judged"] = judge.verdict(self.result)
        except (RuntimeError, OSError, ValueError, KeyError, subprocess.SubprocessError, ArithmeticError) as failure:
            why = (getattr(failure, "stderr", None) or f"{type(failure).__name__}: {failure}")[-2200:]
            self.result["failed"] = judge.CUT if self.cut() else why
        for name in self.folder.glob("*"):  # what stays: the program, what it says where it failed, the run
            if name.is_dir() and name.name != "base" and "failed" not in self.result:
                shutil.rmtree(name)
        for path in self.folder.rglob("*"):
            if path.is_file() and path.suffix not in KEPT and not path.name.startswith("log"):
                path.unlink()
        self.result["took"] = round(time.monotonic() - begun, 1)
        return self.result


class Lane:
    def __init__(self, options):
        self.options, self.out, self.cards, self.meter = options, options.out, options.card, Meter(options.card)
        self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--card", type=lambda text: [int(card) for card in text.split(",")], required=True, help="several: of jobs, a rank each")
    parser.add_argument("--hec", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--arch", default="90", help="of the card, for nvcc")
    parser.add_argument("--trace", default="auto")
    parser.add_argument("--seconds", type=float, default=7)
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT, CUDA_VISIBLE_DEVICES=",".join(map(str, options.card)))
    import torch
    lane = Lane(options)
    assert not torch.cuda.is_initialized()
    for line in sys.stdin:
        seed, seconds = line.split()
        print(json.dumps(Program(lane, int(seed), time.monotonic() + float(seconds)).play()), flush=True)


if __name__ == "__main__":
    main()
