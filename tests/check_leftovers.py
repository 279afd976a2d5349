"""No test leaves a file where it is started, nor in the source tree. `begin` before all tests, `end` after them.

    check_leftovers.py begin|end WORK    the tests' own folders are in WORK, the tree in HEC_SOURCE_DIR, its build in HEC_BINARY_DIR

The tree is listed before and after, without git: it may have come as an archive. A test that is started by hand works in the
tester's folder, so what it would leave there counts as well: its own folder under ctest ends empty.
"""
import os
import pathlib
import shutil
import sys

TREE, BUILD = (pathlib.Path(os.environ[name]) for name in ("HEC_SOURCE_DIR", "HEC_BINARY_DIR"))
# what building and the tools of the front end make there
OTHERS = {TREE / name for name in (".git", "build", "dist", ".venv", "web/node_modules", "web/generated", "web/.install.lock")}


def below(folder):
    """The files and links below a folder, and its empty folders."""
    for path, folders, files in os.walk(folder):
        here = pathlib.Path(path)
        folders[:] = [name for name in folders if here / name not in OTHERS and here / name != BUILD]
        yield from (str(here / name) for name in files if here / name not in OTHERS)
        yield from (str(here / name) for name in folders if (here / name).is_symlink() or not any((here / name).iterdir()))


def begin(work, before):
    for test in work.iterdir():
        for left in test.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    before.write_text("\n".join(below(TREE)), encoding="utf-8", errors="surrogateescape")


def end(work, before):
    known = set(before.read_text(encoding="utf-8", errors="surrogateescape").split("\n"))
    left = [f"left behind by its test: {path}" for test in work.iterdir() for path in below(test)]
    left += [f"new in the tree since the tests began: {path}" for path in below(TREE) if path not in known]
    print("\n".join(sorted(left)), file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    WORK = pathlib.Path(sys.argv[2])
    sys.exit({"begin": begin, "end": end}[sys.argv[1]](WORK, WORK.parent / "tree-before.txt"))
