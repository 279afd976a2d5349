"""What `make install` leaves can be entered, read and run by everybody, and written by nobody else, whatever the umask of who installs."""
import os
import pathlib
import subprocess
import tempfile

import pytest

from agent_common import SANITIZED
from conftest import BINARY

BUILD = os.environ["HEC_BINARY_DIR"]


@pytest.mark.skipif(SANITIZED, reason="the sanitizers are not installed")
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o007, 0o022, 0o027, 0o037, 0o077, 0o177, 0o277, 0o377, 0o777])
def test_any_umask(umask):
    if os.geteuid() != 0 and umask & 0o700:
        pytest.skip("only root may still write into such folders")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        install(pathlib.Path(folder), umask)


def install(tmp_path, umask):
    done = subprocess.run(["cmake", "--install", BUILD], env={**os.environ, "DESTDIR": str(tmp_path)}, capture_output=True, text=True,
                          preexec_fn=lambda: os.umask(umask))
    assert done.returncode == 0, done.stderr
    files = [path for path in tmp_path.rglob("*") if not path.is_symlink()]
    assert len(files) > 50
    for path in files:
        mode = path.stat().st_mode & 0o777
        assert mode & 0o022 == 0 and mode & 0o444 == 0o444 and (not path.is_dir() or mode & 0o111 == 0o111), (path, oct(mode))
    hec, = [path for path in files if path.name == "hec" and path.is_file() and path.parent.name == "bin"]
    user = {"user": 7001, "group": 7001, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run([hec, "--version"], capture_output=True, text=True, cwd="/", **user)
    assert done.returncode == 0 and done.stdout == subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout, done.stderr
