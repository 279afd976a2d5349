"""A training whose cost is known to depend on its options: `train.py [--precision tf32|bf16] [--batch N] [--steps N]`.

A transformer encoder that learns to sort sequences by a hidden direction, on data made on the device. The loss falls within the
first hundred steps. Nothing here knows of HEC."""
import argparse

import torch
from torch import nn


def model(width, depth):
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.Linear(width, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=("tf32", "bf16"), default="bf16")
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    net = model(options.width, options.depth).to(options.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    hidden = torch.randn(options.width, device=options.device)
    bf16 = options.precision == "bf16"
    for step in range(options.steps):
        x = torch.randn(options.batch, options.length, options.width, device=options.device)
        y = (x.mean(dim=1) @ hidden > 0).long()
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=bf16):
            loss = nn.functional.cross_entropy(net(x).mean(dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
