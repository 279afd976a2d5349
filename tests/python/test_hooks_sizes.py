"""What the hooks report of the size of what is trained, against what PyTorch itself holds; of shards, with two ranks."""

import json

import pytest

MODEL = """
    import json, os, sys, torch
    from torch import nn

    torch.manual_seed(0)
    class Block(nn.Module):
        def __init__(self, wide=16):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(wide), nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)
        def forward(self, x):
            return x + self.down(self.up(self.norm(x)).relu())

    def held(tensors):
        return sum(t.numel() * t.element_size() for t in (getattr(t, "_local_tensor", t) for t in tensors))

    def states(optimizer):
        return [s for state in optimizer.state.values() for s in state.values() if isinstance(s, torch.Tensor)]

    def train(model, optimizer, steps=6, given=None):
        for i in range(steps):
            optimizer.zero_grad()
            model(torch.ones(4, 8, 16) if given is None else given).square().mean().backward()
            optimizer.step()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return {"bytes": held(model.parameters()), "gradients": held(grads), "states": held(states(optimizer)),
                "parameters": sum(p.numel() for p in model.parameters())}
"""


def numbers(text):
    return {key: int(value) if value.isdigit() else value for key, value in (word.split("=") for word in text.split())}


OPTIMIZERS = {"AdamW": "torch.optim.AdamW(model.parameters())", "SGD": "torch.optim.SGD(model.parameters(), lr=0.1)",
              "momentum": "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)"}  # fmt: skip


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_one_process_holds(observe, torch_python, optimizer):
    python, version = torch_python
    facts = observe.one(python, MODEL + f"""
    model = nn.Sequential(nn.Linear(16, 16), *[Block() for _ in range(3)])
    model[0].weight.requires_grad_(False)
    optimizer = {OPTIMIZERS[optimizer]}
    print(json.dumps(train(model, optimizer)))
    """).facts
    truth, state = json.loads(observe.last.stdout), numbers(facts["sizes.optimizer"])
    assert state["kind"] == optimizer.replace("momentum", "SGD") and state["bytes"] == state["held_bytes"] == truth["states"]
    model = numbers(facts["sizes.model"])
    assert model["gradient_bytes"] == model["held_gradient_bytes"] == truth["gradients"] == 4 * model["trained"]
    if version < (2, 2):
        assert model["sharing"] == "unknown"  # calls of modules are found from PyTorch 2.2 on: what is trained is all that is known
        return
    assert (model["parameters"], model["bytes"], model["held_bytes"]) == (truth["parameters"], truth["bytes"], truth["bytes"])
    assert model["sharing"] == "none" and model["trained"] == truth["parameters"] - 256
    block = 4 * (2 * 16 + 2 * 16 * 64 + 64 + 16)
    assert numbers(facts["sizes.layers"]) == {"count": 3, "bytes": block, "input_bytes": 4 * 8 * 16 * 4, "matrices": 2, "matrix_bytes": 4 * 2 * 16 * 64}
    assert "sizes.experts" not in facts and "sizes.memory" not in facts  # nothing is on a device


def test_experts(observe, torch_python):
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("calls of modules are found from PyTorch 2.2 on")
    facts = observe.one(python, MODEL + """
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts, self.top_k = nn.ModuleList([nn.Linear(16, 16) for _ in range(8)]), 2
        def forward(self, x):
            return sum(expert(x) for expert in self.experts[:self.top_k])
    model = nn.Sequential(*[nn.Sequential(Block(), Sparse()) for _ in range(2)])
    train(model, torch.optim.AdamW(model.parameters()))
    """).facts
    assert numbers(facts["sizes.experts"]) == {"count": 8, "bytes": 2 * 8 * 4 * (16 * 16 + 16), "top": 2}
    assert numbers(facts["sizes.layers"])["count"] == 2


# The counters of a device that there is none of: what the program keeps is counted by it.
MEMORY = """
    class Cuda:
        now = most = 1000
        is_available = is_initialized = staticmethod(lambda: True)
        def memory_allocated(self, device): return self.now
        def max_memory_allocated(self, device): return self.most
        def max_memory_reserved(self, device): return 2 * self.most
    cuda = Cuda()
    hooks = sys.modules.get("_hec_hooks")
    if hooks:
        hooks.sizes._device = lambda optimizers: "cuda:0"
        hooks.core.torch.cuda.memory_allocated = cuda.memory_allocated
        hooks.core.torch.cuda.max_memory_allocated = cuda.max_memory_allocated
        hooks.core.torch.cuda.max_memory_reserved = cuda.max_memory_reserved
    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)
        def forward(self, x):
            cuda.now += 300  # that stays for the backward pass
            cuda.most = max(cuda.most, cuda.now + 50)
            return self.layer(x)
    model = Kept()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(40):
        model(torch.ones(4, 16)).square().mean().backward()
        cuda.now = 1000
        optimizer.step()
    cuda.most = 5000
"""


def test_memory(observe, torch_python):
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("calls of modules are found from PyTorch 2.2 on")
    facts = observe.one(python, MODEL + MEMORY).facts
    assert numbers(facts["sizes.memory"]) == {"allocated": 5000, "reserved": 10000, "activations": 300}


RANKS = """
    import torch.distributed as dist
    dist.init_process_group("gloo")
    model = nn.Sequential(*[Block() for _ in range(4)])
    if os.environ["HOW"] == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (2,))
        for part in (*model, model):
            fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    truth = train(model, optimizer)
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(truth))
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_what_ranks_hold(observe, torch_python, how):
    python, version = torch_python
    if version < ((2, 2) if how == "ddp" else (2, 6)):
        pytest.skip("of this PyTorch's ranks nothing is told")
    options = ("-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    done = observe.start(python, MODEL + RANKS, options=options, HOW=how)
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)
    told = [(numbers(one.facts["sizes.model"]), numbers(one.facts["sizes.optimizer"])) for one in observe.listener.found() if "sizes.model" in one.facts]
    assert len(told) == 2
    for model, state in told:
        assert model["sharing"] == how and model["parameters"] == truth["parameters"]
        assert model["bytes"] == model["gradient_bytes"] == 4 * truth["parameters"]
        assert model["held_bytes"] == truth["bytes"] and model["held_gradient_bytes"] == truth["gradients"]
        assert state["held_bytes"] == truth["states"]
        assert state["bytes"] - 2 * model["bytes"] == 4 * 4 * 6  # and a number of steps each parameter
    if how == "fsdp":
        assert truth["bytes"] == told[0][0]["bytes"] / 2
