"""Builds what the judge runs: `libraries.py FOLDER [forks|cuda|client]...`. forks needs gcc alone, cuda needs nvcc."""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SYMBOLS, RELOCATIONS = 20_000, 120_000


def relocations(path, symbols=SYMBOLS, count=RELOCATIONS):
    """Assembler of a library with `count` pointers to its own symbols, which the loader resolves by name, and one to the
    driver's cuLaunchKernel."""
    names = [f"harmless_symbol_{i}" for i in range(symbols)]
    lines = [".data"]
    lines += [f".globl {name}\n.type {name},@object\n.size {name},8\n{name}: .quad 0" for name in names]
    lines += [".section .data.rel,\"aw\",@progbits"]
    lines += [".globl harmless_launch\n.type harmless_launch,@object\n.size harmless_launch,8\nharmless_launch: .quad cuLaunchKernel"]
    lines += [f".quad {names[i * 7 % symbols]}" for i in range(count)]
    lines += [".section .note.GNU-stack,\"\",@progbits", ""]
    path.write_text("\n".join(lines))


def compile_with(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"harmless: {' '.join(map(str, command))}\n{done.stderr}")


def build_forks(folder):
    relocations(folder / "big.S")
    compile_with("gcc", "-shared", "-nostdlib", "-o", folder / "big.so", folder / "big.S")
    (folder / "big.S").unlink()
    (folder / "small.c").write_text("#include <math.h>\ndouble small(double x);\ndouble small(double x) { return cos(x); }\n")
    compile_with("gcc", "-O1", "-shared", "-fPIC", "-o", folder / "small.so", folder / "small.c", "-lm")
    compile_with("gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-o", folder / "forks", HERE / "forks.c", "-ldl", "-lpthread")


def build_cuda(folder):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    compile_with(nvcc, "-std=c++17", "-O2", "-arch=native", "-o", folder / "cuda", HERE / "cuda.cu", "-lpthread")
    compile_with(nvcc, "-O2", "-ptx", "-arch=compute_80", "-o", folder / "kernels.ptx", HERE / "kernels.cu")
    stubs = next(pathlib.Path(nvcc).resolve().parent.parent.glob("**/stubs/libcuda.so")).parent
    compile_with(nvcc, "-O2", "-cudart=none", "-o", folder / "cuda_driver", HERE / "cuda_driver.c", f"-L{stubs}", "-lcuda")


def build_client(folder):
    """An empty client of CUPTI, which HEC's mode full is compared with."""
    cuda = pathlib.Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve().parent.parent
    header = next(cuda.glob("**/cupti.h"))
    compile_with("gcc", "-O2", "-shared", "-fPIC", "-I", header.parent, "-I", cuda / "include", "-o", folder / "client.so",
                 HERE.parent / "trace/client.c", "-ldl", "-lpthread")


BUILDS = {"forks": build_forks, "cuda": build_cuda, "client": build_client}


def folder():
    """Outside the tree, named after the sources: a second call on the same machine finds what the first built, and
    compiled."""
    sources = sorted([*HERE.glob("*.c"), *HERE.glob("*.cu"), HERE / "libraries.py", HERE.parent / "trace/client.c"])
    name = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    path = pathlib.Path(tempfile.gettempdir()) / f"harmless-built-{name}"
    path.mkdir(exist_ok=True)
    return path


def build(name, path):
    if not (path / f"{name}.built").exists():
        BUILDS[name](path)
        (path / f"{name}.built").touch()


def main():
    path = pathlib.Path(sys.argv[1])
    path.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or BUILDS:
        build(name, path)


if __name__ == "__main__":
    main()
