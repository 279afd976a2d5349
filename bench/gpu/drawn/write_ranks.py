"""Jobs of two ranks in PyTorch: data parallel, a pipeline by hand, tensors shared out by hand. Each rank is a process of torchrun."""
import models_torch
import write_torch
from parts import Flags, filled, host_code, indented, program, reported



def probe_of(spec, cause):
    """What else measures a finding of which no inefficiency of the job is: the change that answers it, named by the cause."""
    possible = {
        "batch": spec["feed"] != "loader",
        "precision": spec["precision"] == "tf32",
        "memory": spec["loop"] == "ddp",
        "sync": spec["report_every"] == 1,
        "host": spec["report_every"] == 1,
    }
    return cause if possible.get(cause) else None


IMPORTS = write_torch.IMPORTS + "import torch.distributed as dist\n"
SHARD = "from torch.distributed.fsdp import fully_shard\n"
RANK = '''RANK, LOCAL, WORLD = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
'''
JOIN = '''if DEVICE == "cuda":
    torch.cuda.set_device(LOCAL)
dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
'''

UPDATE = '''def update(x, y):
@CONTEXT@        output = model(x)
    losses = F.cross_entropy(output.float(), y, reduction="none")
@INSIDE@    (losses.mean() / PARTS).backward()
    return losses.detach()
'''
SUM_GRADIENTS = '''for parameter in model.parameters():
    dist.all_reduce(parameter.grad)
    parameter.grad /= WORLD
'''

STAGES = '''def forwards(kept):
    """The parts of a batch through the layers of this rank."""
    for part in range(PARTS):
        x, y = next(feed)
        if RANK == 0:
            output = model(x@TO@)
            dist.send(output.detach(), 1)
            kept.append((output, None))
        else:
            given = torch.empty(BATCH, WIDTH, device=DEVICE, dtype=DTYPE)
            dist.recv(given, 0)
            given.requires_grad_()
            kept.append((given, F.cross_entropy(model(given).float(), y@TO@, reduction="none")))


def backwards(kept):
    for tensor, losses in kept:
        if RANK == 1:
            (losses.mean() / PARTS).backward()
            dist.send(tensor.grad, 0)
        else:
            gradient = torch.empty_like(tensor)
            dist.recv(gradient, 1)
            tensor.backward(gradient)
'''
STAGE = '''
class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, CLASSES) if RANK == 1 else nn.Identity()

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.head(x)
'''
SHARED = '''class Given(torch.autograd.Function):
    """The same on all ranks; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Summed(torch.autograd.Function):
    """The sum over the ranks."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Share(nn.Module):
    """Two products of which each rank has its share of the width."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH // WORLD)
        self.down = nn.Linear(2 * WIDTH // WORLD, WIDTH, bias=False)

    def forward(self, x):
        return Summed.apply(self.down(F.gelu(self.up(Given.apply(x)))))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.shares = nn.ModuleList(Share() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for share in self.shares:
            x = x + share(x)
        return self.head(x)
'''

PROGRESS = '''class Progress:
    """Goes on for some seconds by the first rank's clock, which it tells the others now and then; then says how far all got."""

    def __init__(self, seconds):
        self.seconds, self.begin, self.units, self.steps = seconds, None, 0, 0

    def step(self, units):
        self.begin = self.begin or time.perf_counter()
        self.units, self.steps = self.units + units, self.steps + 1
        if self.steps % 8:
            return True
        left = torch.tensor([self.seconds - (time.perf_counter() - self.begin)], device=DEVICE)
        dist.broadcast(left, 0)
        return left.item() > 0

    def end(self):
        if RANK == 0:
            seconds = time.perf_counter() - self.begin
            print(json.dumps({"units": self.units, "steps": self.steps, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    progress = Progress(float(os.environ.get("SECONDS", "8")))
    main(progress)
    progress.end()
    dist.destroy_process_group()
'''
MODEL = {"ddp": None, "pipeline": "Stage", "tensor": "Layers"}


def late(flags):
    """(functions, set-up, {place: lines}) of what one rank does and the others do not."""
    functions, setup, places = "", "", {}
    for name in ("late_sleep", "late_code"):
        if not flags.drawn(name):
            continue
        if name == "late_sleep":
            lines = f"time.sleep({flags.knobs[name] * 1e-6:.6f})\n"
        else:
            functions = "def summary(values):\n    seen = {}\n    for value in values:\n        seen[value % 97] = seen.get(value % 97, 0) + value\n    return seen\n"
            setup = f"numbers = list(range({max(1, flags.knobs[name])}))\n"
            lines = "looked_at = summary(numbers)\n"
        if flags.has(name):
            places[flags["place"]] = places.get(flags["place"], "") + f"if RANK == {flags['late']}:\n" + indented(lines)
        else:
            setup += lines if name == "late_code" else ""
    return functions, setup, places


def sizes(flags):
    """Of each rank."""
    lines = models_torch.constants(flags)
    if flags.has("late_rows"):
        more = flags.knobs["late_rows"]
        lines = lines.replace(f"BATCH = {flags.batch}\n", f"BATCH = {flags.batch + more} if RANK == {flags['late']} else {flags.batch - more}\n")
    parts = flags["parts"]
    if flags["loop"] == "pipeline":  # of the same batch
        parts = 2 if flags.has("few_parts") else 8
        lines = lines.replace(f"BATCH = {flags.batch}\n", f"BATCH = {flags.batch // parts}\n")
        whole, most = flags["depth"], 3 * flags["depth"] // 4
        here = most if flags.has("late_layers") else whole // 2
        lines += f"LAYERS = {here} if RANK == {flags['late']} else {whole - here}\nDTYPE = torch.{'bfloat16' if flags.precision == 'bf16' else 'float32'}\n"
    return lines + f"PARTS = {parts if flags['loop'] != 'tensor' else 1}\nTOGETHER = {flags.batch * (1 if flags['loop'] != 'ddp' else parts)}" \
        + (" * WORLD\n" if flags["loop"] == "ddp" else "\n")


def feed(flags):
    if not flags.drawn("late_items"):
        return write_torch.feed(flags)
    setup, lines, rate = flags.rng.choice(write_torch.PREPARE)
    setup = filled(setup, N=max(1, flags.knobs["late_items"] * rate))
    ready, each = (setup, f"        if RANK == {flags['late']}:\n" + indented(lines)) if flags.has("late_items") else (setup + lines, "")
    return filled(write_torch.LOADER + write_torch.LOADED, WORKERS=0, PREPARE_SETUP=ready, PREPARE=each, LENGTH=30)


def wrapped(flags):
    """The model of data parallel training."""
    if flags.has("summed_by_hand"):
        return ""
    if flags.has("sharded"):
        return f"for part in model.{'layers' if flags['model'] == 'mlp' else 'blocks'}:\n    fully_shard(part)\nfully_shard(model)\n"
    options = f", bucket_cap_mb={flags['bucket_mb']}" if flags.has("small_buckets") else ""
    return f"model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True{options})\n"


def one_step(flags, places):
    """The lines of a step up to the optimizer."""
    loop = "optimizer.zero_grad(set_to_none=True)\n" + places.get("before", "")
    if flags["loop"] == "pipeline":
        return loop + "kept = []\nforwards(kept)\n" + places.get("inside", "") + "backwards(kept)\nvalues = (kept[-1][0][:, 0] if RANK == 0 else kept[-1][1]).detach().float()\n"
    moved = "x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)\n" if flags.feed != "resident" else ""
    if flags["parts"] == 1 or flags["loop"] == "tensor":
        loop += "x, y = next(feed)\n" + moved + "values = update(x, y)\n"
    else:
        run = "values = update(x, y)\n"
        if not flags.has("synced_parts") and not flags.has("summed_by_hand"):
            run = "with contextlib.nullcontext() if part == PARTS - 1 else model.no_sync():\n" + indented(run)
        loop += "for part in range(PARTS):\n" + indented("x, y = next(feed)\n" + moved + run)
    return loop + (SUM_GRADIENTS if flags.has("summed_by_hand") else "")


def main(flags, more_setup, places):
    setup, before, after = write_torch.around(flags)
    after = after.replace("if step %", "if RANK == 0 and step %") if flags.drawn("checkpoint") else after
    to = "DEVICE, torch.bfloat16" if flags.precision == "bf16" else "DEVICE"
    name = MODEL[flags["loop"]] or models_torch.NAMES[flags["model"]]
    text = JOIN + f"torch.manual_seed({flags['style'] % 1000})\nmodel = {name}().to({to})\n"
    if flags.probe == "memory":
        text += "model = torch.compile(model)\n"
    if flags["loop"] == "ddp":
        text += wrapped(flags)
    text += write_torch.optimizer(flags) + setup + more_setup + "feed = batches()\n"
    if flags["loop"] == "pipeline":
        text += "\n" + filled(STAGES, TO=".to(DEVICE, non_blocking=True)" if flags.feed != "resident" else "") + "\n"
    else:
        text += "\n" + filled(write_torch.in_context(UPDATE, flags), INSIDE=indented(places.get("inside", ""))) + "\n"
    loop = places.get("host_before", "") + before + one_step(flags, places) + places.get("after", "") + "optimizer.step()\n"
    loop += places.get("host_after", "") + places.get("logging", "") + after + reported(flags, "shown.append(values.mean().item())\n")
    loop += "if not progress.step(TOGETHER):\n    break\nstep += 1\n"
    return "def main(progress):\n" + indented(text + "shown = []\nstep = 0\nwhile True:\n" + indented(loop) + "print(\"last\", shown[-1:], file=sys.stderr)\n")


def source(spec, without=frozenset(), probe=None):
    flags = Flags(spec, without, probe)
    functions, host_setup, host_places = host_code(flags)
    late_functions, late_setup, places = late(flags)
    model = {"ddp": lambda: models_torch.text(flags), "pipeline": lambda: STAGE, "tensor": lambda: SHARED}[flags["loop"]]()
    parts = [RANK + sizes(flags) + write_torch.settings(flags), model, models_torch.examples(flags), feed(flags), functions, late_functions,
             main(flags, late_setup + host_setup, {**host_places, **places})]
    return program("A classifier, trained by several processes.", IMPORTS + SHARD * flags.has("sharded"), parts, PROGRESS)
