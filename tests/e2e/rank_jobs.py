"""rank_jobs.py RANKS JOBS SEED LOG: jobs of so many ranks of torch.distributed (gloo, on the CPU), one after the other; in each a rank is
killed, or leaves, at a random moment. Each rank uses a simulated GPU as well. One import of PyTorch serves all jobs: ranks are forks.

LOG gets a line of JSON a job: what befell which rank, how long after its start or its first step, how each rank ended, and which had to
be killed as they hung."""
import contextlib
import ctypes
import datetime
import json
import os
import random
import signal
import sys
import tempfile
import time

import torch
import torch.distributed as dist

HANGS_S = float(os.environ.get("HEC_KILL_HANGS_S", "60"))  # a rank whose job is broken ends long before
BROKEN_S = 3  # for so long a rank waits at the start for one that is gone; later its connections break at once
BEGINS_S, STEPS_S = 0.5, 0.5
EARLY = 0.3  # of those that befall a rank
FATES = ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "leaves", "raises"]


def simulated_gpu(index):
    """Launches a kernel of half a millisecond, and waits for it."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def ok(result):
        assert result == 0, result

    ok(cuda.cuInit(0))
    device, context, module, function, stream = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4))
    ok(cuda.cuDeviceGet(ctypes.byref(device), index))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    ok(cuda.cuCtxSetCurrent(context))
    ok(cuda.cuModuleLoadData(ctypes.byref(module), b"gemm - train_tf32 40 2048\n"))
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"gemm"))
    ok(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    numbers = [ctypes.c_int64(500000), ctypes.c_int64(0)]
    parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, numbers))

    def work():
        ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        ok(cuda.cuStreamSynchronize(stream))

    work.keeps = numbers
    return work


class Leaves(Exception):
    """Before the others do."""


def train(rank, ranks, store, first_step, leaves):
    """leaves(first_step_s): raises where it is time to."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    leaves(None)
    work = simulated_gpu(rank % 2)
    leaves(None)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=BROKEN_S))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    going, first_s = torch.ones(1), None
    while going.item() > 0:
        model(torch.ones(4, 16)).mean().backward()
        work()
        optimizer.step()
        if first_s is None:
            first_s = time.monotonic()
            if first_step is not None:
                os.write(first_step, b".")
        leaves(first_s)
        going = torch.full((1,), float(time.monotonic() < first_s + STEPS_S))
        dist.all_reduce(going, dist.ReduceOp.MIN)
    dist.destroy_process_group()


def rank_process(*arguments):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        train(*arguments)
        code = 0
    except Leaves:
        code = 0
    except BaseException:  # it ends as a fork does, without what its parent has to do at its own end
        pass
    os._exit(code)


def stays(first_s):
    pass


class Victim:
    """What befalls it, and when: by another hand, or by itself."""

    def __init__(self, rng, ranks):
        self.fate, self.rank, self.early = rng.choice(FATES), rng.randrange(ranks), rng.random() < EARLY
        self.after_s = rng.random() * (BEGINS_S if self.early else STEPS_S)
        self.by_itself, self.began_s = not self.fate.startswith("SIG"), time.monotonic()

    def is_time(self, first_s):
        from_s = self.began_s if self.early else first_s
        return from_s is not None and time.monotonic() >= from_s + self.after_s

    def leaves(self, first_s):
        if self.by_itself and self.is_time(first_s):
            raise Leaves() if self.fate == "leaves" else RuntimeError("as planned")


def play(rng, ranks, log):
    victim = Victim(rng, ranks)
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    statuses, hung, first_s, struck = {}, [], None, victim.by_itself
    with tempfile.TemporaryDirectory() as folder:
        pids = [rank_process(rank, ranks, os.path.join(folder, "store"), *((writes, victim.leaves) if rank == victim.rank else (None, stays)))
                for rank in range(ranks)]
        while len(statuses) < ranks:
            with contextlib.suppress(BlockingIOError):
                first_s = time.monotonic() if os.read(reads, 1) else first_s
            if not struck and victim.rank not in statuses and victim.is_time(first_s):
                os.kill(pids[victim.rank], getattr(signal, victim.fate))
                struck = True
            for rank in range(ranks):
                if rank not in statuses and time.monotonic() > victim.began_s + HANGS_S and rank not in hung:
                    hung.append(rank)
                    os.kill(pids[rank], signal.SIGKILL)
                pid, status = (0, 0) if rank in statuses else os.waitpid(pids[rank], os.WNOHANG)
                if pid:
                    statuses[rank] = os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
    os.close(reads)
    os.close(writes)
    line = json.dumps({"ranks": ranks, "fate": victim.fate, "victim": victim.rank, "early": victim.early, "stepped": first_s is not None,
                      "after_s": round(victim.after_s, 3), "ended": [statuses[rank] for rank in range(ranks)], "hung": hung,
                      "seconds": round(time.monotonic() - victim.began_s, 2)}) + "\n"
    with open(log, "a", encoding="ascii") as to:
        to.write(line)


def main():
    ranks, jobs, seed = map(int, sys.argv[1:4])
    rng = random.Random(seed)
    torch.set_num_threads(1)
    for _ in range(jobs):
        play(rng, ranks, sys.argv[4])


if __name__ == "__main__":
    main()
