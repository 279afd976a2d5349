"""The package as a package, and the C header as seen by other people's compilers."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from listener import STEP, Listener


def test_one_version(source):
    text = (source / "CMakeLists.txt").read_text()
    project = re.search(r"project\(hec VERSION ([0-9.]+)", text).group(1)
    out = subprocess.run(
        [sys.executable, "-c", "import hec; print(hec.__version__)"],
        env={**os.environ, "PYTHONPATH": str(source / "python")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert out.stdout.strip() == project
    pyproject = (source / "python/pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in pyproject and project not in pyproject


def test_the_package_is_typed_and_has_nothing_compiled(source):
    files = {p.name for p in (source / "python/hec").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert "py.typed" in files
    assert {os.path.splitext(name)[1] for name in files} <= {".py", ".typed"}


def test_the_syntax_is_that_of_python_3_8(source):
    import ast

    for path in (source / "python").rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 8))


def install(prefix, root):
    subprocess.run(
        ["cmake", "--install", os.environ["HEC_BINARY_DIR"], "--prefix", prefix],
        env={**os.environ, "DESTDIR": str(root)}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return [path for path in root.glob(f".{prefix}/lib/python3*/*-packages/hec") if path.is_symlink()]


def system_python(program, **environment):
    environment = {name: value for name, value in {**os.environ, **environment}.items() if name != "HEC_LIB"}
    return subprocess.run(["/usr/bin/python3", "-c", program], env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("prefix", ["/usr/local", "/usr"])
def test_the_package_is_found_after_make_install(tmp_path, prefix):
    """Where the system's python3 looks, with the library of the same tree."""
    looked = system_python("import site; print(*site.getsitepackages())").split()
    links = install(prefix, tmp_path)
    assert links, "no folder of packages"
    for link in links:
        assert not os.path.isabs(os.readlink(link)) and str(link.parent)[len(str(tmp_path)):] in looked
        said = system_python("import hec; print(hec.knob('batch', 1), bool(hec._library))",
                             PYTHONPATH=str(link.parent), HEC_KNOBS="batch=64")  # fmt: skip
        assert said == "64 True\n"
    if prefix == "/usr":  # a package of that name that is there is left alone
        links[0].unlink()
        links[0].mkdir()
        install(prefix, tmp_path)
        assert not links[0].is_symlink() and list(links[0].iterdir()) == []


PROGRAM = """
#include <hec/hec.h>
extern int other(void);
int main(void) {
    hec_step(1);
    hec_step_of("sample", 2);
    hec_units("token", 3);
    hec_phase_begin("a");
    hec_phase_end("a");
    return other() + (hec_active() ? 10 : 0) + (int)hec_knob_int("k", 0) + (int)hec_knob_int_in("k", 0, 0, 1);
}
"""
OTHER = """
#include <hec/hec.h>
int other(void) { hec_step(4); return hec_knob_double("k", 0) > 0 && hec_knob_text("k", 0) && hec_knob_double_in("k", 0, 0, 9) > 0; }
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-O2"]


@pytest.mark.parametrize("form", ["linked", "header only"])
@pytest.mark.parametrize("compiler", ["gcc -std=c99", "gcc -std=c17", "clang -std=gnu11 -Wmissing-variable-declarations",
                                      "g++ -std=c++11", "g++ -std=c++20", "clang++ -std=c++17"])  # fmt: skip
def test_the_header_compiles_everywhere(source, libhec, tmp_path, compiler, form):
    if not shutil.which(compiler.split()[0]):
        pytest.skip(f"no {compiler.split()[0]} here")
    suffix = "cc" if "++" in compiler else "c"
    (tmp_path / f"program.{suffix}").write_text(PROGRAM)
    (tmp_path / f"other.{suffix}").write_text(OTHER)
    # the second file as a position-independent shared library of its own: its state must stay apart
    base = [*compiler.split(), *STRICT, f"-I{source}/include"]
    if form == "header only":
        base.append("-DHEC_HEADER_ONLY")
    link = [] if form == "header only" else [libhec, f"-Wl,-rpath,{os.path.dirname(libhec)}"]
    subprocess.run([*base, "-fPIC", "-shared", f"other.{suffix}", *link, "-ldl", "-o", "libother.so"],
                   cwd=tmp_path, check=True)  # fmt: skip
    subprocess.run([*base, f"program.{suffix}", "./libother.so", *link, "-ldl", "-o", "program"],
                   cwd=tmp_path, check=True)  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEC_")}
    assert subprocess.run(["./program"], cwd=tmp_path, env=environment).returncode == 0
    listener = Listener(tmp_path) if len(str(tmp_path)) < 90 else Listener(os.path.relpath(tmp_path))
    environment.update(HEC_LIB=libhec, HEC_SOCKET=os.path.abspath(listener.path), HEC_KNOBS="k=2")
    if len(environment["HEC_SOCKET"]) > 107:
        environment["HEC_SOCKET"] = os.path.relpath(listener.path, tmp_path)
    assert subprocess.run(["./program"], cwd=tmp_path, env=environment).returncode == 13
    ((_, records),) = listener.rings()  # one ring, whoever made the marks
    listener.close()
    assert [value for kind, _, _, value in records if kind == STEP] == [1.0, 2.0, 4.0]


def test_the_c_example_runs_alone(source, libhec, tmp_path):
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *STRICT, "-DHEC_HEADER_ONLY", f"-I{source}/include", str(source / "examples/marks.c"),
                    "-ldl", "-o", str(tmp_path / "marks")], check=True)  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEC_")}
    environment.update(HEC_KNOBS="steps=2;batch=3", HEC_LIB=libhec)
    out = subprocess.run([str(tmp_path / "marks")], env=environment, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"2 steps of 3 samples \([0-9.]+\), not observed\n", out.stdout)


def test_only_the_api_is_exported(libhec):
    out = subprocess.run(["nm", "-D", "--defined-only", libhec], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    # for the hooks, with a version node that promises nothing
    private = {line.split()[-1] for line in out.splitlines() if "@@HEC_PRIVATE" in line}
    assert {name.split("@")[0] for name in private} == {
        f"hec_hook_{what}" for what in ("step", "value", "interval", "frame", "stack", "fact", "window", "stacks")
    }
    names = {name for name in names if not name.startswith(("HEC_", "hec_hook_"))}
    assert names == {
        "hec_mark_active", "hec_mark_step", "hec_mark_phase_begin", "hec_mark_phase_end", "hec_mark_units",
        "hec_mark_table", "hec_knob_int", "hec_knob_double", "hec_knob_text", "hec_knob_int_in", "hec_knob_double_in",
    }  # fmt: skip
