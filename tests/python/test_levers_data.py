"""Levers of the data path, memory and checkpoints: programs do and print the same with them, and the levers say what they saw."""

import os
import subprocess
import sys

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
    assert found.facts["lever.loader_workers.on"] == "1 loaders with up to 2 workers, 38 batches from them"
    assert found.facts["loader_workers"] == "2"


HAZARDS = """
    import itertools, os, random, sys, threading, numpy, torch
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
        "iterator": lambda: Data(rest=itertools.count()),
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
                seen.append((type(error), error.args, str(error.__context__)))
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
    def to(tensor, device=0, non_blocking=False):
        waited.append(not non_blocking)
        return tensor.clone()
    moves.DEVICE, moves.pin, moves.original = "cpu", pin, lambda name: to
    moves.capturing = lambda: False
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
                        moved.append(t.to("cpu", non_blocking=k % 4 == 1) if k % 2 else t.to(device=torch.device("cpu", 0)))
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
            module.take = lambda copy, event: None
            module._ready = lambda iterator: iterator._tasks_outstanding > 0 or iterator._rcvd_idx in iterator._task_info
        same = walk(*what) == without
        module._tally and module._tally.report()
        module.revert()
        print(name, *what, same, "to" not in torch.Tensor.__dict__, lever.state, lever.text, sep="/")

    # a large tensor from elsewhere: what is written to it later is not in the copy
    large, (lever, module) = torch.zeros(1 << 18), levers._started["pin_memory"]
    module.apply(lever)
    copy = [large.to("cpu"), torch.zeros(9).to("cpu"), large.int().cuda(), large.to("cpu", non_blocking=False)]
    large.add_(1)
    print((copy[0] + copy[3]).sum().item(), copy[2].dtype, waited, len(pinned), module._tally.numbers)
    module.revert()

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
0.0 torch.int32 [False, True, False, False] 3 {{'copies': 3}}
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


LAZY = """
    import sys, warnings
    warnings.simplefilter("ignore")  # lazy modules are "under heavy development"
    import torch
    moves = sys.modules["_hec_levers"].moves
    user = moves.User(None, lambda: None)
    moves.install(user)
    net = torch.nn.Sequential(torch.nn.LazyLinear(2)).to("cpu")
    asked = []
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            asked.append(function is torch._C._TensorBase.to)
            return super().__torch_function__(function, types, args, kwargs or {})
    kind = type(torch.ones(2).as_subclass(Named).to(torch.float64)).__name__
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            asked.append(function is torch._C._TensorBase.to)
            return function(*args, **(kwargs or {}))
    with Mode():
        torch.ones(2).to("cpu")
    print(tuple(net(torch.ones(1, 3)).shape), kind, asked[0], asked[-1], "to" in torch.Tensor.__dict__)
    moves.remove(user)
    print("to" in torch.Tensor.__dict__)
"""


def test_other_kinds_of_tensors_know_pytorchs_own_methods(run):
    assert run(LAZY, "pin_memory", alike=False).printed.splitlines() == ["(1, 2) Named True True True", "False"]


def test_batches_on_their_way_to_the_device(run):
    found = run(DEVICE, "pin_memory,copy_ahead", alike=False)
    assert found.printed.splitlines() == DEVICE_SAYS.splitlines()
    assert found.facts["lever.pin_memory.nothing"] == "no CUDA device"


CHECKPOINTS = """
    import os, pathlib, shutil, subprocess, sys, threading, torch
    levers = sys.modules["_hec_levers"]
    lever, module = levers._started["async_checkpoint"]
    behind = levers.behind
    plain_stat, plain_save = behind.plain(os.stat), behind.plain(module._patched._made[2].original)
    os.mkdir("out")
    slow = threading.Event()
    write = module._Write.run
    def run(self):  # a disk that is slow until somebody waits
        while not behind._waited and not slow.wait(0.01):
            pass
        write(self)
    module._Write.run = run

    net = torch.nn.Linear(4, 4)
    tied = torch.ones(6)
    def state(k):
        return {"k": k, "net": net.state_dict(), "tied": [tied, tied[2:4]], "none": None, "empty": torch.empty(0),
                "half": torch.ones(3, 5).half().t(), "text": "\\u00e9"}

    def behind_of(path, k=0):
        torch.save(state(k), path)
        return behind._thread is not None and behind._thread.is_alive()

    def same(path, k):
        plain_save(state(k), "plain/" + os.path.basename(path))
        return pathlib.Path("plain/" + os.path.basename(path)).read_bytes() == pathlib.Path(path).read_bytes()

    os.mkdir("plain")
    # what is saved is the state at the time, byte for byte as by torch.save
    assert behind_of("out/a.pt", 1)
    assert not os.path.exists("out/b.pt") and behind._thread.is_alive(), "another path waits for nothing"
    with torch.no_grad():
        kept = tied.clone()
        tied.add_(5)
    loaded = torch.load("out/a.pt")
    assert torch.equal(loaded["tied"][0], kept) and loaded["k"] == 1
    assert loaded["tied"][0].untyped_storage()._cdata == loaded["tied"][1].untyped_storage()._cdata if hasattr(tied, "untyped_storage") else True
    assert behind_of("out/a.pt", 2) and same("out/a.pt", 2)

    barrier = all_reduce = lambda *a: behind.wait(False)
    if torch.distributed.is_available():
        from torch.distributed import all_reduce, barrier
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + os.path.abspath("meet"))

    looks = {
        "exists": lambda p: os.path.exists(p), "size": lambda p: os.path.getsize(p), "read": lambda p: pathlib.Path(p).read_bytes(),
        "copy": lambda p: shutil.copyfile(p, "out/copy"), "move": lambda p: os.replace(p, "out/moved"),
        "list": lambda p: os.listdir("out"), "glob": lambda p: list(pathlib.Path("out").glob("*")),
        "remove": lambda p: os.remove(p), "tree": lambda p: shutil.rmtree("out"), "command": lambda p: subprocess.run(["test", "-s", p], check=True),
        "system": lambda p: os.system("test -s " + p), "barrier": lambda p: barrier(), "reduce": lambda p: all_reduce(torch.ones(1)), "fork": lambda p: os.fork() or os._exit(0), "save": lambda p: torch.save(1, "out/other"),
    }
    for name, look in looks.items():
        os.makedirs("out", exist_ok=True)
        path = "out/%s.pt" % name
        if not behind_of(path):
            print(name, "not behind")
        seen = look(path)
        if name != "save" and behind._thread is not None and behind._thread.is_alive():
            print(name, "did not wait")
        if name == "list" and ("list.pt" not in seen or "hec" in str(seen)):
            print(seen)
    os.wait()
    behind.wait(True)

    # what is left alone: other things than a path, other formats, links of several names, a folder that is not there
    os.makedirs("out", exist_ok=True)
    with open("out/file", "wb") as file:
        torch.save(1, file)
    torch.save(1, "out/old", _use_new_zipfile_serialization=False)
    open("out/one", "w").close()
    os.link("out/one", "out/two")
    assert not behind_of("out/one") and os.path.samefile("out/one", "out/two")
    def error_of(save, *what):
        try:
            save(*what)
        except Exception as error:
            return type(error), str(error).split("0x")[0]
    for what in ((1, "nowhere/x.pt"), (lambda: 0, "out/pickle.pt")):
        assert error_of(torch.save, *what) == error_of(plain_save, *what) != None, what
    # a link stays one, and a mode
    os.symlink("real.pt", "out/link.pt")
    open("out/real.pt", "w").close()
    os.chmod("out/real.pt", 0o640)
    assert behind_of("out/link.pt", 7)
    assert torch.load("out/real.pt")["k"] == 7 and os.path.islink("out/link.pt") and os.stat("out/real.pt").st_mode & 0o777 == 0o640
    # an error of the disk is raised by the next save, and the old file stays
    def full(self, path):
        raise OSError(28, "No space left on device")
    record, module.Recorder.write = module.Recorder.write, full
    behind_of("out/real.pt", 8)
    slow.set()
    behind._thread.join()
    slow.clear()
    module.Recorder.write = record
    try:
        torch.save(1, "out/real.pt")
    except OSError as error:
        print(error.errno)
    assert torch.load("out/real.pt")["k"] == 7 and not [name for name in os.listdir("out") if "hec" in name]
    print(lever.state, lever.text)
    levers.revert()
    assert os.stat is plain_stat and behind.plain(torch.save) is plain_save and torch.save is torch.serialization.save
    lever.state = ""
    module.apply(lever)
    torch.ones(1, requires_grad=True).sum().backward()
    torch.save(state(9), "out/last.pt")
    slow.set()
"""


def test_a_checkpoint_behind_the_program_is_as_if_it_were_not(run, observe, torch_python):
    done = observe.start(torch_python[0], CHECKPOINTS, options=(), HEC_LEVERS="async_checkpoint")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["28", "failed OSError: [Errno 28] No space left on device"]
    assert "hec: the checkpoint " in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in (observe.folder / "out").glob("last*")] == ["last.pt"]


KILLED = """
    import os, random, signal, sys, time, torch
    random.seed(1)
    def state(k):
        return {"k": k, "t": torch.full((30000,), float(k)), "u": [torch.full((n,), float(k)) for n in range(1, 9)]}
    torch.save(state(0), "c.pt")
    last = left = new = 0
    for round in range(50):
        child = os.fork()
        if child == 0:
            k = last
            while True:
                k += 1
                torch.save(state(k), "c.pt")
        worked = ~child << 3 | 2  # clock_getcpuclockid(): by its own time it is killed, however long it waits for a processor
        until = time.clock_gettime(worked) + random.uniform(0.003, 0.03)
        while time.clock_gettime(worked) < until:
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left += any(name.startswith(".hec-save.") for name in os.listdir("."))
        found = torch.load("c.pt")
        k = found["k"]
        assert all(bool((t == k).all()) for t in [found["t"], *found["u"]]) and k >= last
        new += k > last
        last = k
    torch.save(state(last), "c.pt")
    print("killed while it wrote" if left else "", "new" if new else "")
"""


def test_killed_at_any_moment_the_old_or_the_new_checkpoint_is_there(observe, torch_python):
    done = observe.start(torch_python[0], KILLED, HEC_LEVERS="async_checkpoint")
    assert (done.returncode, done.stdout) == (0, "killed while it wrote new\n"), done.stderr
    # what killed processes left is gone
    assert sorted(path.name for path in observe.folder.iterdir()) == ["c.pt", "program.py"]


MEMORY = """
    import sys, torch
    levers = sys.modules["_hec_levers"]
    free, calls, started = [50], [], [True]
    module = levers.keep_memory
    torch.cuda.is_initialized = lambda: started[0]
    torch.cuda.mem_get_info = lambda: (free[0], 100)
    module._patched.remove()
    torch.cuda.memory.empty_cache = torch.cuda.empty_cache = real = lambda: calls.append(1)
    levers._started["keep_memory"][1]._patched.__init__(module._patches)
    module._patched.install()
    assert torch.cuda.empty_cache is torch.cuda.memory.empty_cache
    for free[0] in (50, 11, 10, 9, 60):
        torch.cuda.empty_cache()
    started[0] = False
    torch.cuda.empty_cache()
    print(len(calls))
    module._tally.report()
    # segments of the allocator, ten steps after the start
    started[0] = True
    torch.cuda.memory_snapshot = lambda: [{"is_expandable": k < 2, "total_size": 3 << 20} for k in range(5)]
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    library = sys.modules["_hec_hooks.core"].library
    for k in range(15):
        w.sum().backward()
        optimizer.step()
        if k == 5:
            print("step" in library.__dict__, levers._started["expandable_segments"][0].state == "")
    print(levers._started["expandable_segments"][0].state, library.step.__class__.__name__)
    levers.revert()
    assert torch.cuda.empty_cache is real is torch.cuda.memory.empty_cache
"""


def test_memory_is_kept_while_there_is_room(run):
    found = run(MEMORY, "keep_memory,expandable_segments", alike=False)
    assert found.printed.split() == ["3", "True", "True", "on", "_FuncPtr"]
    assert found.facts["lever.keep_memory.on"] == "3 of 6 calls of empty_cache() kept the memory"
    assert found.facts["lever.expandable_segments.on"] == "2 of 5 segments grow in place, 6 MB"


def test_prefetch_keeps_workers_while_the_data_set_stays_the_same(run):
    code = loader(options="num_workers=1, generator=torch.Generator()", state="n = 0", epoch="data.m = epoch // 2")
    found = run(code, "prefetch=3")
    assert found.facts["lever.prefetch.on"] == "workers 3 batches ahead in 2 passes, kept for 1 more"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of that name that does nothing: what is imported is watched, whatever it is."""

    def make(name, text=""):
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
        return str(tmp_path / "packages")

    return make


def test_with_levers_each_framework_is_seen(observe, package):
    """Without levers the first of the others is enough."""
    for name in ("cupy", "keras", "jax", "tensorflow"):
        path = package(name)
    code = """
        import sys
        started = []
        import _hec_hooks_start
        _hec_hooks_start.start = started.append
        import importlib.util
        importlib.util.find_spec("jax")
        import cupy, tensorflow, keras, jax
        print(started)
    """
    for levers, seen in (({}, []), (dict(HEC_LEVERS="jax_matmul"), ["cupy", "tensorflow", "keras", "jax"])):
        done = observe.start(sys.executable, code, PYTHONPATH=path, **levers)
        assert (done.returncode, done.stdout.strip()) == (0, repr(seen)), done.stderr


@pytest.fixture
def other_python():
    """An interpreter that has the package: this one, or the one that HEC_JAX_PYTHON or HEC_TENSORFLOW_PYTHON names."""

    def find(package):
        python = os.environ.get("HEC_%s_PYTHON" % package.upper(), sys.executable)
        if subprocess.run([python, "-c", "import " + package], capture_output=True).returncode != 0:
            pytest.skip(f"no {package} in {python}")
        return python

    return find


JAX = """
    import os, sys, jax
    levers = sys.modules["_hec_levers"]
    # these two are for GPUs; that there is none is found when XLA starts
    print(os.environ["XLA_FLAGS"], jax.config.jax_default_matmul_precision)
    from jax import numpy as jnp
    print("precision=None" in str(jax.make_jaxpr(jnp.dot)(jnp.ones((2, 2)), jnp.ones((2, 2)))))
    for name, (lever, _) in levers._started.items():
        print(name, lever.state, lever.text, sep="/")
    # a flag that this XLA does not know ends no process but the one that tries it
    flag = levers.xla.Flag("--xla_no_such_flag=1")
    lever = levers.Lever("xla_graphs")
    bridge = sys.modules["jax._src.xla_bridge"]
    started, bridge.backends_are_initialized = bridge.backends_are_initialized, lambda: False
    flag.apply(lever)
    print(lever.state, lever.text, sep="/")
    # with a GPU
    lever, flag = levers.Lever("xla_graphs"), levers.xla.Flag("--xla_gpu_graph_min_graph_size=2")
    os.environ["XLA_FLAGS"] = ""
    real = bridge.backends
    bridge.backends = lambda: {"cuda": None, "cpu": None}
    fake = bridge.backends
    flag.apply(lever)
    bridge.backends()
    print(lever.state, lever.text, bridge.backends is fake, sep="/")
    flag.revert()
    bridge.backends, bridge.backends_are_initialized = real, started
    os.environ["XLA_FLAGS"] = "--xla_gpu_graph_min_graph_size=1 --xla_gpu_enable_latency_hiding_scheduler=true --mine=1"
    levers.revert()
    print(os.environ["XLA_FLAGS"], jax.config.jax_default_matmul_precision, jax._src.lax.lax.canonicalize_precision.__name__,
          hasattr(jax._src.lax.lax.canonicalize_precision, "__wrapped__"))
"""

JAX_SAYS = """\
--xla_gpu_graph_min_graph_size=1 --xla_gpu_enable_latency_hiding_scheduler=true tensorfloat32
False
jax_matmul/on/1 products traced in tensorfloat32
xla_graphs/nothing/no GPU among XLA's backends (cpu)
xla_overlap/nothing/no GPU among XLA's backends (cpu)
failed/this jaxlib does not know --xla_no_such_flag=1
on/--xla_gpu_graph_min_graph_size=2 was there when XLA started (cpu, cuda)/True
--mine=1 None canonicalize_precision False
"""


def test_jax(observe, other_python):
    done = observe.start(other_python("jax"), JAX, HEC_LEVERS="jax_matmul,xla_graphs,xla_overlap", options=())
    assert (done.returncode, done.stdout) == (0, JAX_SAYS), done.stderr


TENSORFLOW = """
    import sys
    import tensorflow as tf
    levers = sys.modules["_hec_levers"]
    print(tf.config.optimizer.get_jit(), tf.keras.mixed_precision.global_policy().name)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(2)])
    print(model(tf.ones((2, 3))).dtype.name, model.layers[0].kernel.dtype)
    f = tf.function(lambda x: x + 1)
    f(tf.ones(1))
    tf.config.list_physical_devices = lambda kind=None: [1]
    f(tf.ones(1))
    for name, (lever, _) in sorted(levers._started.items()):
        print(name, lever.state, lever.text.split(" ", 1)[1], sep="/")
    levers.revert()
    print(repr(tf.config.optimizer.get_jit()), tf.keras.mixed_precision.global_policy().name)
"""

TENSORFLOW_SAYS = """\
autoclustering mixed_bfloat16
bfloat16 float32
tf_mixed_bf16/on/layers compute in bfloat16
tf_xla/on/calls of functions that XLA may compile
'' float32
"""


def test_tensorflow(observe, other_python):
    done = observe.start(other_python("tensorflow"), TENSORFLOW, HEC_LEVERS="tf_xla,tf_mixed_bf16", options=())
    assert (done.returncode, done.stdout) == (0, TENSORFLOW_SAYS), done.stderr
