"""Where there is no memory: at each place of hec's own code that asks for some, by turns, a verb ends by itself and says so, or goes
on as if nothing had been."""
import concurrent.futures
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, GOLDEN, HANGS_S, ROOT

LIBRARY = str(BUILD / "tests" / "lib" / "libtest_no_memory.so")
EVERY = int(os.environ.get("HEC_TEST_EVERY", "11"))  # one place in so many is tried; 1: each
KINETO = ROOT / "tests" / "data" / "kineto" / "alexnet.json.gz"
VERBS = {
    "report": ["report", "-v", GOLDEN / "ddp.hec"],
    "whatif": ["whatif", GOLDEN / "cuda_fft.hec"],
    "compare": ["compare", GOLDEN / "copies.hec", GOLDEN / "resnet18.hec"],
    "import": ["import", "-q", "-f", "-o", "OUT.hec", KINETO],
}


def run(hec, verb, place):
    """The status, what was said, and how many places there were."""
    reading, writing = os.pipe()
    arguments = [str(w).replace("OUT", str(pathlib.Path(hec.folder) / f"out-{place}")) for w in VERBS[verb]]
    with os.fdopen(reading) as counted:
        done = subprocess.run([hec.path, *arguments], text=True, capture_output=True, timeout=HANGS_S, cwd=hec.folder, pass_fds=[writing],
                              env={**os.environ, "NO_COLOR": "1", "LD_PRELOAD": LIBRARY, "HEC_NO_MEMORY": str(place),
                                   "HEC_NO_MEMORY_FD": str(writing)}, check=False)
        os.close(writing)
        return done, int(counted.read() or 0)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="has an allocator of its own")
def test_without_memory(hec, verb):
    sound, places = run(hec, verb, 0)
    assert sound.returncode == 0, sound.stderr
    assert places > 40

    def try_place(place):
        done, _ = run(hec, verb, place)
        if done.returncode == 0:
            return None
        said = [line for line in done.stderr.splitlines() if line.startswith("hec: ")]
        if done.returncode < 0 or done.returncode > 125 or not said:
            return f"place {place}: {done.returncode}, {done.stderr}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        broken = [why for why in pool.map(try_place, range(1, places + 1, EVERY)) if why]
    assert not broken, "\n".join(broken)
