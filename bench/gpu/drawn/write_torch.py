"""Programs in PyTorch, alone, with Lightning and with Hugging Face's Trainer."""
import frameworks_of_torch
import models_torch
from grammar import RECOMPILE_EVERY
from parts import Flags, beside, filled, host_code, indented, program, reported

def probe_of(spec, cause):
    """What else measures a finding of which no inefficiency of the program is: the change that answers it, named by the cause."""
    model, loop, faults = spec["model"], spec["loop"], spec["faults"]
    plain = spec["framework"] == "torch"
    fed = loop != "iterate" and model not in ("decode", "diffusion") and not {"loader_workers", "loader_work"} & faults.keys()
    possible = {
        "batch": model != "elementwise" and loop != "serve" and not spec["faults"].keys() & {"reads"},
        "precision": spec["precision"] in ("tf32", "fp32") and model not in ("elementwise", "solver", "gnn"),
        "memory": "recompile" not in faults,
        "launch": not {"barriers", "host_inside", "recompile", "empty_cache"} & faults.keys() and not spec.get("captured"),
        "host": not plain or loop != "serve" and (spec["report_every"] == 1 or fed and spec["feed"] != "resident"),
        "sync": plain and loop != "serve" and (spec["report_every"] == 1 or model == "solver"),
        "data": plain and spec["feed"] == "loader",
        "copy": plain and (loop == "serve" or spec["feed"] in ("pinned", "loader")) and loop != "iterate" and model not in ("decode", "diffusion"),
        "quiet": loop == "serve",
    }
    return cause if possible.get(cause) else None


IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"

RESIDENT = '''def batches():
    """All of it fits on the device."""
    x, y = examples(2 * BATCH)
    x, y = x.to(DEVICE), y.to(DEVICE)
    while True:
        for first in range(0, len(x), BATCH):
            yield x[first:first + BATCH], y[first:first + BATCH]
'''
PINNED = '''def batches():
    """Two batches in memory, which take turns."""
    kept = [examples(BATCH) for _ in range(2)]
    if DEVICE == "cuda":
        kept = [(x.pin_memory(), y.pin_memory()) for x, y in kept]
    while True:
        yield from kept
'''
LOADER = '''WORKERS = @WORKERS@


class Items(torch.utils.data.Dataset):
    """Items as they are stored, each made ready when it is asked for."""

    def __init__(self):
        self.x, self.y = examples(256)
@PREPARE_SETUP@
    def __len__(self):
        return 1 << @LENGTH@

    def __getitem__(self, index):
        place = index % len(self.x)
@PREPARE@        return self.x[place], self.y[place]
'''
LOADED = '''

def batches():
    return iter(torch.utils.data.DataLoader(Items(), batch_size=BATCH, num_workers=WORKERS, pin_memory=DEVICE == "cuda"))
'''
REQUESTS = '''def batches():
    """What clients send, as it comes in."""
    arrived = queue.Queue(8)
    kept = [examples(BATCH) for _ in range(2)]
@PINNED@
    def clients():
        times, due = random.Random(5), time.monotonic()
        while True:
            due = max(due, time.monotonic() - 8 * GAP) + times.uniform(0.5, 1.5) * GAP
            time.sleep(max(0, due - time.monotonic()))
            arrived.put(kept[times.randrange(2)])

    threading.Thread(target=clients, daemon=True).start()
    while True:
        yield arrived.get()
'''
# What each item takes of the host: (set-up, the lines of __getitem__, items of work a microsecond)
PREPARE = [
    ("        self.packed = zlib.compress(bytes(random.Random(3).choices(range(16), k=@N@)), 1)\n",
     "        stored = zlib.decompress(self.packed)\n        assert stored\n", 260),
    ("        self.text = \"\".join(random.Random(4).choices(\"abcdefgh \", k=@N@))\n",
     "        ids = [ord(letter) % 64 for letter in self.text]\n        assert ids\n", 24),
    ("        self.signal = torch.randn(@N@)\n",
     "        smooth = self.signal.sort().values.cumsum(0)\n        assert len(smooth)\n", 14),
]


def feed(flags):
    if flags["loop"] == "iterate" or flags["model"] in ("decode", "diffusion"):
        return ""
    if flags["loop"] == "serve":
        return filled(REQUESTS, PINNED="    kept = [(x.pin_memory(), y.pin_memory()) for x, y in kept]\n" if flags.probe == "copy" else "")
    if flags.feed != "loader":
        return RESIDENT if flags.feed == "resident" else PINNED
    workers, prepare_setup, prepare = 4, "", ""
    named = next((name for name in ("loader_workers", "loader_work") if flags.drawn(name)), None)
    if named:
        setup, lines, rate = flags.rng.choice(PREPARE)
        setup = filled(setup, N=max(1, flags.knobs[named] * rate))
        if named == "loader_work":  # fixed: made ready once, before
            workers = flags.knobs["workers"]
            prepare_setup, prepare = (setup, lines) if flags.has(named) else (setup + lines, "")
        else:
            workers = flags.knobs["workers"] if flags.has(named) else 12
            prepare_setup, prepare = setup, lines
    text = LOADER + ("" if flags.framed else LOADED)
    return filled(text, WORKERS=workers, PREPARE_SETUP=prepare_setup, PREPARE=prepare, LENGTH=22 if flags["framework"] == "trainer" else 30)


PREFETCHED = '''def prefetched(feed):
    """The next batch comes over while this one is worked on."""
    stream = torch.cuda.Stream()

    def fetched():
        with torch.cuda.stream(stream):
            return [given.to(DEVICE, non_blocking=True) for given in next(feed)]

    coming = fetched()
    while True:
        torch.cuda.current_stream().wait_stream(stream)
        here = coming
        for given in here:
            given.record_stream(torch.cuda.current_stream())
        coming = fetched()
        yield here
'''
REPLAYED = '''class Replayed:
    """A function of tensors as one CUDA graph."""

    def __init__(self, function, *examples):
        self.inputs = [example.clone() for example in examples]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                function(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = function(*self.inputs)

    def __call__(self, *tensors):
        for mine, given in zip(self.inputs, tensors):
            mine.copy_(given, non_blocking=True)
        self.graph.replay()
        return self.result
'''


def around(flags):
    """(set-up, lines before the update, lines after it) of what the loop does beside its model."""
    setup, before = "", ""
    if flags.drawn("pageable"):
        setup += filled("extras = [torch.randn(@N@) for _ in range(2)]\ntotal = torch.zeros((), device=DEVICE)\n",
                        N=max(1, flags.knobs["pageable"] // 4))
        if flags.has("pageable"):
            before += "total += extras[step % 2].to(DEVICE).mean()\n"
        else:
            setup += "if DEVICE == \"cuda\":\n    extras = [extra.pin_memory() for extra in extras]\n"
            before += "total += extras[step % 2].to(DEVICE, non_blocking=True).mean()\n"
    if flags.drawn("chatty"):
        setup += filled("rows = list(torch.randn(@N@, 64))\nseen = torch.zeros((), device=DEVICE)\n", N=flags.knobs["chatty"])
        before += ("block = torch.stack([row.to(DEVICE) for row in rows])\n" if flags.has("chatty")
                   else "block = torch.stack(rows).to(DEVICE)\n") + "seen += block.mean()\n"
    more, after = beside(flags, "torch.randn(@N@, device=DEVICE)", "memory.cpu()", "kept.to(DEVICE)", "values[which % len(values)].item()")
    setup += more
    if flags.drawn("checkpoint"):
        every = flags.knobs["checkpoint"] if flags.has("checkpoint") else 5000
        after += f"if step % {every} == {every - 1}:\n    torch.save(model.state_dict(), \"weights.pt\")\n"
    if flags.has("empty_cache"):
        every = flags.knobs["empty_cache"]
        after += "torch.cuda.empty_cache()\n" if every == 1 else f"if step % {every} == 0:\n    torch.cuda.empty_cache()\n"
    return setup, before, after


def settings(flags):
    lines = ""
    if flags.precision in ("tf32", "fp32") and flags["loop"] != "iterate":
        lines += f"torch.set_float32_matmul_precision(\"{'highest' if flags.has('full_precision') else 'high'}\")\n"
    if flags.has("full_precision") and flags["model"] in ("cnn", "diffusion"):
        lines += "torch.backends.cudnn.allow_tf32 = False\n"
    if flags["model"] in ("cnn", "diffusion"):
        lines += "torch.backends.cudnn.benchmark = True\n"
    if flags.drawn("recompile"):
        lines += "torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 1000\n"
    return lines


TRAIN = '''def update(x, y):
@CONTEXT@        output = model(x)
    losses = F.cross_entropy(output.float(), y, reduction="none")
@INSIDE@    optimizer.zero_grad(set_to_none=True)
    losses.mean().backward()
@CLIP@    optimizer.step()
    return losses.detach()
'''
INFER = '''@torch.no_grad()
def update(x, y):
@CONTEXT@        output = model(x)
    return output.float().amax(1)
'''
STEP_ALONE = '''@torch.no_grad()
def update():
@CONTEXT@        return model.step()
'''
EVALUATE = '''if step % @EVERY@ == 0:
    with torch.no_grad():
        for _, (x, y) in zip(range(4), held_out):
            look(x.to(DEVICE, non_blocking=True))
'''


def in_context(text, flags):
    """Its model call below the autocast, or without one."""
    if flags.precision != "autocast":
        return text.replace("@CONTEXT@        ", "    ")
    return text.replace("@CONTEXT@", f"    with torch.autocast(DEVICE, torch.bfloat16{', cache_enabled=False' if flags.captured else ''}):\n")


def optimizer(flags):
    if flags["framework"] == "trainer":  # as Trainer makes it, which also clips
        return "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)\n"
    if flags["optimizer"] == "SGD":
        return "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)\n"
    more = ", capturable=True" if flags.captured else ""
    return f"optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=DEVICE == \"cuda\"{more})\n"


def ahead(flags):
    """Whether copies go ahead of the step; a server's requests are not there yet."""
    return flags.probe == "copy" and flags["loop"] != "serve"


def plain_main(flags, host_setup, places):
    training, alone = flags["loop"].startswith("train"), models_torch.alone(flags)
    setup, before, after = around(flags)
    to = "DEVICE, torch.bfloat16" if flags.precision == "bf16" and not flags["loop"] == "iterate" else "DEVICE"
    text = f"torch.manual_seed({flags['style'] % 1000})\nmodel = {models_torch.NAMES[flags['model']]}().to({to})\n"
    if flags["model"] in ("cnn", "diffusion") and not flags.has("layout"):
        text += "model = model.to(memory_format=torch.channels_last)\n"
    if not training:
        text += "model.eval()\n"
    else:
        text += optimizer(flags)
    if flags.drawn("recompile"):
        text += f"model = torch.compile(model, dynamic={not flags.has('recompile')})\n"
    elif flags.probe == "memory":
        part = "model" if not alone else "model.covariance" if flags["model"] == "solver" else "model.step"
        text += f"{part} = torch.compile({part})\n"
    text += setup + host_setup
    if alone:
        text += "\n" + in_context(STEP_ALONE, flags)
    else:
        text += "\n" + filled(in_context(TRAIN if training else INFER, flags), INSIDE=indented(places.get("host_inside", "")),
                              CLIP="    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" if flags["framework"] == "trainer" else "")
        text += "\nfeed = prefetched(batches())\n" if ahead(flags) else "\nfeed = batches()\n"
        if flags["loop"] == "train_eval":
            text += "held_out = batches()\n\n" + in_context("def look(x):\n@CONTEXT@        return model(x).float().amax(1)\n\n", flags)
    if flags.captured:
        text += "update = Replayed(update)\n" if alone else "update = Replayed(update, *(given.to(DEVICE) for given in next(feed)))\n"
    text += "shown = []\n"
    loop = "" if alone else "x, y = next(feed)\n"
    loop += places.get("host_before", "") + before
    if flags.drawn("recompile"):
        loop += filled("x, y = x[:BATCH - 8 * (step // @EVERY@) % BATCH], y[:BATCH - 8 * (step // @EVERY@) % BATCH]\n",
                       EVERY=RECOMPILE_EVERY)
    if not alone and flags.feed != "resident" or flags["loop"] == "serve":
        loop += "x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)\n"
    loop += "values = update()\n" if alone else "values = update(x, y)\n"
    loop += places.get("host_after", "") + places.get("logging", "") + after
    if flags["loop"] == "serve":
        loop += "shown.append(values.tolist())\n"
    else:
        loop += reported(flags, "shown.append(values.mean().item())\n")
    if flags["loop"] == "train_eval":
        loop += filled(EVALUATE, EVERY=flags["eval_every"])
    loop += "if not progress.step(BATCH):\n    break\nstep += 1\n"
    return "def main(progress):\n" + indented(text + "step = 0\nwhile True:\n" + indented(loop)
                                              + "print(\"last\", shown[-1:], file=sys.stderr)\n")


def source(spec, without=frozenset(), probe=None):
    flags = Flags(spec, without, probe)
    functions, host_setup, places = host_code(flags)
    parts = []
    parts.append("DEVICE = \"cuda\"\n" + models_torch.constants(flags)
                 + (f"GAP = {0 if probe == 'quiet' else flags.knobs.get('gap', 0)!r}\n" if flags["loop"] == "serve" else "") + settings(flags))
    parts += [models_torch.text(flags), models_torch.examples(flags), feed(flags), functions]
    if flags.framed:
        parts.append(frameworks_of_torch.main(flags, host_setup, places, around(flags), optimizer(flags)))
    else:
        parts += [REPLAYED] * flags.captured + [PREFETCHED] * ahead(flags)
        parts.append(plain_main(flags, host_setup, places))
    return program(models_torch.DOCS[flags["model"]], IMPORTS + (frameworks_of_torch.IMPORTS[flags["framework"]] if flags.framed else ""), parts)
