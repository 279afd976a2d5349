"""A small training loop of the kind people write first: its input is made on the host and copied each step.

usage: demo-load.py SECONDS
"""
import sys
import time

import torch

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
width, batch = 4096, 1024
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

steps = 0
end = time.monotonic() + seconds
while time.monotonic() < end:
    batch_on_host = torch.randn(batch, width)
    loss = model(batch_on_host.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
    steps += 1
print(f"{steps} steps of {batch} samples")
