"""Two torch.profiler sessions one after the other, for watching what Kineto asks of CUPTI (run-probe)."""
import sys

import torch


def say(text):
    print('{"torch": "%s"}' % text, file=sys.stderr, flush=True)


say("imported")
x = torch.zeros(1024, device="cuda")
say("context")
for session in range(2):
    say(f"session {session}")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(100):
            x.add_(1)
        torch.cuda.synchronize()
    say(f"session {session} ended, kernels %d" % sum("elementwise" in e.name for e in profile.events()))
say("end")
