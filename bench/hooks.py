"""What the Python hooks cost a PyTorch program, and whether it notices: python3 bench/hooks.py LIBHEC [SECONDS].

A parent that takes the ring, as HEC would, and a child that trains with the hooks on and off by turns, in one process
(between processes the noise is larger than the effect). On a GPU when there is one, else on the CPU. Prints a line of
JSON a workload: median time of a step with the hooks off and on, and the ratio of the two, pair by pair.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PAIRS = 24


def resnet(torch, device, batch, side):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.a, self.b = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.na, self.nb, self.relu = nn.BatchNorm2d(o), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
            plain = i == o and stride == 1
            self.short = nn.Identity() if plain else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False),
                                                                   nn.BatchNorm2d(o))  # fmt: skip

        def forward(self, x):
            return self.relu(self.nb(self.b(self.relu(self.na(self.a(x))))) + self.short(x))

    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
             (512, 512, 1)]  # fmt: skip
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                          nn.MaxPool2d(3, 2, 1), *(Block(*s) for s in sizes), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(512, 1000)).to(device)  # fmt: skip
    x, y = torch.randn(batch, 3, side, side, device=device), torch.randint(0, 1000, (batch,), device=device)
    return model, x, lambda out: nn.functional.cross_entropy(out, y)


def transformer(torch, device, batch, width):
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to(device)
    return model, torch.randn(batch, 128, width, device=device), lambda out: out.float().square().mean()


def small(torch, device):
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8))).to(device)
    return model, torch.randn(64, 64, device=device), lambda out: out.square().mean()


def training(torch, model, x, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss_of(model(x)).backward()
        optimizer.step()

    return step


def launches(torch, device):
    x = torch.zeros(256, device=device)

    def step():
        for _ in range(200):
            x.add_(1)

    return step


def child(seconds):
    import torch

    hooks = sys.modules["_hec_hooks"]
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    wait = torch.cuda.synchronize if gpu else lambda: None
    torch.manual_seed(0)
    works = {
        "resnet18": training(torch, *resnet(torch, device, 128 if gpu else 2, 224 if gpu else 64)),
        "resnet18_small": training(torch, *resnet(torch, device, 4 if gpu else 2, 64 if gpu else 32)),
        "transformer": training(torch, *transformer(torch, device, 32 if gpu else 2, 512 if gpu else 64)),
        "small": training(torch, *small(torch, device)),
        "launches": launches(torch, device),
    }
    if gpu:
        torch.cuda.set_sync_debug_mode("error")  # a hook that waits for the device would fail, and be told
    for name, step in works.items():
        for _ in range(12):
            step()
        wait()
        start = time.perf_counter()
        for _ in range(5):
            step()
        wait()
        steps = max(3, int(seconds / len(works) / (2.2 * PAIRS) / ((time.perf_counter() - start) / 5)))
        times = {"off": [], "on": []}
        for pair in range(PAIRS):
            for state in ("off", "on") if pair % 2 else ("on", "off"):
                hooks.pause() if state == "off" else hooks.resume()
                for _ in range(3):
                    step()
                wait()
                start = time.perf_counter()
                for _ in range(steps):
                    step()
                wait()
                times[state].append((time.perf_counter() - start) / steps)
        ratios = [on / off - 1 for on, off in zip(times["on"], times["off"])]
        print(json.dumps({
            "workload": name,
            "steps": steps * PAIRS * 2,
            "off_us": round(statistics.median(times["off"]) * 1e6, 1),
            "on_us": round(statistics.median(times["on"]) * 1e6, 1),
            "slower_percent": round(100 * statistics.median(ratios), 3),
            "quartiles_percent": [round(100 * q, 3) for q in statistics.quantiles(ratios, n=4)[::2]],
        }), flush=True)  # fmt: skip
    hooks.resume()
    print(json.dumps({"errors": hooks.core._errors, "off": hooks.core.off, "torch": torch.__version__}), flush=True)


def main():
    if sys.argv[1] == "--child":
        return child(float(sys.argv[2]))
    sys.path.insert(0, str(SOURCE / "tests/python"))
    from listener import Listener

    with tempfile.TemporaryDirectory(prefix="hec-") as folder:
        listener = Listener(folder)
        environment = dict(os.environ, PYTHONPATH=str(SOURCE / "python/hooks"), HEC_SOCKET=listener.path,
                           HEC_LIB=os.path.abspath(sys.argv[1]), HEC_HOOKS="1")  # fmt: skip
        seconds = sys.argv[2] if len(sys.argv) > 2 else "30"
        code = subprocess.run([sys.executable, __file__, "--child", seconds], env=environment).returncode
        for found in listener.found(full=True):
            losses = [value for name, value in found.values if name == "loss"]
            print(json.dumps({"steps": len(found.steps), "losses": len(losses), "stacks": len(found.stacks),
                              **found.facts}))  # fmt: skip
        return code


if __name__ == "__main__":
    sys.exit(main())
