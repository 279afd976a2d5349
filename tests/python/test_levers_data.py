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
        found[0].printed = done.stdout
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


HAZARDS = """
    import io, os, random, sys, tempfile, threading, numpy, torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler
    levers = sys.modules["_hec_levers"]
    lever = levers.loader_workers

    class Data(Dataset):
        def __init__(self, item=lambda self, i: torch.tensor([float(i)]), **state):
            self.item = item
            self.__dict__.update(state)
        def __len__(self):
            return 12
        def __getitem__(self, i):
            return self.item(self, i)

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(12))

    def counts(self, i):
        self.n += 1
        return self.n

    def bad(self, i):
        if i == 7:
            raise LookupError("no sample 7", i)
        return i

    def dies(self, i):
        if i == 7 and torch.utils.data.get_worker_info():
            os._exit(3)
        return i

    def opens(self, i):
        if self.file is None:
            self.file = open(__file__, "rb")
        return i

    class Odd:
        def __iter__(self):
            yield from [3, 1, 2]
            raise ValueError("odd")

    cases = {
        "plain": lambda: Data(),
        "locked": lambda: Data(lock=threading.Lock(), parts=[torch.ones(2), numpy.ones(3)], f=lambda x: x),
        "stream": Stream,
        "open file": lambda: Data(file=open(__file__, "rb")),
        "lazy file": lambda: Data(opens, file=None),
        "generator": lambda: Data(rng=numpy.random.default_rng(1)),
        "nested": lambda: Data(inner=Data(inner=[{"a": torch.Generator()}])),
        "iterator": lambda: Data(rest=(i for i in range(9))),
        "device": lambda: Data(t=torch.ones(1, device="meta")),
        "device item": lambda: Data(lambda self, i: torch.ones(1, device="meta")),
        "counts": lambda: Data(counts, n=0),
        "bad": lambda: Data(bad),
        "draws": lambda: Data(lambda self, i: random.random()),
        "changed": lambda: Data(lambda self, i: i + self.epoch, epoch=0),
        "odd": lambda: Data(),
        "broken off": lambda: Data(),
        "twice": lambda: Data(),
        "dies": lambda: Data(dies),
    }
    def walk(name):
        data = cases[name]()
        torch.manual_seed(1); random.seed(1)
        options = dict(sampler=Odd()) if name == "odd" else dict(shuffle=name != "stream")
        loader = DataLoader(data, batch_size=2, **({} if name == "stream" else options))
        seen = []
        for epoch in range(2):
            if name == "changed":
                data.epoch = epoch
            try:
                others = iter(loader) if name == "twice" else None
                for k, batch in enumerate(loader):
                    seen.append((type(batch), str(batch), others and str(next(others)), float(torch.rand(()))))
                    if name == "broken off" and k == 2:
                        break
            except Exception as error:
                seen.append((type(error), error.args))
        known = lever._known.get(loader)
        return seen, random.random() if name != "draws" else 0, float(torch.rand(())), known

    with_lever = {name: walk(name) for name in cases}
    state = sys.modules["_hec_levers"]._started["loader_workers"][0]
    levers.revert()
    for name in cases:
        without, had = walk(name), with_lever[name]
        print(name, had[:3] == without[:3] if name != "draws" else len(had[0]) == len(without[0]),
              "here" if had[3] == "" else "workers" if had[3] else "none", sep="/")
    print(state.state, state.text.split(":")[0], "_get_iterator", DataLoader._get_iterator.__module__, sep="/")
    torch.ones(1, requires_grad=True).sum().backward()
"""


def test_what_workers_may_not_have_stays_in_the_main_process(run):
    found = run(HAZARDS, "loader_workers=2", alike=False, PYTHONHASHSEED="0")
    said = dict(line.split("/", 1) for line in found.printed.splitlines())
    state = {name: "True/here" for name in ("stream", "open file", "lazy file", "generator", "nested", "iterator", "device",
             "device item", "counts")}  # fmt: skip
    state.update({name: "True/workers" for name in ("plain", "locked", "bad", "draws", "changed", "odd", "broken off", "twice")})
    state.update(dies="True/none", failed="in workers/_get_iterator/torch.utils.data.dataloader")
    assert said == state


# The CPU plays the device: pinned memory and copies to the device are clones that are counted.
DEVICE = """
    import collections, sys, torch
    from torch.utils.data import DataLoader, Dataset
    levers = sys.modules["_hec_levers"]
    moves = levers.moves
    torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
    torch.cuda.set_device, torch.cuda.current_device = lambda device: None, lambda: 0
    pinned, waited = [], []
    def pin(tensor):
        pinned.append(tensor.clone())
        return pinned[-1]
    def to(tensor, device, non_blocking=False):
        waited.append(not non_blocking)
        return tensor.clone()
    moves.DEVICE, moves.pin, moves.original = "cpu", pin, lambda name: to
    moves.is_pinned = lambda tensor: any(tensor is other for other in pinned)

    class Data(Dataset):
        def __len__(self):
            return 20
        def __getitem__(self, i):
            if i == self.bad:
                raise LookupError(i)
            return torch.full((2,), float(i))

    Pair = collections.namedtuple("Pair", "x y")
    shapes = {"list": lambda x: [x, x + 1], "tuple": lambda x: (x, {"a": [x + 1]}), "named": lambda x: Pair(x, "text"),
              "user": lambda x: collections.UserDict(x=x, y=x * 2), "tensor": lambda x: x, "odd": lambda x: {1: x.to_sparse(), 2: None},
              "empty": lambda x: [x, x[:0]]}

    def tensors(batch):
        if isinstance(batch, torch.Tensor):
            return [batch]
        batch = batch.values() if hasattr(batch, "values") else batch
        return [t for item in batch if item is not None and not isinstance(item, str) for t in tensors(item)]

    def walk(shape, workers, mode, bad=-1):
        data = Data()
        data.bad, seen = bad, []
        loader = DataLoader(data, 2, num_workers=workers, collate_fn=lambda items: shapes[shape](torch.stack(items)),
                            persistent_workers=mode == "left")
        for epoch in range(2):
            try:
                for k, batch in enumerate(loader):
                    moved = []
                    for t in tensors(batch):
                        if mode == "written before":
                            t.add_(1)
                        moved.append(t.to("cpu") if k % 2 else t.to(device=torch.device("cpu", 0)))
                        if mode == "written after" and k == 6:
                            t.add_(1)
                    seen.append((type(batch), [(t.layout, t.tolist() if t.layout is torch.strided else 0) for t in moved]))
                    if mode == "left" and k == 5:
                        break
                    if mode == "out" and k == 5:
                        levers._started["copy_ahead"][1].revert()
            except LookupError as error:
                seen.append(type(error))
        return seen

    def compare(name, *what):
        lever, module = levers._started[name]
        without = walk(*what)
        pinned.clear()
        lever.state = lever.text = ""
        module.apply(lever)
        if name == "copy_ahead":
            module.copy = lambda tensor, device: (tensor.clone(), None)
            module.take, module.capturing = lambda copy, event: None, lambda: False
            module._ready = lambda iterator: iterator._tasks_outstanding > 0 or iterator._rcvd_idx in iterator._task_info
        same = walk(*what) == without
        module._tally and module._tally.report()
        module.revert()
        print(name, *what, same, "to" not in torch.Tensor.__dict__, lever.state, lever.text, sep="/")

    for shape in shapes:
        compare("pin_memory", shape, 0, "")
    compare("pin_memory", "tuple", 1, "")
    compare("pin_memory", "list", 0, "written before")
    compare("pin_memory", "list", 0, "written after")
    for mode in ("", "written before", "written after", "left", "out"):
        compare("copy_ahead", "tuple", 1, mode)
    compare("copy_ahead", "list", 1, "", 17)
    compare("copy_ahead", "empty", 1, "")
    torch.ones(1, requires_grad=True).sum().backward()
"""

ALL = "20 pinned batches, 40 copies to the device that did not wait"
AHEAD = "%d copies made ahead, 4 of them compared with the program's"
WROTE = "failed/the program wrote to a batch after it had copied it to the device"
DEVICE_SAYS = f"""\
pin_memory/list/0//True/True/on/{ALL}
pin_memory/tuple/0//True/True/on/{ALL}
pin_memory/named/0//True/True/on/{ALL.replace("40", "20")}
pin_memory/user/0//True/True/on/{ALL}
pin_memory/tensor/0//True/True/on/{ALL.replace("40", "20")}
pin_memory/odd/0//True/True//
pin_memory/empty/0//True/True/on/{ALL.replace("40", "20")}
pin_memory/tuple/1//True/True/on/{ALL}
pin_memory/list/0/written before/True/True/on/{ALL}
pin_memory/list/0/written after/True/True/{WROTE}
copy_ahead/tuple/1//True/True/on/{AHEAD % 28}
copy_ahead/tuple/1/written before/True/True//
copy_ahead/tuple/1/written after/True/True/{WROTE}
copy_ahead/tuple/1/left/True/True/on/{AHEAD % 16}
copy_ahead/tuple/1/out/True/True/on/{AHEAD % 6}
copy_ahead/list/1//17/True/True/on/{AHEAD % 20}
copy_ahead/empty/1//True/True//
"""


def test_batches_on_their_way_to_the_device(run):
    found = run(DEVICE, "pin_memory,copy_ahead", alike=False)
    assert found.printed.splitlines() == DEVICE_SAYS.splitlines()
    assert found.facts["lever.pin_memory.why"] == "no CUDA device"
