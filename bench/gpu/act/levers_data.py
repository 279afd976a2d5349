#!/usr/bin/env python3
"""Do the levers of the data path, memory and checkpoints take effect on a real GPU, leave results alone, and help?

    bench/gpu/act/levers_data.py --hec HEC [--out FOLDER] [--rounds N] [--only NAME,NAME]

Each case is a small program of PyTorch, run with and without levers by turns. A row of the JSON it prints: what the levers said
of themselves, whether that is what was expected, whether losses, weights and files are the same bit for bit (and whether they are
between two runs without), units a second of both. Settings of the card are not touched. On a machine without a GPU, --device cpu
tries the programs themselves."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib

# name, program, levers, what must be said of each; the last one's row has units a second of all of them
CASES = (
    ("loader_workers", "decode", {"loader_workers": "on"}),
    ("loader_workers_draws", "augment", {"loader_workers": "on"}),
    ("loader_workers_refused", "on_device", {"loader_workers": "nothing"}),
    ("loader_all", "decode", {"loader_workers": "on", "prefetch": "on", "pin_memory": "on", "copy_ahead": "on"}),
    ("prefetch", "workers", {"prefetch": "on"}),
    ("pin_memory", "workers", {"pin_memory": "on"}),
    ("pin_memory_one_process", "one_process", {"pin_memory": "on"}),
    ("pin_memory_no_loader", "pageable", {"pin_memory": "on"}),
    ("copy_ahead", "workers", {"copy_ahead": "on"}),
    ("copy_ahead_pinned", "pinned", {"copy_ahead": "on"}),
    ("keep_memory", "empty_cache", {"keep_memory": "on"}),
    ("expandable_segments", "empty_cache", {"expandable_segments": "on"}),
    ("async_checkpoint", "checkpoint", {"async_checkpoint": "on"}),
)
SAME_NOT_ASKED = {"loader_workers_draws"}  # other random draws are the point


def child(name, device):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    cuda = device == "cuda"
    side, batch = (128, 64) if cuda else (16, 4)
    generator = torch.Generator().manual_seed(1)

    class Images(Dataset):
        def __init__(self, work):
            raw = torch.randint(0, 16, (32, 3 * side * side), dtype=torch.uint8, generator=generator)
            self.packed, self.work = [zlib.compress(bytes(image.tolist()), 1) for image in raw], work

        def __len__(self):
            return batch * 40

        def __getitem__(self, index):
            for _ in range(self.work):
                raw = bytearray(zlib.decompress(self.packed[index % 32]))
            image = torch.frombuffer(raw, dtype=torch.uint8).view(3, side, side).float() / 16
            if name == "augment":
                image = image + torch.rand(3, 1, 1)
            if name == "on_device":
                image = image.to(device)
            return image, index % 10

    net = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    net = net.to(device)
    net(torch.zeros(1, 3, side, side, device=device))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
    losses, begin, steps = [], 0.0, 0
    folder = tempfile.mkdtemp()
    extra = [torch.full((4096, 1024), float(k), device=device) for k in range(16 if cuda else 1)]

    def train(images, targets):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    def loader_batches(**options):
        loader = DataLoader(Images(6 if name in ("decode", "augment") else 1), batch, shuffle=True, **options)
        while True:
            for images, targets in loader:
                yield images.to(device), targets.to(device)

    def made_batches():
        kept = [torch.rand(batch, 3, side, side, generator=generator) for _ in range(3)]
        targets = torch.arange(batch, device=device) % 10
        while True:
            for images in kept:
                yield images.to(device), targets
                images.add_(0.001)  # the program may write to its own at once

    if name in ("decode", "augment", "on_device", "one_process"):
        batches = loader_batches()
    elif name == "workers":
        batches = loader_batches(num_workers=4)
    elif name == "pinned":
        batches = loader_batches(num_workers=4, pin_memory=cuda)
    else:
        batches = made_batches()
    path = os.path.join(folder, "state.pt")
    # the same work each time: results are compared
    total = {"decode": 120, "augment": 120, "one_process": 200, "on_device": 100}.get(name, 400)
    if not cuda:
        total //= 20
    for images, targets in batches:
        if steps == total // 4:
            begin = time.monotonic()
            if cuda:
                torch.cuda.synchronize()
        train(images, targets)
        steps += 1
        if name == "empty_cache":
            spare = torch.empty(1 << (28 if cuda else 10), device=device)
            del spare
            if cuda:
                torch.cuda.empty_cache()
        if name == "checkpoint" and steps % 20 == 0:
            extra[0].add_(1)
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "extra": extra, "steps": steps}, path)
        if steps == total:
            break
    if cuda:
        torch.cuda.synchronize()
    took = time.monotonic() - begin
    digest = hashlib.sha256(repr([float(loss).hex() for loss in losses]).encode())
    for weight in net.state_dict().values():
        digest.update(weight.cpu().numpy().tobytes())
    if name == "checkpoint":
        state = torch.load(path, map_location="cpu")
        assert state["steps"] == total - total % 20
        for tensor in [*state["net"].values(), *state["extra"]]:
            digest.update(tensor.numpy().tobytes())
    print(json.dumps({"digest": digest.hexdigest()[:16], "per_s": (total - total // 4) / took, "draw": float(torch.rand(1))}))


def run(arguments, out, case, program, levers, number):
    path = out / f"{case}.{'with' if levers else 'without'}.{number}.hec"
    words = [arguments.hec, "run", "-o", str(path)]
    if levers:
        words += ["--with", ",".join(levers)]
    words += ["--", sys.executable, __file__, "--child", program, "--device", arguments.device]
    environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"error": (done.stderr or done.stdout)[-800:], "rc": done.returncode}
    found = json.loads(lines[-1])
    report = subprocess.run([arguments.hec, "report", "--json", str(path)], capture_output=True, text=True)
    if report.returncode == 0:
        found["levers"] = {lever["name"]: [lever["attest"], lever.get("text") or ""]
                           for lever in json.loads(report.stdout).get("levers") or []}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hec")
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.device)
        return 0
    out = pathlib.Path(arguments.out or tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    rows, good = [], True
    for case, program, expected in CASES:
        if arguments.only and case not in arguments.only.split(","):
            continue
        without, under = [], []
        for number in range(arguments.rounds):
            for levers, results in ((None, without), (expected, under)):
                results.append(run(arguments, out, case, program, levers, number))
        row = {"case": case, "levers": sorted(expected), "errors": [r["error"] for r in without + under if "error" in r]}
        if not row["errors"]:
            said = under[-1].get("levers", {})
            row.update(
                said=said,
                as_expected=all(said.get(name, [""])[0] == state for name, state in expected.items()),
                repeatable=len({r["digest"] for r in without}) == 1,
                same={r["digest"] for r in without} == {r["digest"] for r in under} and len({r["draw"] for r in without + under}) == 1,
                per_s_without=sorted(r["per_s"] for r in without)[len(without) // 2],
                per_s_with=sorted(r["per_s"] for r in under)[len(under) // 2],
            )
            row["ok"] = row["as_expected"] and (row["same"] or not row["repeatable"] or case in SAME_NOT_ASKED)
        good = good and row.get("ok", False)
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
