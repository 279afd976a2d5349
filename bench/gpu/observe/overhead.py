"""How much `hec run` slows the loop it observes: run it as the command of `hec run`.

The loop's own process switches HEC off and on by stopping and continuing its parent (SIGSTOP/SIGCONT), in an order drawn
anew for each pair, so that both states are measured inside one process, interleaved: the noise between processes is
larger than the effect. Prints JSON: the slowdown with HEC running, in per cent, with a 95 % bootstrap interval.
"""
import json
import os
import random
import signal
import statistics
import sys
import time

import torch


def resnet_step():
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(128, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (128,), device="cuda")

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step, 10


def launch_step():
    x = torch.randn(1024, device="cuda")

    def step():
        for _ in range(100):
            x.mul_(1.0)

    return step, 200


def block(step, steps, seconds):
    """Seconds per step over a block of at least `seconds`, the warm-up after the switch left out."""
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        count += steps
    return (time.perf_counter() - start) / count


def main():
    name, pairs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    step, steps = {"resnet18": resnet_step, "launch": launch_step}[name]()
    block(step, steps, 5.0)
    observer = os.getppid()
    rng = random.Random(1)
    ratios = []
    for _ in range(pairs):
        times = {}
        for on in rng.sample((True, False), 2):
            os.kill(observer, signal.SIGCONT if on else signal.SIGSTOP)
            time.sleep(0.15)  # HEC catches up after a stop; that is not its steady cost
            times[on] = block(step, steps, seconds)
        ratios.append(times[True] / times[False] - 1)
    os.kill(observer, signal.SIGCONT)
    means = sorted(statistics.fmean(rng.choices(ratios, k=len(ratios))) for _ in range(10000))
    print(json.dumps({"loop": name, "pairs": pairs, "block_s": seconds,
                      "slowdown_percent": 100 * statistics.fmean(ratios), "median_percent": 100 * statistics.median(ratios),
                      "ci95_percent": [100 * means[250], 100 * means[9750]]}), flush=True)


if __name__ == "__main__":
    main()
