"""libhec.so for the tests: the build's, or one compiled here when there is none."""

import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def libhec(tmp_path_factory):
    """Path of a libhec.so.0 that an ordinary python3 can load (one built with sanitizers cannot be)."""
    compiler = os.environ.get("CC", "cc")
    if not shutil.which(compiler.split()[0]):
        pytest.fail(f"no C compiler ({compiler})")
    path = tmp_path_factory.mktemp("lib") / "libhec.so.0"
    marks = sorted(str(p) for p in (SOURCE / "src/mark").glob("*.c"))
    subprocess.run(
        [*compiler.split(), "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-fvisibility=hidden", "-shared", f"-I{SOURCE}/src", f"-I{SOURCE}/include", *marks,
         str(SOURCE / "src/base/ring.c"), f"-Wl,--version-script={SOURCE}/src/mark/hec.map",
         "-Wl,-soname,libhec.so.0", "-o", str(path), "-lpthread"],
        check=True,
    )  # fmt: skip
    return str(path)
