"""Kinds of programs that HEC once diagnosed wrongly, each as a person writes it: programs.py NAME."""
import queue
import sys
import threading
import time


def recompile():
    """A new length each step, compiled anew."""
    import torch
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 1000
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)).cuda()
    compiled = torch.compile(model, dynamic=False)
    for length in range(64, 94):
        with torch.no_grad():
            compiled(torch.randn(length, 512, device="cuda")).sum().item()


def server():
    """A thread asks now and then; the main thread serves."""
    import torch
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda().half().eval()
    asked = queue.Queue()

    def ask():
        for _ in range(200):
            time.sleep(0.08)
            asked.put(torch.randn(16, 4096).half())
        asked.put(None)
    threading.Thread(target=ask, daemon=True).start()
    while (request := asked.get()) is not None:
        with torch.no_grad():
            model(request.cuda()).cpu()


def cupy_chain():
    """Element-wise work, one small operation after the other."""
    import cupy
    x = cupy.random.rand(4_000_000, dtype=cupy.float32)
    end = time.time() + 15
    while time.time() < end:
        for _ in range(200):
            x = cupy.sqrt(x * x + 1) - x * 0.5
        cupy.cuda.Stream.null.synchronize()


def gaussian_process():
    """A Gaussian process by Cholesky in fp32: TF32 would spoil it."""
    import torch
    points = torch.randn(8000, 16, device="cuda")
    targets = torch.randn(8000, 1, device="cuda")
    scale = torch.ones(1, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([scale], lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        kernel = torch.exp(-torch.cdist(points, points) ** 2 / scale) + 0.1 * torch.eye(8000, device="cuda")
        factor = torch.linalg.cholesky(kernel)
        loss = (targets * torch.cholesky_solve(targets, factor)).sum() + 2 * factor.diagonal().log().sum()
        loss.backward()
        optimizer.step()


def dense():
    """bf16 products that fill the card: healthy."""
    import torch
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    model = torch.nn.Linear(8192, 8192, bias=False).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(1500):
        optimizer.zero_grad()
        model(a).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()


def diverging():
    """A loss that becomes nan."""
    import torch
    model = torch.nn.Linear(2048, 2048).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e4)
    data = torch.randn(4096, 2048, device="cuda")
    for i in range(400):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), data)
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
        if i % 50 == 0:
            print(loss.item())


def loader_without_path():
    """A slow loader in a program that ignores PYTHONPATH."""
    import torch

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 300

        def __getitem__(self, i):
            time.sleep(0.03)
            return torch.randn(2048)
    model = torch.nn.Linear(2048, 2048).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=1):
        optimizer.zero_grad()
        model(batch.cuda()).square().mean().backward()
        optimizer.step()


globals()[sys.argv[1]]()
