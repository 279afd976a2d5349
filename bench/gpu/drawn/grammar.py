"""What a drawn program is: draw(seed) says it, sized(spec, clean step) says how large its inefficiencies are. No GPU, no library.

Nothing here knows a rule of HEC. The only word that both share is the id of a cause, in FAULTS.
"""
import dataclasses
import math
import random


@dataclasses.dataclass(frozen=True)
class Fault:
    """An inefficiency that a program can have."""
    causes: tuple  # ids of HEC's causes that name it
    weight: float  # how often it is drawn
    seconds: float = 0  # of the step, for each count of its knob; 0: its size is not drawn but measured alone
    frameworks: str = "torch"
    models: str = ""  # "": all
    loops: str = ""
    most: int = 1 << 30  # count of its knob at most
    alone: bool = False  # its truth takes too long beside others
    crowds: bool = False  # it takes longer where other processes hold the card: arms are not kept ready beside each other


# Costs are rough: they place the drawn share, and the truth is measured.
FAULTS = {
    "loader_workers": Fault(("data",), 3, 1.0, "torch lightning trainer", "mlp cnn transformer", "train train_eval"),
    "loader_work": Fault(("data",), 2.5, 1.0, "torch lightning trainer", "mlp cnn transformer", "train train_eval"),
    "reads": Fault(("sync",), 0.9, 22e-6, "torch lightning trainer jax cupy ranks", most=2000),
    "barriers": Fault(("sync",), 1.0, 0, "torch cupy cuda", "mlp cnn transformer lstm gnn chain stencil"),
    "pageable": Fault(("copy",), 0.8, 1 / 5e9, "torch cupy cuda ranks"),
    "chatty": Fault(("copy",), 0.5, 14e-6, "torch jax cupy cuda", most=4000),
    "round_trip": Fault(("copy",), 0.6, 1 / 2.5e9, "torch cupy jax"),
    "logging": Fault(("host",), 0.7, 9e-6, "torch lightning trainer jax cupy ranks", most=6000),
    "host_before": Fault(("host",), 0.5, 70e-9, "torch lightning trainer jax cupy cuda ranks"),
    "host_inside": Fault(("host",), 1.2, 70e-9, "torch lightning trainer", "mlp cnn transformer gnn", "train train_eval"),
    "host_after": Fault(("host",), 0.5, 70e-9, "torch lightning trainer jax cupy cuda ranks"),
    "checkpoint": Fault(("checkpoint",), 2.2, 1.0, "torch lightning trainer ranks", "mlp cnn transformer lstm", "train train_eval ddp"),
    "empty_cache": Fault(("alloc",), 1.6, 4e-3, "torch lightning trainer", "mlp cnn transformer gnn", "train train_eval",
                         crowds=True),
    "no_pool": Fault(("alloc",), 0.8, 0, "cupy cuda", "chain jacobi stencil", crowds=True),
    "layout": Fault(("layout",), 3, 0, "torch lightning", "cnn diffusion"),
    "odd_shapes": Fault(("precision", "layout"), 1.6, 0, "torch lightning trainer", "mlp transformer"),
    "full_precision": Fault(("precision",), 1.5, 0, "torch lightning trainer", "mlp cnn transformer diffusion"),
    "unfused": Fault(("memory",), 2, 0, "torch cupy", "mlp transformer elementwise chain"),
    "small_batch": Fault(("batch", "launch"), 1.3, 0, "torch lightning trainer jax", "mlp cnn transformer gnn", "train train_eval infer"),
    "eager": Fault(("launch",), 1.0, 0, "torch jax cuda", "lstm decode diffusion mlp elementwise stencil", "train infer iterate"),
    "recompile": Fault(("compile",), 1.5, 0, "torch", "mlp", "infer", alone=True),
    "new_shapes": Fault(("compile",), 1.0, 0.35, "jax", "mlp elementwise"),
    # of jobs of several ranks (grammar_jobs.py)
    "late_sleep": Fault(("straggler",), 2, 1e-6, "ranks"),
    "late_code": Fault(("straggler",), 2, 70e-9, "ranks"),
    "late_items": Fault(("straggler", "data"), 2, 1.0, "ranks", loops="ddp"),
    "late_rows": Fault(("straggler",), 2, 1.0, "ranks", loops="ddp"),
    "late_layers": Fault(("straggler",), 1.5, 0, "ranks", loops="pipeline"),
    "synced_parts": Fault(("gradient_sync",), 3, 0, "ranks", loops="ddp"),
    "small_buckets": Fault(("buckets",), 3, 0, "ranks", loops="ddp"),
    "summed_by_hand": Fault(("comm", "buckets"), 1.5, 0, "ranks", loops="ddp"),
    "sharded": Fault(("sharding", "comm"), 1.5, 0, "ranks", loops="ddp"),
    "few_parts": Fault(("comm",), 1, 0, "ranks", loops="pipeline"),
}
# What cannot be in one program: a captured step takes no waits and no code of the host; the weights of a sharded model are no rank's own.
APART = [({"eager"}, {"barriers", "host_inside", "empty_cache", "no_pool", "new_shapes"}),
         ({"sharded"}, {"checkpoint", "synced_parts", "small_buckets"}), ({"summed_by_hand"}, {"synced_parts"}), ({"late_items"}, {"late_rows"})]
SLOWER = {("jax", "reads"): 6, ("jax", "chatty"): 4, ("cupy", "reads"): 2}  # how many times as long a count takes
MOST = {("jax", "chatty"): 64, ("cupy", "chatty"): 1000}  # more makes a program that takes minutes to compile
RECOMPILE_EVERY = 60  # calls of one length

MODELS = {"torch": {"mlp": 3, "cnn": 3, "transformer": 4, "lstm": 1.5, "gnn": 2, "elementwise": 1.5, "solver": 1.5, "decode": 2.5,
                    "diffusion": 2},
          "lightning": {"mlp": 1, "cnn": 1, "transformer": 1}, "trainer": {"mlp": 1, "transformer": 2},
          "cupy": {"chain": 2, "jacobi": 1, "solver": 1, "scatter": 1}, "jax": {"mlp": 2, "elementwise": 1},
          "cuda": {"stencil": 1}}
FRAMEWORKS = {"torch": 10, "lightning": 1, "trainer": 1, "cupy": 2, "jax": 2, "cuda": 1.5}
LOOPS = {"train": 4, "train_eval": 1.5, "infer": 3, "serve": 1.5}
ITERATES = ("elementwise", "solver", "chain", "jacobi", "scatter", "stencil")
SHARE = (0.02, 0.6)  # of the step, log-uniform
SHARES_TOGETHER = 0.75


def pick(rng, weights):
    return rng.choices(list(weights), list(weights.values()))[0]


def size_of(rng, model):
    """Sizes that a person might take, from a few hundred microseconds a step to some tens of milliseconds; seven arms fit on a card."""
    one = rng.choice
    if model == "mlp":
        return {"width": one((1024, 2048, 4096)), "depth": one((4, 8, 12)), "batch": one((1024, 2048, 4096, 8192))}
    if model == "cnn":
        return {"width": one((32, 64)), "depth": one((4, 5)), "side": one((64, 96)), "batch": one((64, 128, 192))}
    if model == "transformer":
        length = one((128, 256, 512))
        return {"width": one((512, 768, 1024)), "depth": one((4, 6, 8)), "length": length, "batch": one((4096, 8192)) // length}
    if model == "lstm":
        return {"width": one((512, 1024)), "depth": 1, "length": one((32, 64)), "batch": one((128, 256, 512))}
    if model == "gnn":
        return {"width": one((128, 256)), "depth": one((3, 4, 6)), "nodes": one((2000, 4000)), "batch": one((8, 16, 32))}
    if model in ("elementwise", "chain"):
        return {"items": one((1 << 20, 1 << 22, 1 << 24, 1 << 25)), "depth": one((4, 8, 16)), "batch": 1}
    if model == "solver":
        return {"items": one((1024, 2048, 4096)), "batch": 1, "depth": 1}
    if model == "decode":
        return {"width": one((512, 1024, 2048)), "depth": one((6, 12, 16)), "length": one((256, 512)), "batch": one((1, 8, 32))}
    if model == "diffusion":
        return {"width": one((64, 128)), "depth": one((3, 4)), "side": one((32, 64)), "batch": one((8, 16, 32))}
    if model == "scatter":
        return {"items": one((1 << 20, 1 << 21, 1 << 22)), "batch": 1, "depth": one((2, 4))}
    return {"items": one((2048, 4096, 8192)), "batch": 1, "depth": one((4, 16, 32))}  # jacobi, stencil: sides of a grid


def fits(fault, spec):
    within = lambda words, value: not words or value in words.split()
    return (within(fault.frameworks, spec["framework"]) and within(fault.models, spec["model"]) and within(fault.loops, spec["loop"]))


def draw(seed):
    rng = random.Random(seed)
    framework = pick(rng, FRAMEWORKS)
    model = pick(rng, MODELS[framework])
    if framework in ("lightning", "trainer"):
        loop = "train"
    elif model in ITERATES:
        loop = "iterate"
    elif model in ("decode", "diffusion"):
        loop = "infer"
    elif framework == "jax":
        loop = rng.choice(("train", "infer"))
    else:
        loop = pick(rng, LOOPS)
    spec = {"seed": seed, "framework": framework, "model": model, "loop": loop, **size_of(rng, model),
            "precision": "fp32" if model in ITERATES else rng.choice(("autocast", "autocast", "bf16", "tf32")),
            "optimizer": rng.choice(("AdamW", "SGD")), "feed": rng.choice(("resident", "resident", "pinned")),
            "report_every": rng.choice((1, 1, 20, 50)), "eval_every": rng.choice((16, 32)), "load": round(rng.uniform(0.3, 0.85), 2),
            "style": rng.randrange(1 << 30), "faults": {}, "knobs": {}}
    if framework in ("lightning", "trainer") and spec["precision"] == "bf16":
        spec["precision"] = "autocast"
    draw_faults(rng, spec)
    if {"loader_workers", "loader_work"} & spec["faults"].keys():
        spec["feed"], spec["batch"] = "loader", min(rng.choice((32, 64, 128)), 8192 // spec.get("length", 1))
    if framework in ("lightning", "trainer"):
        spec["feed"] = "loader"
        spec["batch"] = min(spec["batch"], 128)
    if "full_precision" in spec["faults"]:
        spec["precision"] = "tf32"
    # one CUDA graph: what is made of many small kernels, and what has that as its fix
    spec["captured"] = "eager" in spec["faults"] or (framework == "torch" and model in ("lstm", "decode", "diffusion") and loop != "serve"
                                                     and loop != "train_eval" and not APART[0][1] & spec["faults"].keys())
    if spec["precision"] == "autocast" and (spec["captured"] or model in ("lstm", "decode")):
        spec["precision"] = "bf16"  # autocast casts weights again at each use there
    return spec


def draw_faults(rng, spec):
    """None to three inefficiencies that fit it, with the share of the step that each is to take."""
    count = rng.choices((0, 1, 2, 3), (0.2, 0.4, 0.25, 0.15))[0]
    ahead = {name: fault.weight for name, fault in FAULTS.items() if fits(fault, spec)}
    while ahead and len(spec["faults"]) < count:
        name = pick(rng, ahead)
        spec["faults"][name] = round(math.exp(rng.uniform(*map(math.log, SHARE))), 3) if FAULTS[name].seconds else None
        if FAULTS[name].alone:
            spec["faults"] = {name: None}
            break
        # each cause once, so that what HEC claims of it is the truth of one fix
        ahead = {other: weight for other, weight in ahead.items() if other != name and not FAULTS[other].alone
                 and not set(FAULTS[other].causes[:1]) & set(FAULTS[name].causes)
                 and not set(FAULTS[name].causes[:1]) & set(FAULTS[other].causes)
                 and not any({name, other} & one and {name, other} & two for one, two in APART)}
    shares = sum(share or 0 for share in spec["faults"].values())
    if shares > SHARES_TOGETHER:
        spec["faults"] = {name: share and round(share * SHARES_TOGETHER / shares, 3) for name, share in spec["faults"].items()}


def weights(spec):
    """Of the model, about."""
    width, depth = spec.get("width", 0), spec.get("depth", 1)
    if spec["model"] == "cnn":
        return 18 * (width << (depth - 1)) ** 2
    return width * width * {"mlp": depth, "transformer": 12 * depth, "lstm": 8}.get(spec["model"], depth)


def sized(spec, step, enqueue):
    """The spec with a knob for each inefficiency: a count, by the seconds of the clean step and those of the host in it."""
    shares = {name: share for name, share in spec["faults"].items() if share}
    total = step / (1 - sum(shares.values()))
    hidden = 0.0 if spec["report_every"] == 1 or spec["loop"] == "serve" else max(0.0, step - enqueue)  # what the host may take for nothing
    knobs = {"gap": total / spec["load"]} if spec["loop"] == "serve" else {}
    for name, share in shares.items():
        added = share * total
        scale = SLOWER.get((spec["framework"], name), 1)
        if FAULTS[name].causes == ("host",) or name in ("late_sleep", "late_code"):
            added, hidden = added + hidden, 0.0
        if name in ("checkpoint", "empty_cache", "new_shapes"):  # how seldom
            cost = 0.02 + weights(spec) * 4e-9 if name == "checkpoint" else FAULTS[name].seconds
            every = min(256, max(1, cost / added))
            knobs[name] = 1 << round(math.log2(every))
        elif name in ("loader_workers", "loader_work"):  # microseconds of work on each item; what follows the step or hides behind it
            workers = random.Random(spec["style"]).choice((0, 0, 1, 2)) if name == "loader_workers" else random.Random(spec["style"]).choice((2, 4))
            knobs["workers"] = workers
            knobs[name] = max(1, round(1e6 * (added if workers == 0 else total * workers) / spec["batch"]))
        elif name == "late_items":  # microseconds of work on each, by the process itself
            knobs[name] = max(1, round(1e6 * added / spec["batch"]))
        elif name == "late_rows":  # more than half of them
            knobs[name] = min(spec["batch"] - 8, round(spec["batch"] * added / step))
        else:
            most = MOST.get((spec["framework"], name), FAULTS[name].most)
            knobs[name] = min(most, max(1, round(added / (scale * FAULTS[name].seconds))))
    return {**spec, "knobs": knobs}


def period(spec):
    """Steps after which the program has done everything once."""
    periods = [spec["knobs"].get(name, 1) for name in ("checkpoint", "empty_cache", "new_shapes")]
    if "recompile" in spec["faults"]:
        periods.append(RECOMPILE_EVERY)
    if spec["loop"] == "train_eval":
        periods.append(spec["eval_every"])
    return max(periods)


def fixes(spec):
    """name of an arm -> inefficiencies that it is without."""
    names = list(spec["faults"])
    arms = {"base": frozenset()}
    if len(names) > 1:
        arms |= {name: frozenset({name}) for name in names}
    if names:
        arms["all"] = frozenset(names)
    return arms


def fix_of(spec, name):
    """The arm that is without this one alone."""
    return name if len(spec["faults"]) > 1 else "all"
