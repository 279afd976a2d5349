"""The hooks in the processes of real PyTorch programs: how they end, fork and spawn; and hooks that are broken."""

import os
import subprocess
import textwrap

import pytest

from listener import OPTIMIZER

STEPS = """
    import os, signal, sys, threading, time, warnings
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def steps(count):
        for i in range(count):
            optimizer.zero_grad()
            loss = model(torch.ones(6, 4)).mean()
            loss.backward()
            optimizer.step()
        return loss
"""


@pytest.mark.parametrize(
    "end,code",
    [
        ("sys.exit(3)", 3),
        ("sys.exit('a word')", 1),
        ("os._exit(4)", 4),
        ("raise KeyError('mine')", 1),
        ("signal.raise_signal(signal.SIGINT)", -2),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("threading.Thread(target=time.sleep, args=(0.2,)).start()", 0),
        ("model(torch.ones(6, 5))", 1),
        ("torch.nn.Linear(1, 1)('no tensor')", 1),
        ("loss = steps(1); loss.backward()", 1),
    ],
)
def test_a_program_ends_as_it_would(observe, torch_python, end, code):
    python, version = torch_python
    program = STEPS + f"    steps(5)\n    {end}\n"
    plain = observe.start(python, program, hooked=False, options=())
    hooked = observe.start(python, program, options=(), cold=end == "sys.exit(3)")
    assert hooked.returncode == plain.returncode == code
    assert hooked.stdout == plain.stdout
    (found,) = observe.listener.found()
    assert len(found.steps) in (5, 6)
    assert told(hooked) == told(plain)


def told(done):
    """The program's own frames of a traceback, and what is said at its end; in between may be wrappers."""
    lines = done.stderr.splitlines()
    frames = [lines[i : i + 2] for i, line in enumerate(lines) if 'program.py"' in line]
    return frames, lines[-1:]


BUSY = """
    #include <dlfcn.h>
    #include <pthread.h>
    #include <stdlib.h>
    #include <unistd.h>
    struct thread { void *(*begin)(void *); void *given; };
    static void *late(void *given) {
        struct thread thread = *(struct thread *)given;
        free(given);
        usleep(300000);
        return thread.begin(thread.given);
    }
    int pthread_create(pthread_t *id, const pthread_attr_t *kind, void *(*begin)(void *), void *given) {
        int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
        struct thread *thread = malloc(sizeof *thread);
        *thread = (struct thread){begin, given};
        return create(id, kind, late, thread);
    }
    __attribute__((destructor)) static void linger(void) {
        usleep(600000);
    }
"""


@pytest.fixture(scope="session")
def busy_machine(tmp_path_factory):
    """A library, to be loaded before a program: its threads get their first turn late, and it lingers when Python has ended."""
    folder = tmp_path_factory.mktemp("busy")
    (folder / "busy.c").write_text(BUSY)
    command = [*os.environ.get("CC", "cc").split(), "-D_GNU_SOURCE", "-fPIC", "-shared", "busy.c", "-o", "busy.so", "-ldl", "-lpthread"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "busy.so")


@pytest.mark.parametrize(
    "last",
    [
        "steps(1)",
        "steps(1), hooks and (hooks.pause(), hooks.resume())",
        "steps(1), os.waitpid(os.fork() or os._exit(0), 0)",
        "atexit_before_torch.append(lambda: steps(1))",
    ],
)
def test_a_thread_that_gets_no_turn_ends_before_python(observe, torch_python, busy_machine, last):
    """It ran when Python had ended, and read what was freed: the program died of a signal after its last line."""
    program = f"""
    import atexit
    atexit_before_torch = []
    atexit.register(lambda: [run() for run in atexit_before_torch])
    {STEPS}
    hooks = sys.modules.get("_hec_hooks")
    {last}
    print("whole")
    """
    observe.both(torch_python[0], program, cold=True, LD_PRELOAD=busy_machine)
    assert (observe.last.returncode, observe.last.stdout) == (0, "whole\n")


def test_ctrl_c_while_it_sleeps(observe, torch_python):
    program = STEPS + """
    steps(3)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
    """
    found = observe.one(torch_python[0], program)
    assert observe.last.stdout == "interrupted\n" and len(found.steps) == 3


def test_what_a_program_can_see_is_unchanged(observe, torch_python):
    program = STEPS + """
    import gc, inspect
    steps(3)
    print([thread.name for thread in threading.enumerate()], threading.active_count())
    print(gc.isenabled(), gc.get_threshold(), signal.getsignal(signal.SIGINT), warnings.filters)
    print(inspect.signature(torch.save), inspect.signature(torch.autograd.backward), torch.save.__qualname__)
    print(torch.save is torch.serialization.save, sys.gettrace(), sys.getprofile(), sys.excepthook, sys.stdout.name)
    print(torch.initial_seed() > 0, torch.is_grad_enabled(), sorted(os.environ) == sorted(dict(os.environ)))
    """
    observe.one(torch_python[0], program)
    observe.one(torch_python[0], program, cold=True)


def test_what_a_program_that_begins_warm_can_see(observe, torch_python):
    """Of warm_python.py: what a program sees that imports PyTorch itself."""
    program = """
    import sys
    print(sys.argv, sys.flags, sys.warnoptions, sys.path, __name__, __spec__, sorted(globals()))
    print([name for name in sys.modules if name.startswith("torch")], sys.stdin.read())
    from torch.nn import Linear
    import torch, inspect, os, signal, threading, warnings
    print(sorted(name for name in sys.modules if name.startswith("torch")), Linear is torch.nn.Linear)
    print(torch.__spec__.origin, torch.__spec__.loader is torch.__loader__, type(torch.__loader__))
    print([getattr(finder, "__name__", type(finder)) for finder in sys.meta_path])
    print(sorted(os.environ.items()), os.getcwd(), warnings.filters, signal.getsignal(signal.SIGINT), threading.active_count())
    print([frame.function for frame in inspect.stack()], os.listdir("/proc/self/fd"))
    """
    said = [observe.start(torch_python[0], program, hooked=False, cold=cold) for cold in (False, True)]
    assert said[0].stdout.splitlines() == said[1].stdout.splitlines() and said[0].stderr == said[1].stderr


def test_forked_children(observe, torch_python):
    program = STEPS + """
    steps(4)
    for what in "idle", "steps":
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            try:
                if what == "steps":
                    steps(3)
                else:
                    model(torch.ones(6, 4))
            except RuntimeError:
                os._exit(3)
            stacks = sys.modules.get("_hec_hooks.stacks")
            while what == "steps" and stacks is not None and stacks._next_node == 1:  # nobody has looked yet
                time.sleep(0.05)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    steps(2)
    """
    found = observe.both(torch_python[0], program)
    assert observe.last.returncode == 0
    if str(3 << 8) in observe.last.stdout.split():
        pytest.skip("this PyTorch refuses a backward pass in the child of a fork")
    assert [len(one.steps) for one in found] == [6, 3]
    assert all("hooks_off" not in one.facts for one in found)
    assert found[1].frames  # defined anew


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_are_silent(observe, torch_python, method):
    program = f"""
        import torch
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            model = torch.nn.Linear(2, 2)
            def __len__(self):
                return 12
            def __getitem__(self, index):
                with torch.no_grad():
                    return self.model(torch.ones(1, 2))[0]
        if __name__ == "__main__":
            model = torch.nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context={method!r}):
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
            print("done")
    """
    found = observe.both(torch_python[0], program, options=())
    assert observe.last.stdout == "done\n"
    assert len(found) == 1 and found[0].steps == [(4, OPTIMIZER)] * 3


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_ranks_are_processes_of_their_own(observe, torch_python, method):
    program = f"""
        import torch, torch.multiprocessing as mp
        def rank(index):
            torch.set_num_threads(1)
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(6):
                model(torch.ones(5, 4)).mean().backward()
                optimizer.step()
        if __name__ == "__main__":
            mp.start_processes(rank, nprocs=2, start_method={method!r})
            print("done")
    """
    found = observe.both(torch_python[0], program, options=())
    assert observe.last.stdout == "done\n"
    assert sorted(len(one.steps) for one in found if one.steps) == [6, 6]


def test_torchrun(observe, torch_python):
    python, _ = torch_python
    program = """
        import os, torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(6):
            for part in range(3):
                model(torch.ones(5, 4)).mean().backward()
            with model.no_sync():
                model(torch.ones(5, 4)).mean().backward()
            optimizer.step()
        dist.barrier()
        if dist.get_rank() == 0:
            print(sum(p.sum().item() for p in model.parameters()) < 1e9)
        dist.destroy_process_group()
    """
    options = ("-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    if observe.start(python, program, hooked=False, options=options).returncode != 0:
        pytest.skip("this PyTorch's launcher does not run with this Python")
    hooked = observe.start(python, program, options=options)
    assert (hooked.returncode, hooked.stdout) == (0, "True\n")
    ranks = sorted((one.facts.get("rank"), len(one.steps), one.facts.get("gradients"), one.facts.get("gradient_syncs"))
                   for one in observe.listener.found())
    assert [rank[:2] for rank in ranks] == [("0 0 2", 6), ("1 1 2", 6)]  # and nothing of the launcher
    assert all(rank[2] == f"20 {25 << 20}" and rank[3] == "18 24 6" for rank in ranks), ranks


BREAKS = {
    "the optimizer's step": "hooks.optimizers.cycle.ended = 5",
    "the loss": "hooks.losses._value_of = 5",
    "calls of modules": "hooks.modules._ended = 5",
    "the data loader": "hooks.batches.of_batch = 5",
    "checkpoints": "hooks.core.library.interval = 5",
    "stack samples": "hooks.stacks._sample = 5",
    "everything": "hooks.core.library = 5",
}


@pytest.mark.parametrize("hook", BREAKS)
def test_a_broken_hook_is_no_matter_of_the_program(observe, torch_python, hook):
    python, version = torch_python
    program = STEPS + f"""
    HOOK = {hook!r}""" + """
    hooks = sys.modules.get("_hec_hooks")
    hooks and setattr(hooks.losses, "INTERVAL_NS", 0)
    steps(2)
    if hooks:
        exec(os.environ["HEC_TEST_BREAK"])
    from torch.utils.data import DataLoader, TensorDataset
    for (x,) in DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=2):
        steps(1)
        torch.save(model.state_dict(), os.devnull)
    until = time.monotonic() + 60
    while hooks and HOOK == "stack samples" and not hooks.core.off and time.monotonic() < until:  # its thread looks when it gets to it
        time.sleep(0.01)
    time.sleep(0.1)
    print(steps(1).item(), torch.rand(1).item() < 1)
    """
    found = observe.both(python, program, options=(), HEC_TEST_BREAK=BREAKS[hook])
    assert observe.last.returncode == 0 and observe.last.stderr == ""
    facts = found[0].facts
    if hook == "everything" or (hook == "calls of modules" and version < (2, 2)):
        return
    count = 1 if hook == "stack samples" else 8
    assert facts["hooks_off"].startswith(f"{hook} is off after {count} errors (the last: TypeError"), facts
    if hook != "the optimizer's step":
        assert len(found[0].steps) == 23


def test_objects_end_where_the_program_ends_them(observe, torch_python):
    """In its thread, and at once: whatever the sampler does then, and however often the interpreter changes threads."""
    program = STEPS + """
    steps(3)
    wrong, alive = [], 0
    class Thing:
        def __init__(self):
            global alive
            alive += 1
        def __del__(self):
            global alive
            alive -= 1
            if threading.get_ident() != main:
                wrong.append(threading.get_ident())
    main, late = threading.get_ident(), 0
    sys.setswitchinterval(1e-6)
    def hold(depth):
        thing = Thing()
        return hold(depth - 1) if depth else sum(range(20))
    stacks, until = sys.modules.get("_hec_hooks.stacks"), time.monotonic() + 3
    while time.monotonic() < until or (stacks is not None and stacks._next_node < 500):  # on a busy machine it seldom comes to look
        for name in range(10):  # places that the sampler has not seen
            exec(f"def f{name}():\\n    return hold(15)\\nf{name}()")
        late += alive > 0
    print(len(wrong), late)
    """
    (found,) = [observe.one(torch_python[0], program, HEC_HOOKS_HZ="1000")]
    assert len(found.stacks) > 20


def test_no_finalizer_runs_while_frames_are_listed(observe, torch_python):
    """A collection that the sampler began there ran them, and they let the program go on: its next fork waited for ever (CPython 106883)."""
    program = """
    import gc, sys, threading
    import torch
    listing, ran, states = [], [], []
    class Loop:
        def __init__(self):
            self.me = self
        def __del__(self):
            ran.append(bool(listing))
    frames = sys._current_frames
    def listed():
        listing.append(1)
        Loop()
        [[] for _ in range(50)]
        found = frames()
        listing.clear()
        return found
    hooks = sys.modules.get("_hec_hooks")
    sys._current_frames = listed
    gc.set_threshold(1)
    for collects in (True, False) * 10:
        gc.enable() if collects else gc.disable()
        if hooks and sys.version_info < (3, 12):
            assert hooks.stacks._walk(threading.get_ident())
        states.append(gc.isenabled() == collects)
    print(sum(ran), all(states))
    """
    assert "hooks_off" not in observe.one(torch_python[0], program, HEC_HOOKS_HZ="0").facts


def test_an_exception_of_a_signal_handler_is_the_programs(observe, torch_python):
    program = STEPS + """
    class Timeout(Exception):
        pass
    def handler(number, frame):
        raise Timeout
    hooks = sys.modules.get("_hec_hooks")
    if hooks:  # the signal arrives while a hook runs
        signal.signal(signal.SIGALRM, handler)
        hooks.batches.of_arguments = lambda *args: signal.raise_signal(signal.SIGALRM)
        hooks.optimizers.samples.optimized = lambda *args: signal.raise_signal(signal.SIGALRM)
    try:
        steps(2)
        if not hooks:
            raise Timeout
    except Timeout:
        print("in time")
    """
    observe.one(torch_python[0], program)
    assert observe.last.stdout == "in time\n"


def test_hec_that_is_gone(observe, torch_python, tmp_path):
    program = STEPS + "    print(steps(5).item() < 1e9)\n"
    for environment in {"HEC_SOCKET": str(tmp_path / "nobody")}, {"HEC_LIB": "/nowhere"}, {"HEC_LIB": "libc.so.6"}:
        assert observe.both(torch_python[0], program, **environment) == []


def test_a_notebook(observe, torch_python):
    python, _ = torch_python
    if observe.start(python, ["-c", "import nbclient, nbformat, ipykernel"], hooked=False, options=()).returncode != 0:
        pytest.skip("nbclient and ipykernel are not installed")
    cell = textwrap.dedent(STEPS)
    found = observe.start(
        python,
        f"""
        import nbformat, nbclient
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(text) for text in ({cell!r}, "steps(5); print('cell')")]
        nbclient.NotebookClient(book, kernel_name="python3").execute()
        print(book.cells[1].outputs[0]["text"])
        """,
        options=(),
    )
    assert found.stdout == "cell\n\n", found.stderr
    (kernel,) = [one for one in observe.listener.found() if one.steps]
    assert len(kernel.steps) == 5
