"""The writer of each framework: source(spec, without, probe) is the text, probe_of(spec, cause) what else measures a finding."""
import write_cuda
import write_cupy
import write_jax
import write_ranks
import write_torch

WRITERS = {"torch": write_torch, "lightning": write_torch, "trainer": write_torch, "cupy": write_cupy, "jax": write_jax, "cuda": write_cuda,
           "ranks": write_ranks}
NAMES = {"train": "train", "train_eval": "train", "infer": "infer", "serve": "serve", "iterate": "simulate", "ddp": "train",
         "pipeline": "train", "tensor": "train"}


def source(spec, without=frozenset(), probe=None):
    return WRITERS[spec["framework"]].source(spec, without, probe)


def probe_of(spec, cause):
    return WRITERS[spec["framework"]].probe_of(spec, cause)


def file_name(spec):
    return NAMES[spec["loop"]] + (".cu" if spec["framework"] == "cuda" else ".py")
