"""What a drawn job of two ranks is: draw(seed) says it. No GPU, no library. Its inefficiencies are rows of grammar.FAULTS."""
import random

import grammar

RANKS = 2
LOOPS = {"ddp": 7, "pipeline": 1.5, "tensor": 1.5}
PLACES = ("before", "inside", "after")  # of the step: before the model, before its backward pass, before the optimizer


def size_of(rng, model, loop):
    """Steps of some milliseconds and more: two ranks cannot meet more often."""
    if model == "transformer":
        length = rng.choice((128, 256, 512))
        return {"width": rng.choice((768, 1024)), "depth": rng.choice((6, 8, 12)), "length": length, "batch": rng.choice((8192, 16384)) // length}
    if loop == "tensor":
        return {"width": rng.choice((2048, 4096)), "depth": rng.choice((8, 12)), "batch": rng.choice((4096, 8192))}
    return {"width": rng.choice((2048, 4096)), "depth": rng.choice((8, 12, 16)), "batch": rng.choice((2048, 4096, 8192))}


def draw(seed):
    rng = random.Random(seed)
    loop = grammar.pick(rng, LOOPS)
    model = rng.choice(("mlp", "transformer")) if loop == "ddp" else "mlp"
    spec = {"seed": seed, "framework": "ranks", "ranks": RANKS, "model": model, "loop": loop, **size_of(rng, model, loop),
            "precision": rng.choice(("autocast", "bf16", "bf16", "tf32")) if loop == "ddp" else "bf16", "optimizer": rng.choice(("AdamW", "SGD")),
            "feed": rng.choice(("resident", "resident", "pinned")), "report_every": rng.choice((1, 20, 50)), "late": rng.randrange(RANKS),
            "place": rng.choice(PLACES), "parts": rng.choice((2, 4, 8, 16, 32)), "bucket_mb": rng.choice((0.05, 0.2, 0.5, 1)),
            "style": rng.randrange(1 << 30), "captured": False, "faults": {}, "knobs": {}}
    grammar.draw_faults(rng, spec)
    if "late_items" in spec["faults"]:
        spec["feed"], spec["batch"] = "loader", min(spec["batch"], 128)
    if "synced_parts" in spec["faults"]:  # so many parts are one batch
        spec["batch"] = max(8, spec["batch"] // spec["parts"])
    elif loop == "ddp":
        spec["parts"] = 1
    return spec
