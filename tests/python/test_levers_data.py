"""Levers of the data path, memory and checkpoints: programs do and print the same with them, and the levers say what they saw."""

import pytest


@pytest.fixture
def run(observe, torch_python):
    """Runs a program under levers: its only process as the listener found it. It must end and print as it does without."""

    def run(code, levers, alike=True, **environment):
        done = observe.start(torch_python[0], code, HEC_LEVERS=levers, **environment)
        if alike:
            assert observe.shown(done) == observe.shown(observe.plain(torch_python[0], code, **environment))
        assert done.returncode == 0 or alike, done.stderr
        found = observe.listener.found()
        assert len(found) == 1
        assert "hooks_off" not in found[0].facts, found[0].facts
        found[0].printed = done.stdout.split()
        return found[0]

    return run


LOADER = """
    import hashlib, os, random, sys, torch
    from torch.utils.data import DataLoader, Dataset
    torch.manual_seed(3)
    random.seed(4)

    class Data(Dataset):
        {state}
        def __len__(self):
            return 50
        def __getitem__(self, i):
            {item}
            return torch.full((3,), float(i)), i

    data = Data()
    loader = DataLoader(data, batch_size=4, shuffle=True, {options})
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    seen = hashlib.sha256()
    for epoch in range(3):
        {epoch}
        for x, i in loader:
            optimizer.zero_grad()
            (model(x).sum() + torch.rand(())).backward()
            optimizer.step()
            seen.update(repr((i.tolist(), float(x.sum()))).encode())
    print(seen.hexdigest(), float(model.weight.sum()), torch.rand(1).item(), random.random(), loader.num_workers)
"""


def loader(state="", item="pass", epoch="pass", options=""):
    return LOADER.format(state=state, item=item, epoch=epoch, options=options)


def test_workers_give_the_same_batches_and_leave_random_numbers_alone(run):
    found = run(loader(), "loader_workers=2")
    # the first batch of the first pass comes from the main process
    assert found.facts["lever.loader_workers"] == "on: 1 loaders with up to 2 workers, 38 batches from them"
    assert found.facts["loader_workers"] == "2"
