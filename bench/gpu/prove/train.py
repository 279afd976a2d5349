"""A training whose cost is known to depend on its options: `train.py [--model encoder|resnet18] [--precision tf32|bf16] [--batch N]`.

The encoder learns on which side of a hidden direction the mean of a sequence lies, the ResNet which of ten patterns is in an
image; data are made on the device, and the loss falls within the first hundred steps. Nothing here knows of HEC."""
import argparse

import torch
from torch import nn


def encoder(options):
    width = options.width
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    net = nn.Sequential(nn.TransformerEncoder(layer, options.depth, enable_nested_tensor=False), nn.Linear(width, 2))
    hidden = torch.randn(width, device=options.device)

    def batch():
        x = torch.randn(options.batch, options.length, width, device=options.device)
        return x, (x.mean(dim=1) @ hidden > 0).long()

    return net, lambda out: out.mean(dim=1), batch


def resnet18(options):
    import torchvision

    patterns = torch.randn(10, 3, options.side, options.side, device=options.device)

    def batch():
        y = torch.randint(0, 10, (options.batch,), device=options.device)
        return torch.randn(options.batch, 3, options.side, options.side, device=options.device) + 0.2 * patterns[y], y

    return torchvision.models.resnet18(num_classes=10), lambda out: out, batch


MODELS = {"encoder": (encoder, 1e-4), "resnet18": (resnet18, 1e-4)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="encoder")
    parser.add_argument("--precision", choices=("tf32", "bf16"), default="bf16")
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    make, rate = MODELS[options.model]
    net, head, batch = make(options)
    net.to(options.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate)
    bf16 = options.precision == "bf16"
    for _ in range(options.steps):
        x, y = batch()
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=bf16):
            loss = nn.functional.cross_entropy(head(net(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
