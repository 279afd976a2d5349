#!/usr/bin/env python3
"""Do the levers of PyTorch do on a real GPU what they say, and nothing else?

    python3 bench/gpu/act/levers.py [--only SET;SET;...] [--models NAME,...] [--steps 20] [--device cuda] [--out FILE]

For each small model and set of levers, in one process: steps without them, with them, and without them again. Prints JSON: what the
levers attested; steps a second of each part; by how much the mean loss (of the outputs, in inference) with them, and after they were
taken out, differs from the one without, relatively; what they left behind in weights or in PyTorch's settings. Exits with 1 where a
lever changed more than its risk allows, did not come out again, failed, or was not on where it should be. Needs no build: what the
hooks find goes nowhere."""
import argparse
import importlib.util
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
# by how much the mean loss of the steps may differ: other orders of sums grow over the steps of a training; products of fewer bits
TOLERANCES = {"exact": 1e-3, "ulp": 2e-2, "numerics": 5e-2}
LEVERS = {
    "tf32": "numerics", "bf16_autocast": "numerics", "bf16_weights": "numerics", "attention": "numerics",
    "attention=flash": "numerics", "attention=efficient": "numerics", "attention=math": "numerics", "attention=cudnn": "numerics",
    "channels_last": "ulp", "fused_optimizer": "ulp", "cudnn_benchmark": "ulp", "compile": "ulp", "cuda_graphs": "ulp",
    "compile_max": "ulp", "fuse_written": "ulp", "compile,fuse_written": "ulp", "cuda_graphs,fuse_written": "ulp",
    "bf16_autocast,pad_products": "numerics", "tf32,pad_products": "numerics", "bf16_autocast,fuse_written": "numerics",
    "bf16_autocast,fused_optimizer,fuse_written,compile,pad_products": "numerics",
    "set_to_none": "exact", "inference_mode": "exact",
    "bf16_autocast,channels_last,fused_optimizer,cudnn_benchmark,compile": "numerics",
    "bf16_autocast,channels_last,fused_optimizer,cuda_graphs": "numerics",
    "bf16_autocast,attention": "numerics",
    "bf16_weights,channels_last,inference_mode,compile": "numerics",
}  # fmt: skip
# what has to be on, and where; elsewhere `nothing` or `already` is as good
ON = {
    "tf32": ("encoder", "strict"), "bf16_autocast": ("resnet", "encoder", "lstm"), "bf16_weights": ("resnet_infer", "encoder_infer"),
    "channels_last": ("resnet", "resnet_infer"), "fused_optimizer": ("resnet", "encoder", "lstm"), "cudnn_benchmark": ("resnet",),
    "set_to_none": ("zeros",), "inference_mode": ("resnet_infer", "encoder_infer"), "compile": ("resnet", "encoder", "resnet_infer"),
    "cuda_graphs": ("resnet", "encoder", "resnet_infer"), "attention=math": ("encoder",),
    "compile_max": ("written",), "fuse_written": ("written",), "compile,fuse_written": ("written",),
    "cuda_graphs,fuse_written": ("written",), "bf16_autocast,fuse_written": ("written",), "tf32,pad_products": ("written",),
    "bf16_autocast,pad_products": ("written",),
}  # fmt: skip


def load(name, folder):
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Nowhere:
    """In the place of libhec.so."""

    def active(self):
        return False

    def __getattr__(self, name):
        return lambda *arguments: 0


def start_hooks():
    os.environ.update(HEC_HOOKS_HZ="0", HEC_LEVERS="")
    hooks = load("_hec_hooks", ROOT / "python" / "hec" / "_hooks")
    hooks.library.load = Nowhere
    hooks.start("torch")
    return hooks


def resnet(torch, device, train):
    sys.path.insert(0, str(ROOT / "examples"))
    import resnet18

    model = resnet18.ResNet18().to(device).train(train)
    images = torch.randn(64, 3, 224, 224, device=device) if device == "cuda" else torch.randn(2, 3, 64, 64)
    labels = torch.randint(0, 1000, (len(images),), device=device)
    return model, images, labels, lambda: torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)


def encoder(torch, device, train):
    width = 512 if device == "cuda" else 64
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    body = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    model = torch.nn.Sequential(body, torch.nn.Linear(width, 16)).to(device).train(train)
    words = torch.randn(16, 256 if device == "cuda" else 16, width, device=device)
    labels = torch.randint(0, 16, words.shape[:2], device=device)
    return model, words, labels, lambda: torch.optim.AdamW(model.parameters(), lr=1e-4)


def lstm(torch, device, train):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.hidden, self.out = nn.Embedding(1000, 256), nn.LSTM(256, 512, 2, batch_first=True), nn.Linear(512, 1000)

        def forward(self, words):
            return self.out(self.hidden(self.embed(words))[0])

    model = Model().to(device).train(train)
    words = torch.randint(0, 1000, (32 if device == "cuda" else 2, 65), device=device)
    return model, words[:, :-1], words[:, 1:], lambda: torch.optim.Adam(model.parameters(), lr=1e-3)


def written(torch, device, train):
    """A language model as a textbook writes it, with 50257 words."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from written_common import Model

    words, length = (50257, 256) if device == "cuda" else (257, 16)
    model = Model(words=words, width=512 if device == "cuda" else 64, length=length, heads=8, blocks=6).to(device).train(train)
    tokens = torch.randint(0, words, (8 if device == "cuda" else 2, length + 1), device=device)
    return model, tokens[:, :-1], tokens[:, 1:], lambda: torch.optim.AdamW(model.parameters(), lr=1e-4)


MODELS = {
    "resnet": resnet, "strict": resnet, "zeros": resnet, "encoder": encoder, "lstm": lstm, "written": written, "resnet_infer": resnet,
    "encoder_infer": encoder,
}  # fmt: skip


def part(torch, hooks, options, name, names):
    """Steps with these levers: losses, steps a second, what the levers said, and what they leave behind."""
    torch.manual_seed(0)
    train, strict = not name.endswith("_infer"), name == "strict"
    os.environ["HEC_LEVERS"] = names
    levers = hooks._levers()
    levers.start("torch")
    sys.modules["_hec_hooks.modules"].search()
    if strict:
        torch.backends.cudnn.allow_tf32 = False
    model, inputs, labels, make = MODELS[name](torch, options.device, train)
    optimizer = make() if train else None
    zero = {"set_to_none": False} if name == "zeros" else {}
    losses, begun = [], 0.0
    for step in range(options.steps + options.warm):
        if step == options.warm:
            sync(torch, options)
            begun = time.monotonic()
        with torch.set_grad_enabled(train):
            outputs = model(inputs)
            loss = torch.nn.functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())
        if train:
            optimizer.zero_grad(**zero)
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())
    sync(torch, options)
    rate = options.steps / (time.monotonic() - begun)
    said = {name: [lever.state, lever.text] for name, (lever, _) in levers._started.items()}
    levers.revert()
    if "torch._dynamo" in sys.modules:  # it counts what it compiled of a class, whatever the part
        torch._dynamo.reset()
    if strict:
        torch.backends.cudnn.allow_tf32 = True
    left = sorted({f"{weight.dtype} {weight.is_contiguous()}" for weight in model.parameters()})
    left += [torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark]
    return {"loss": sum(loss.item() for loss in losses) / len(losses), "per_s": round(rate, 2), "said": said, "left": left}


def sync(torch, options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def row(torch, hooks, options, model, names):
    before, inside, after = (part(torch, hooks, options, model, these) for these in ("", names, ""))
    states = {state for state, _ in inside["said"].values()}
    found = {
        "model": model, "levers": names, "said": inside["said"], "per_s": [run["per_s"] for run in (before, inside, after)],
        "differs": abs(inside["loss"] / before["loss"] - 1), "differs_after": abs(after["loss"] / before["loss"] - 1),
    }  # fmt: skip
    found["wrong"] = [
        word
        for word, wrong in (
            ("differs", not found["differs"] <= TOLERANCES[LEVERS.get(names, "numerics")]),
            ("differs afterwards", not found["differs_after"] <= TOLERANCES["ulp"]),
            ("left something", before["left"] != inside["left"]),
            ("failed", "failed" in states),
            ("not on", model in ON.get(names, ()) and states != {"on"} and options.device == "cuda"),
        )
        if wrong
    ]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=";".join(LEVERS), help="sets of levers, separated by ;")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out")
    options = parser.parse_args()
    import torch

    hooks = start_hooks()
    rows = []
    for model in options.models.split(","):
        part(torch, hooks, options, model, "")  # what is loaded and measured once
        for names in options.only.split(";"):
            rows.append(row(torch, hooks, options, model, names))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    device = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    text = json.dumps({"torch": torch.__version__, "device": device, "rows": rows}, indent=1)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n")
    else:
        print(text)
    return 1 if any(found["wrong"] for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
