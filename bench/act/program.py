"""A small real training with PyTorch on the CPU: a classifier or a language model, whose loss falls. The work of each step is a wait, so that
a lever can make it shorter."""
import sys
import time

import torch
from torch import nn

WAIT_S = 0.02


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.hidden, self.out = nn.Embedding(32, 32), nn.LSTM(32, 48, batch_first=True), nn.Linear(48, 32)

    def forward(self, words):
        time.sleep(WAIT_S)
        return self.out(self.hidden(self.embed(words))[0])


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, points):
        time.sleep(WAIT_S)
        return self.layers(points)


def batches(kind, generator):
    centres = torch.randn(4, 16, generator=generator)
    table = torch.randint(0, 32, (32, 3), generator=generator)
    while True:
        if kind == "points":
            labels = torch.randint(0, 4, (64,), generator=generator)
            yield centres[labels] + 0.7 * torch.randn(64, 16, generator=generator), labels
        else:
            words = torch.zeros(16, 17, dtype=torch.long)
            words[:, 0] = torch.randint(0, 32, (16,), generator=generator)
            for i in range(1, 17):
                words[:, i] = table[words[:, i - 1], torch.randint(0, 3, (16,), generator=generator)]
            yield words[:, :-1], words[:, 1:]


def main():
    kind = sys.argv[1]
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(torch.seed())  # each run sees other data, as programs that nobody seeded do
    model = Points() if kind == "points" else Text()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 if kind == "points" else 1.0, momentum=0.9 if kind == "points" else 0)
    for step, (inputs, wanted) in zip(range(1_000_000), batches(kind, generator)):
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
