"""How the hooks come into a process, and that nothing else does: without PyTorch, or with something that is not it."""

import ast
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

SHOW = """
    import sys
    print(sorted(name for name in sys.modules if "hec" in name and "check" not in name), [f for f in sys.meta_path
          if "hec" in getattr(sys.modules.get(f.__module__), "__file__", "") or f.__module__ == "sitecustomize"],
          len(sys.meta_path))
"""


def test_a_program_without_pytorch_imports_nothing_more(observe):
    program = "import sys, json; print(sorted(set(sys.modules) - {'sitecustomize'}))"
    assert observe.both(sys.executable, program) == []
    assert "ctypes" not in observe.last.stdout and "importlib.util" not in observe.last.stdout


@pytest.fixture
def fake_jax(observe):
    """A package of that name, and a library of the name of CUDA's driver that it can load."""
    (observe.folder / "nothing.c").write_text("int nothing;\n")
    cuda = observe.folder / "libcuda.so.1"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "nothing.c", "-o", str(cuda)],
                   cwd=observe.folder, check=True)
    (observe.folder / "jax.py").write_text(f"def device_put():\n    import ctypes\n    ctypes.CDLL({str(cuda)!r})\n")
    return textwrap.dedent("""
    import sys, time
    import jax
    hooks = sys.modules.get("_hec_hooks")
    def count(enough):
        while hooks is not None and not enough():
            sum(range(1000))
    """)


def test_another_framework_tells_its_stacks_once_it_uses_a_gpu(observe, fake_jax):
    (found,) = observe.both(sys.executable, fake_jax + textwrap.dedent("""
    time.sleep(0.3)
    assert not hooks or not hooks.stacks.samples
    jax.device_put()
    count(lambda: hooks.stacks.samples >= 10)
    print("done")
    """))
    assert observe.last.stdout == "done\n" and "torch" not in found.facts and "hooks_off" not in found.facts
    assert {found.stack(frame)[-1][1] for _, frame, _ in found.stacks} <= {"count", "count.<locals>.<lambda>", "<lambda>"}
    assert len(found.stacks) >= 10 and not found.steps


def test_a_program_run_by_python_m_has_its_lines(observe, fake_jax):
    """There the program's own code is not the outermost: frames of runpy are."""
    (observe.folder / "examples.py").write_text(fake_jax + "jax.device_put()\nwhile hooks and hooks.stacks.samples < 20:\n    pass\n")
    (found,) = observe.both(sys.executable, ["-m", "examples"])
    lines = {line for _, frame, _ in found.stacks for file, _, line in found.stack(frame) if file.endswith("/examples.py")}
    assert lines and all(lines)


def test_the_size_of_a_job_is_reported_once_it_is_known(observe, fake_jax):
    """torch.distributed knows it after init_process_group, which may be long after the hooks began."""
    (found,) = observe.both(sys.executable, fake_jax + textwrap.dedent("""
    import types
    sys.modules["torch.distributed"] = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 4, get_rank=lambda: 3)
    jax.device_put()
    count(lambda: hooks.core._ranks_reported)
    """))
    assert found.facts["world_size"] == "4" and found.facts["rank"] == "3 -1 4"


def test_another_framework_without_a_gpu_tells_nothing(observe, fake_jax):
    assert observe.both(sys.executable, fake_jax + "time.sleep(0.5)\nimport numbers\n") == []


def test_stacks_of_another_framework_go_on_after_a_fork(observe, fake_jax):
    found = observe.both(sys.executable, fake_jax + textwrap.dedent("""
    import os, warnings
    warnings.simplefilter("ignore")
    jax.device_put()
    count(lambda: hooks.stacks.samples >= 2)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    before = hooks.stacks.samples if hooks else 0
    count(lambda: hooks.stacks.samples >= before + 2)
    """))
    assert len(found) == 1 and len(found[0].stacks) >= 4


def test_torch_after_another_framework(observe, fake_jax):
    """The hooks of PyTorch come too, though they are loaded already; of something else called torch they are refused."""
    (observe.folder / "torch.py").write_text("__version__ = '0'\n")
    (found,) = observe.both(sys.executable, fake_jax + textwrap.dedent("""
    jax.device_put()
    import torch
    count(lambda: hooks.stacks.samples >= 2)
    """))
    assert found.facts["torch"] == "0" and found.stacks


@pytest.mark.parametrize("environment", [{"HEC_HOOKS": "0"}, {"HEC_SOCKET": ""}])
def test_the_hooks_can_be_off(observe, environment):
    (observe.folder / "torch.py").write_text("answer = 42\n")
    assert observe.both(sys.executable, SHOW + "    import torch; print(torch.answer)\n", **environment) == []
    assert observe.last.stdout.endswith("42\n") and observe.last.stdout.startswith("[] []")


def test_something_else_called_torch(observe):
    (observe.folder / "torch.py").write_text("answer = 42\n")
    program = """
    import sys, torch
    print(torch.answer, torch.__spec__.loader.__class__.__name__, "exec_module" in vars(torch.__loader__))
    import importlib
    print(importlib.reload(torch).answer, [getattr(f, '__name__', type(f).__name__) for f in sys.meta_path])
    """
    observe.both(sys.executable, program)
    assert observe.last.stdout.startswith("42 SourceFileLoader False\n42 ")


def test_a_torch_that_cannot_be_imported_fails_the_same(observe):
    (observe.folder / "torch.py").write_text("import no_such_module\n")
    program = """
    try:
        import torch
    except ImportError as error:
        print(repr(error))
    import torch
    """
    observe.both(sys.executable, program)
    assert observe.last.returncode == 1 and "no_such_module" in observe.last.stderr
    assert "sitecustomize" not in observe.last.stderr
    (observe.folder / "torch.py").unlink()
    observe.both(sys.executable, program)
    assert "No module named 'torch'" in observe.last.stderr or observe.last.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "import builtins, sys\nbuiltins.customized = [__name__, __file__, sys.modules['sitecustomize'].__file__]\n",
        "raise ValueError('planted')\n",
        "raise ImportError('planted')\n",
        "import sys\nsys.exit(7)\n",
        "this is no Python\n",
    ],
)
def test_a_sitecustomize_that_is_there_runs_as_ever(observe, text):
    folder = observe.folder / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    program = """
    import builtins, sys
    print(getattr(builtins, "customized", None), getattr(sys.modules.get("sitecustomize"), "__file__", None))
    """
    plain = observe.start(sys.executable, program, hooked=False, options=(), PYTHONPATH=str(folder))
    hooked = observe.start(sys.executable, program, options=(), PYTHONPATH=str(folder))
    assert (hooked.returncode, hooked.stdout) == (plain.returncode, plain.stdout)
    # Python prints a traceback where it exits this early: the hooks' own frames are in it
    assert without_hooks(hooked.stderr) == without_hooks(plain.stderr)


def without_hooks(text):
    lines = [line for line in text.splitlines() if "^^" not in line]  # Python 3.11 and newer underline
    return [line for i, line in enumerate(lines) if "/python/hooks/" not in "".join(lines[max(0, i - 1) : i + 1])]


def pythons():
    """This Python, and each that this machine has of those without hooks, on the PATH and of pyenv."""
    home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    tried = [*map(shutil.which, ("python2", "python2.7", "python3.3", "python3.4", "python3.6", "python3.7")),
             *(path for old in ("2", "3.3", "3.4", "3.6", "3.7") for path in glob.glob(f"{home}/versions/{old}.*/bin/python"))]
    found = {os.path.realpath(sys.executable): sys.executable}
    for path in filter(None, tried):
        done = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if done.returncode == 0:  # a shim of pyenv is there also where its version is not chosen
            found[os.path.realpath(done.stdout.strip())] = path
    return found.values()


def test_every_python_starts_as_ever(observe):
    """Also those without hooks: 2.7, and 3 before 3.8. A sitecustomize of the user's runs, and one that is not there or
    that fails is told the same way."""
    program = """
    import sys, json
    print(getattr(sys, "customized", None), getattr(sys.modules.get("sitecustomize"), "__name__", None))
    """
    folder = observe.folder / "site"
    folder.mkdir()
    for python in pythons():
        for text in (None, "import sys; sys.customized = 42\n", "raise ValueError('planted')\n"):
            path = {}
            if text:
                (folder / "sitecustomize.py").write_text(text)
                path = {"PYTHONPATH": str(folder)}
            done = [observe.start(python, program, hooked, (), **path) for hooked in (False, True)]
            said = [(d.returncode, d.stdout.split()[:1], without_hooks(d.stderr)) for d in done]
            assert said[0] == said[1], python
            assert done[1].returncode == 0 and ("42" in done[1].stdout) == (text is not None and "42" in text), python


def test_a_python_whose_imports_know_no_specs(observe, source):
    """What Python 2.7 does in sitecustomize, in this Python: machines without 2.7 test it too."""
    folder = observe.folder / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys; sys.customized = __file__\n")
    program = """
    import sys
    if sys.argv[1] == "hooked":
        sys.path.insert(0, sys.argv[2])
    kept = sys.modules.pop("_frozen_importlib_external")
    import sitecustomize
    sys.modules["_frozen_importlib_external"] = kept
    print(sys.customized, sitecustomize.__file__, "_hec_hooks_start" in sys.modules, sys.argv[2] in sys.path)
    """
    hooks = str(source / "python/hooks")
    said = [
        observe.start(sys.executable, program, False, ("-S",), (how, hooks), PYTHONPATH=str(folder)).stdout
        for how in ("plain", "hooked")
    ]
    assert said[0] == said[1] == f"{folder}/sitecustomize.py {folder}/sitecustomize.py False False\n"


@pytest.mark.parametrize("name", ["sitecustomize.py", "_hec_hooks_start.py"])
def test_the_loader_is_valid_in_python_2(source, name):
    """Whatever Python the command starts reads the first; nothing in either is newer than 2.7."""
    text = (source / "python/hooks" / name).read_bytes()
    text.decode("ascii")  # 2.7 refuses other bytes
    newer = (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal, ast.YieldFrom, ast.AsyncFunctionDef, ast.NamedExpr,
             ast.Starred, ast.MatMult)  # fmt: skip
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, newer), ast.dump(node)
        if isinstance(node, ast.Raise):
            assert node.cause is None, ast.dump(node)
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            assert not (node.returns or arguments.kwonlyargs or arguments.posonlyargs), node.name
            assert not any(a.annotation for a in arguments.args), node.name
        if isinstance(node, ast.ClassDef):
            assert not node.keywords, node.name
        if isinstance(node, ast.Call):
            assert getattr(node.func, "id", "") not in ("print", "super"), ast.dump(node)


def test_the_programs_own_packages_are_its_own(observe):
    for name in ("hec", "hooks", "core", "library"):
        (observe.folder / name).mkdir()
        (observe.folder / name / "__init__.py").write_text(f"mine = {name!r}\n")
    (observe.folder / "torch.py").write_text("")
    program = """
    import torch, hec, hooks, core, library
    print(hec.mine, hooks.mine, core.mine, library.mine)
    """
    observe.both(sys.executable, program)
    assert observe.last.stdout == "hec hooks core library\n"


@pytest.mark.parametrize("options", [("-I",), ("-E",), ("-S",)])
def test_options_that_keep_the_environment_out(observe, options):
    program = "import sys; sys.path.insert(0, '.'); import torch; print(torch.answer)"
    (observe.folder / "torch.py").write_text("answer = 42\n")
    assert observe.both(sys.executable, ["-c", program], options=options) == []
    assert observe.last.stdout == "42\n"


PACKAGES = {
    "distributions": "import importlib.metadata as m; print(sorted(str(d.metadata['Name']) for d in m.distributions()))",
    "packages": "import importlib.metadata as m; print(sorted(getattr(m, 'packages_distributions', dict)()))",
    "a version": "import importlib.metadata as m\ntry: print(m.version('hec'))\nexcept m.PackageNotFoundError: print('none')",
    "entry points": "import importlib.metadata as m; print(sorted(map(str, m.entry_points())))",
    "on the path": "import importlib.metadata as m, sys; print(sorted(str(d.metadata['Name']) for d in m.distributions(path=sys.path)))",
    "with torch's hooks": "import sys; sys.path.insert(0, '.'); import torch, importlib.metadata as m; print(len(list(m.distributions())))",
    "in a child": "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import importlib.metadata as m; "
                  "print(len(list(m.distributions())))'], stdout=subprocess.PIPE).stdout)",
    "pkg_resources": "import pkg_resources as p; print(sorted(d.project_name for d in p.working_set))",
    "egg-info": "import glob, sys; print([f for p in sys.path for f in glob.glob(p + '/[hH][eE][cC]*-info')])",
    "pip freeze": "import runpy, sys; sys.argv = ['pip', 'freeze', '--all']; runpy.run_module('pip', run_name='__main__')",
    "pip list": "import runpy, sys; sys.argv = ['pip', 'list']; runpy.run_module('pip', run_name='__main__')",
    "pip inspect": "import runpy, sys; sys.argv = ['pip', 'list', '--format=json', '-v']; runpy.run_module('pip', run_name='__main__')",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_packages_are_listed_as_without_hec(observe, name):
    """By pip freeze and by what records the packages of an experiment."""
    program = PACKAGES[name]
    (observe.folder / "torch.py").write_text("answer = 42\n")
    plain = observe.start(sys.executable, program, hooked=False, options=())
    if plain.returncode and ("No module named" in plain.stderr or "not found" in plain.stderr):
        pytest.skip(plain.stderr.splitlines()[-1])
    hooked = observe.start(sys.executable, program, options=())
    assert (plain.stdout, plain.returncode) == (hooked.stdout, hooked.returncode) and plain.stdout, hooked.stderr


def test_starting_never_raises(observe):
    done = observe.start(sys.executable, ["-c", "import _hec_hooks_start as s; print(s.start.__module__, s.start())"])
    assert done.stdout == "_hec_hooks_start None\n" and done.stderr == ""


def steps(source):
    spec = importlib.util.spec_from_file_location("hec_steps", source / "python/hec/_hooks/steps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Thing:
    pass


@pytest.mark.parametrize(
    "ends,given",
    [
        ("a", "1"),
        ("aaa", "111"),
        ("ab", "2"),
        ("abcabcabc", "333"),
        ("aaaab", "11111"),  # four of a, then b as well: all are steps
        ("abab" + "a" * 40, "22" + "1" * 0 + "*" * 8),  # b is gone: after 32 of a, a counts
    ],
)
def test_what_ends_a_step(source, ends, given):
    got = []
    cycle = steps(source).Cycle(lambda t_ns, samples: got.append(samples))
    things = {name: Thing() for name in set(ends)}
    since = [0]

    def taken():
        samples, since[0] = since[0], 0
        return samples

    for t_ns, name in enumerate(ends):
        since[0] += 1
        cycle.ended(things[name], t_ns, taken)
    cycle.finish()
    if "*" not in given:
        assert len(got) == len(given)
    else:
        assert len(got) == len(given)
        assert got[2] == 33  # and no sample is lost


def test_things_that_come_and_go_are_new(source):
    got = []
    cycle = steps(source).Cycle(lambda t_ns, samples: got.append(t_ns))
    for i in range(3000):
        cycle.ended(Thing(), i, lambda: 1)
    cycle.finish()
    assert got[-1] == 2999 and len(cycle._known) <= 1001
