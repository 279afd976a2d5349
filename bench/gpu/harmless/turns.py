#!/usr/bin/env python3
"""What HEC costs a program, with and without it in turns inside one process: figures of whole processes vary by more.

    hec run --trace=auto -- bench/gpu/harmless/turns.py launch|infer [SECONDS] [--switch PARTS,PARTS...] [--step] > A.json
    hec run -- torchrun --standalone --nproc-per-node=2 bench/gpu/harmless/turns.py ranks|many [SECONDS] [--switch ...] > A.json
    bench/gpu/harmless/turns.py pool A.json B.json...

Turns of 0.15 s; each pair of neighbours gives a ratio of wall time and of CPU time of the launching thread a step. Prints the
median ratio less 1 and its 95 % interval (bootstrap over pairs), of one process or of several together. CUPTI is never
switched by this.

--switch: what is off in every second turn: tracer (the trampolines), hooks, observer (the process `hec run`, stopped by
SIGSTOP, with its sensors and its sampler of stacks), or several of them, as tracer+hooks, which is the default. Of a list each
has its pairs in turn, and its line. tracer+hooks+observer is what observing costs outside of CUPTI's glimpse. ranks, many:
DistributedDataParallel of large and of many small layers; all ranks switch together, and the first one prints.
none: nothing is switched; a run whose report is to be read, the same steps for so many seconds.
armed: levers that are armed and never on, as in a live search of `hec try` before its first order; of one process, with a page of
nothing but zeros:

    head -c 4096 /dev/zero > PAGE; HEC_LIVE=$PWD/PAGE hec run --with bf16_autocast,cuda_graphs,tf32 -- bench/gpu/harmless/turns.py launch --switch armed

--step: single steps in turns, each waited for, fifty times as many pairs. The hooks then stay in PyTorch and return at
once, and the sampler of stacks runs on: what both cost is not in these figures.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "trace")]
TURN_S, WARM_S, WARM_STEPS, DRAWS = 0.15, 3.0, 20, 1000


def training():
    import torch

    torch.manual_seed(0)
    layers = [layer for _ in range(60) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    inputs = torch.randn(64, 128, device="cuda")

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


def inference():
    import torch

    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda().eval()
    inputs = torch.randn(1, 32, 768, device="cuda")

    def step():
        with torch.no_grad():
            model(inputs).mean().item()

    return step


def ranks(width=2048, depth=12, rows=4096):
    import torch

    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", device))
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).to("cuda", torch.bfloat16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    inputs = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


PROGRAMS = {"launch": training, "infer": inference, "ranks": ranks, "many": lambda: ranks(512, 100, 1024)}
OF_RANKS = ("ranks", "many")


def turn(step, seconds=TURN_S):
    """Seconds of wall and of CPU time a step."""
    wall, cpu, steps = time.perf_counter(), time.thread_time(), 0
    while steps == 0 or time.perf_counter() - wall < seconds:
        step()
        steps += 1
    return (time.perf_counter() - wall) / steps, (time.thread_time() - cpu) / steps


class Alone:
    """The turns of one process."""

    first = True

    def warm(self, step, until):
        while time.perf_counter() < until:
            step()

    def going(self, until):
        return time.perf_counter() < until

    turn = staticmethod(turn)


class Together:
    """Ranks that go through the same turns, of as many steps each: the first one says how many, and how long."""

    def __init__(self):
        import torch

        self.torch = torch
        self.first, self.steps = torch.distributed.get_rank() == 0, WARM_STEPS

    def agreed(self, value):
        """What the first rank says."""
        told = self.torch.tensor([float(value)], device="cuda")
        self.torch.distributed.broadcast(told, 0)
        return told.item()

    def warm(self, step, until):
        while self.going(until):
            seconds = self.turn(step)[0]
        self.steps = max(1, int(self.agreed(TURN_S / seconds)))

    def going(self, until):
        return bool(self.agreed(time.perf_counter() < until))

    def turn(self, step):
        """Seconds of wall and of CPU time a step, with the devices' work."""
        wall, cpu = time.perf_counter(), time.thread_time()
        for _ in range(self.steps):
            step()
        self.torch.cuda.synchronize()
        return (time.perf_counter() - wall) / self.steps, (time.thread_time() - cpu) / self.steps


class Observer:
    """The process `hec run` above this one: stopped and going."""

    def __init__(self):
        self.process = None
        parent = os.getppid()
        while parent > 1 and not self.process:
            status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{parent}/status").read_text().splitlines())
            if status["Name"].strip() == "hec":
                self.process = parent
            parent = int(status["PPid"])

    def set(self, on):
        if self.process:
            os.kill(self.process, signal.SIGCONT if on else signal.SIGSTOP)


class Flags:
    """Switches tracer and hooks at no cost of its own."""

    def __init__(self, hec):
        self.hec = hec

    def set(self, on):
        if self.hec.library:
            (self.hec.library.hec_trace_resume if on else self.hec.library.hec_trace_pause)()
        if self.hec.hooks:
            self.hec.hooks.core.installed = self.hec.hooks.core.notes = on


class Armed:
    """What armed levers do at each step: look whether there is an order."""

    def __init__(self):
        self.live = next((module for name, module in list(sys.modules.items()) if name.endswith("levers.live")), None)
        if not self.live or not self.live._switcher:
            sys.exit("turns: no lever is armed: HEC_LIVE and --with, as --help says")
        self.library = self.live.core.hooks.library
        self.armed = self.library.step

    def set(self, on):
        self.library.step = self.armed if on else self.live._inner


class Parts:
    """What one word of --switch names."""

    def __init__(self, name, step, first):
        from switch import Hec

        self.name, words = name, name.split("+")
        unknown = set(words) - {"tracer", "hooks", "observer", "armed"}
        if unknown:
            sys.exit(f"turns: not known: {', '.join(unknown)}")
        self.hec = Hec(hooks="hooks" in words, tracer="tracer" in words)
        self.observer = Observer() if "observer" in words and first else None  # one for all ranks
        self.inside = Flags(self.hec) if step else self.hec
        self.levers = Armed() if "armed" in words else None
        self.found = {"wall": [], "cpu": []}

    def set(self, on):
        self.inside.set(on)
        if self.levers:
            self.levers.set(on)
        if self.observer:
            self.observer.set(on)

    def line(self, program, step):
        rounded = {clock: [round(ratio, 5) for ratio in ratios] for clock, ratios in self.found.items()}
        return line({"program": program, "switch": self.name + (", step by step" if step else ""), "seen": bool(self.hec.library),
                     "hooks": bool(self.hec.hooks), "observer": bool(self.observer and self.observer.process), **rounded})


def interval(ratios):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return [round(100 * (value - 1), 3) for value in
            (statistics.median(ratios), medians[int(0.025 * DRAWS)], medians[int(0.975 * DRAWS)])]


def line(found, **more):
    intervals = {f"{clock}_percent": interval(found[clock]) for clock in ("wall", "cpu")}
    return json.dumps({**found, "pairs": len(found["wall"]), **intervals, **more})


def pool(paths):
    """Pairs of several processes of one program."""
    found = [json.loads(pathlib.Path(path).read_text()) for path in paths]
    same = {key: found[0][key] for key in ("program", "switch", "seen", "hooks", "observer")}
    if any(one[key] != value for one in found for key, value in same.items()):
        sys.exit("turns: these are not of one program")
    ratios = {clock: [ratio for one in found for ratio in one[clock]] for clock in ("wall", "cpu")}
    print(line({**same, **ratios}, processes=len(found)))


def main():
    if sys.argv[1:2] == ["pool"]:
        return pool(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("seconds", nargs="?", type=float, default=40)
    parser.add_argument("--switch", default="tracer+hooks", help="what is on and off in turns")
    parser.add_argument("--step", action="store_true", help="steps in turns, of one process")
    options = parser.parse_args()
    if options.step and options.program in OF_RANKS:
        parser.error("--step is for one process")
    import torch

    step = PROGRAMS[options.program]()
    turns = Together() if options.program in OF_RANKS else Alone()
    began = time.perf_counter()
    if options.switch == "none":
        return turns.warm(step, began + options.seconds)
    each = [Parts(name, options.step, turns.first) for name in options.switch.split(",")]
    turns.warm(step, began + WARM_S)
    rng = random.Random(2)

    def waited():
        step()
        torch.cuda.synchronize()

    for parts in itertools.cycle(each):
        if not turns.going(began + options.seconds):
            break
        times = {}
        try:
            for on in rng.sample((True, False), 2):
                parts.set(on)
                torch.cuda.synchronize()
                if options.step:
                    times[on] = turns.turn(waited, 0)
                    parts.set(True)
                else:
                    step()
                    times[on] = turns.turn(step)
        finally:
            parts.set(True)  # a stopped `hec run` would never end
        for number, clock in enumerate(("wall", "cpu")):
            parts.found[clock].append(times[True][number] / times[False][number])
    for parts in each if turns.first else ():
        print(parts.line(options.program, options.step))
    if options.program in OF_RANKS:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
