"""program.py LOAD: one of two programs that share the device. Prints "ready", then for each line "SECONDS" on its input runs
steps for so long and prints {"steps": N}. LOAD: gemm (fp32 products), elementwise (bound by device memory), or sim:CASE (a
workload of the simulated GPU, by HEC of the environment)."""
import json
import os
import subprocess
import sys
import time


def torch_step(load):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    if load == "gemm":
        a = torch.randn(4096, 4096, device="cuda")
        b = torch.randn(4096, 4096, device="cuda")
        out = torch.empty(4096, 4096, device="cuda")

        def step():
            for _ in range(4):
                torch.mm(a, b, out=out)
            torch.cuda.synchronize()
    else:
        x = torch.randn(1 << 28, device="cuda", dtype=torch.bfloat16)

        def step():
            for _ in range(40):
                x.mul_(1.0001)
            torch.cuda.synchronize()

    for _ in range(5):
        step()
    return step


def run(step, seconds):
    end, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step()
        steps += 1
    return steps


def run_simulated(case, seconds):
    done = subprocess.run([os.environ["HEC"], "sim", case, "--seconds", str(seconds), "--json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["steps"]


def main(load):
    case = load[4:] if load.startswith("sim:") else None
    step = None if case else torch_step(load)
    print("ready", flush=True)
    for line in sys.stdin:
        steps = run_simulated(case, float(line)) if case else run(step, float(line))
        print(json.dumps({"steps": steps}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
