"""PyTorch loops whose speed is measured with HEC on and off inside one process, interleaved: the command of `hec run`.

    loops.py LOOP pairs N SECONDS            HEC (tracer and hooks) on against off
    loops.py LOOP full N SECONDS CLIENT.so   off, HEC, and an empty CUPTI client; then torch.profiler against off
    loops.py LOOP fresh SECONDS              only the loop, for comparing processes

LOOP: launch (x.mul_ on 1024 numbers), resnet18, transformer. Prints JSON: one list of blocks a state, seconds a unit.
"Off" is the tracer paused and the hooks taken out; what CUPTI goes on costing then, only fresh processes tell.
"""
import json
import random
import sys
import time

import torch

import switch


def launch():
    x = torch.randn(1024, device="cuda")

    def step():
        for _ in range(100):
            x.mul_(1.0)

    return step, 20, 100


def resnet18():
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(128, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (128,), device="cuda")

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step, 5, 1


def transformer():
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, norm_first=True)
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                                torch.nn.Linear(768, 32000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = torch.randn(16, 512, 768, device="cuda")
    labels = torch.randint(0, 32000, (16 * 512,), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(inputs).view(-1, 32000), labels)
        loss.backward()
        optimizer.step()

    return step, 5, 1


def block(step, steps, units, seconds):
    """Seconds a unit over at least `seconds`; and how many units."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        count += steps * units
    return (time.perf_counter() - start) / count, count


def pairs(loop, count, seconds):
    hec, rng, done = switch.Hec(), random.Random(1), {"off": [], "hec": []}
    launched = 0
    for _ in range(count):
        for on in rng.sample((False, True), 2):
            hec.set(on)
            switch.settle()
            launched += block(*loop, 0.1)[1] * on
            value, units = block(*loop, seconds)
            done["hec" if on else "off"].append(value)
            launched += units * on
    hec.set(True)
    return {"blocks": done, "units_while_on": launched, "tracer": hec.library is not None, "hooks": hec.hooks is not None}


def full(loop, count, seconds, client_path):
    hec, client, rng = switch.Hec(hooks=False), switch.Client(client_path), random.Random(1)
    done = {"off": [], "hec": [], "client": []}
    for _ in range(count):
        for state in rng.sample(list(done), 3):
            client.set(False)
            hec.set(False)
            client.set(state == "client")
            hec.set(state == "hec")
            switch.settle(switch.QUIET_S if state == "hec" else 0.15)
            block(*loop, 0.1)
            done[state].append(block(*loop, seconds)[0])
    client.set(False)
    hec.set(False)
    profiled = {"off": [], "profiler": []}
    for _ in range(max(3, count // 3)):
        profiled["off"].append(block(*loop, seconds)[0])
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
            block(*loop, 0.05)
            profiled["profiler"].append(block(*loop, seconds)[0])
        block(*loop, 0.1)
    return {"blocks": done, "profiler_blocks": profiled, "tracer": hec.library is not None, "client_code": client.code,
            "client_kernels": client.library.client_records(10)}


def main():
    step, steps, units = {"launch": launch, "resnet18": resnet18, "transformer": transformer}[sys.argv[1]]()
    loop = step, steps, units
    mode, arguments = sys.argv[2], sys.argv[3:]
    block(*loop, 2.0)
    if mode == "pairs":
        result = pairs(loop, int(arguments[0]), float(arguments[1]))
    elif mode == "full":
        result = full(loop, int(arguments[0]), float(arguments[1]), arguments[2])
    else:
        result = {"value": block(*loop, float(arguments[0]))[0]}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
