"""What the programs of test_levers_trainers.py share: small models, and data whose samples are sequences of unlike lengths."""

import torch
import torch.nn.functional as F
from levers_common import *  # noqa: F403
from torch import nn

IGNORED = -100


class Data(torch.utils.data.Dataset):
    """Of sample i: `length(i)` tokens of 12, each with a label."""

    def __init__(self, count, length):
        drawn = torch.Generator().manual_seed(5)
        self.samples = [torch.randint(0, 10, (2, length(i)), generator=drawn) for i in range(count)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return {"tokens": self.samples[i][0], "labels": self.samples[i][1]}


def even(count=40):
    return Data(count, lambda i: 12)


def uneven(count=40):
    return Data(count, lambda i: 3 + 5 * i % 10)


def padded(items):
    def all_of(key, value):
        return nn.utils.rnn.pad_sequence([item[key] for item in items], batch_first=True, padding_value=value)

    return {"tokens": all_of("tokens", 0), "labels": all_of("labels", IGNORED)}


class Net(nn.Module):
    """Gives the loss first, as models of transformers do."""

    norm = None
    dropped = 0.0

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(10, 16)
        self.middle = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(self.dropped))
        self.head = nn.Linear(16, 10)
        if self.norm is not None:
            self.other = self.norm(16)

    def logits(self, tokens):
        return self.head(self.middle(self.words(tokens)))

    def forward(self, tokens, labels):
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), labels.flatten(), ignore_index=IGNORED), None


class Counted(Net):
    """Its loss is a sum over what all passes of a step have."""

    def forward(self, tokens, labels, num_items_in_batch=None, **kwargs):
        how = "mean" if num_items_in_batch is None else "sum"
        loss = F.cross_entropy(self.logits(tokens).flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction=how)
        return (loss if num_items_in_batch is None else loss / num_items_in_batch), None


class Contrasted(Net):
    """Each sample against the others of its pass."""

    def forward(self, tokens, labels):
        means = self.logits(tokens).mean(1)
        return F.cross_entropy(means @ means.T, torch.arange(len(means))), None


def with_norm(norm):
    return type("Normed", (Net,), {"norm": norm})


def with_dropout():
    return type("Dropped", (Net,), {"dropped": 0.1})


def apart(one, other):
    """The most that two lists of weights differ by, of themselves."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(one, other))
