"""A language model as a textbook writes it: attention, LayerNorm and GELU by hand. What test_levers_written.py shares."""

import math
import warnings

from levers_common import *  # noqa: F403
from levers_common import F, nn, torch


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eps = 1e-5
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + self.eps)) + self.shift


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(torch.sqrt(torch.tensor(2.0 / torch.pi)) * (x + 0.044715 * torch.pow(x, 3))))


class Attention(nn.Module):
    def __init__(self, width, length, heads, dropout):
        super().__init__()
        self.heads, self.width = heads, width
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(length, length), diagonal=1))

    def forward(self, x):
        batch, length, _ = x.shape
        split = lambda y: y.view(batch, length, self.heads, self.width // self.heads).transpose(1, 2)  # noqa: E731
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = q @ k.transpose(2, 3)
        later = self.mask.bool()[:length, :length]
        scores.masked_fill_(later, -torch.inf)
        weights = self.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
        return self.out((weights @ v).transpose(1, 2).contiguous().view(batch, length, self.width))


class Block(nn.Module):
    def __init__(self, width, length, heads, dropout):
        super().__init__()
        self.attention = Attention(width, length, heads, dropout)
        self.one, self.other = Norm(width), Norm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), Gelu(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.feed(self.other(x))


class Model(nn.Module):
    def __init__(self, words=67, width=32, length=16, heads=4, blocks=3, dropout=0.0):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, length, heads, dropout) for _ in range(blocks)))
        self.norm, self.head = Norm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


def language(**more):
    torch.manual_seed(0)
    return Model(**more)


def learn(model, optimizer, steps=4, length=16, words=67):
    """Losses and gradients."""
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(0, words, (2, length + 1))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [weight.grad.clone() for weight in model.parameters()]


def learned(names, steps=4, **more):
    model = language(**more)
    keys = list(model.state_dict())
    with levers(names) as said:  # noqa: F405
        losses, gradients = learn(model, adamw(model), steps)  # noqa: F405
        assert list(model.state_dict()) == keys
    return losses, gradients, said


def near(one, other, by=2e-5):
    return all(math.isclose(a, b, abs_tol=by) for a, b in zip(one[0], other[0])) and all(
        torch.allclose(a, b, rtol=1e-3, atol=by) for a, b in zip(one[1], other[1])
    )


def inductor():
    """PyTorch's compiler, which runs graphs as they are here: a test has no C++ compiler."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch._inductor.compile_fx as fx
        import torch._inductor.select_algorithm  # noqa: F401
    from torch._functorch.aot_autograd import make_boxed_func

    fx.compile_fx_inner = lambda graph, inputs, *args, **kwargs: make_boxed_func(graph.forward)
    return fx
