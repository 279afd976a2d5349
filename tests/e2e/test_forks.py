"""Children that a traced program forks at any moment live: locks of the loader, of CUPTI and of the tracer must not reach them
taken. The program is the one of bench/gpu/harmless: 100 children, each loads a library, while one thread launches kernels and
the tracer's thread does what it does; a library with 120000 relocations makes its walks over the modules last."""
import importlib.util

import pytest

from conftest import ROOT

CHILDREN, LIMIT_S = 100, 30


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = ROOT / "bench" / "gpu" / "harmless" / "libraries.py"
    spec = importlib.util.spec_from_file_location("libraries", path)
    libraries = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(libraries)
    folder = tmp_path_factory.mktemp("forks")
    libraries.build("forks", folder)
    return folder


@pytest.mark.parametrize("mode", ["off", "auto", "full"])
def test_no_child_hangs(hec, built, mode):
    done = hec("run", "--sim", "h200", f"--trace={mode}", "-q", "-o", "forks.hec", "--", built / "forks", CHILDREN,
               built / "big.so", built / "small.so", LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"hung 0 of {CHILDREN}\n"
    report = hec.report("forks.hec")
    if mode != "off":
        assert report["trace"]["processes"] == 1 and report["trace"]["bad"] == 0
        assert report["trace"]["records"] > 0, "its calls were not seen: nothing was tested"
    if mode == "full":
        assert report["devices"][0]["timeline"]["kernels"] > 1000
