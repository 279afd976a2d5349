"""Two jax.profiler traces one after the other, for watching when CUPTI is loaded and what is asked of it (run-probe)."""
import sys
import tempfile

import jax
import jax.numpy as jnp


def say(text):
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if "cupti" in line})
    print('{"jax": "%s", "mapped": "%s"}' % (text, " ".join(paths)), file=sys.stderr, flush=True)


say("imported")
x = jnp.zeros(1024) + 1
x.block_until_ready()
say("context")
for session in range(2):
    with tempfile.TemporaryDirectory() as folder:
        say(f"session {session}")
        with jax.profiler.trace(folder):
            for _ in range(100):
                x = x + 1
            x.block_until_ready()
        say(f"session {session} ended")
say("end")
