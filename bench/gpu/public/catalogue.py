"""Public programs at pinned commits, run as their authors wrote them: (what they are run with) and nothing else is ours."""
import collections
import os
import subprocess
import sys

REPOSITORIES = {
    "examples": ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8"),
    "minGPT": ("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26"),
    "nanoGPT": ("karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291"),
    "jax": ("jax-ml/jax", "cec06d116c05f0d52adfceee3d3b730fdbcb0ce5"),
    "HeCBench": ("zjin-lcf/HeCBench", "f27000a5188f8ac79bd43fc95a1b3f890c18823d"),
    "char-rnn": ("karpathy/char-rnn", "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e"),
    "LLMs-from-scratch": ("rasbt/LLMs-from-scratch", "28c65cdfbc3338e2e040016eea4b7fdf556e4d57"),
    "makemore": ("karpathy/makemore", "988aa59e4d8fefa526d06f3b453ad116258398d4"),
    "ng-video-lecture": ("karpathy/ng-video-lecture", "52201428ed7b46804849dea0b3ccf0de9df1a5c3"),
    "PyTorch-GAN": ("eriklindernoren/PyTorch-GAN", "36d3c77e5ff20ebe0aeefd322326a134a279b93e"),
    "minDiffusion": ("cloneofsimo/minDiffusion", "00a3c8066d25a34d3d472ef6c87c7b6b238ea444"),
    "pytorch-image-models": ("huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d"),
}
# What is taken of each; the rest is not needed and can be large.
PARTS = {
    "examples": ["imagenet", "dcgan", "mnist", "vae", "word_language_model", "distributed/ddp-tutorial-series", "distributed/FSDP2",
                 "mnist_rnn", "siamese_network",
                 ":(exclude)word_language_model/data/wikitext-2/train.txt"],  # 10 MB; data.py takes the validation text ten times for it
    "minGPT": ["mingpt", "projects"],
    "nanoGPT": [".", ":(exclude)assets"],
    "jax": ["examples"],
    "HeCBench": [f"src/{name}-cuda" for name in ("nbody", "fft", "lulesh", "jacobi", "blas-gemm", "stencil3d")],
    "char-rnn": ["data/tinyshakespeare/input.txt"],
    "LLMs-from-scratch": ["ch05/10_llm-training-speed"],
    "makemore": ["makemore.py", "names.txt"],
    "ng-video-lecture": ["gpt.py", "input.txt"],
    "PyTorch-GAN": ["implementations/gan", "implementations/pix2pix"],
    "minDiffusion": ["superminddpm.py"],
    "pytorch-image-models": ["benchmark.py", "timm"],
}

# folder: where it runs, below the gathered sources. command: {python} and {gathered} are filled in. before: run first, not
# observed. seconds: after so many it gets an interrupt, as from a keyboard. kind: what it is, for the table. group: "search" of those
# that bench/gpu/public/search compares searches by.
Program = collections.namedtuple("Program", "folder command before gpus seconds kind group", defaults=(None, 1, 60, "PyTorch training", ""))

CUDA = "make -s ARCH=sm_{capability} program=main"
LINK_MNIST = "mkdir -p {folder} && ln -sfn {{gathered}}/examples/data/MNIST {folder}/MNIST"
PROGRAMS = {
    "imagenet_fake": Program("examples/imagenet", "{python} main.py --dummy -a resnet50 --epochs 1 --gpu 0", seconds=40),
    "imagenet_jpeg": Program("examples/imagenet", "{python} main.py {gathered}/data/jpeg -a resnet18 --epochs 3 --gpu 0"),
    "dcgan": Program("examples/dcgan", "{python} main.py --dataset fake --accel"),
    "mnist": Program("examples/mnist", "{python} main.py --epochs 3"),
    "vae": Program("examples/vae", "{python} main.py --epochs 5"),
    "word_lstm": Program("examples/word_language_model", "{python} main.py --accel --epochs 2"),
    "word_transformer": Program("examples/word_language_model", "{python} main.py --accel --epochs 2 --model Transformer --lr 5"),
    "mingpt_adder": Program("minGPT/projects/adder", "{python} adder.py --trainer.max_iters=2000"),
    "mingpt_chars": Program("minGPT/projects/chargpt", "{python} chargpt.py --trainer.max_iters=400",
                            "cp {gathered}/char-rnn/data/tinyshakespeare/input.txt ."),
    "nanogpt_eager": Program("nanoGPT", "{python} train.py config/train_shakespeare_char.py --compile=False --max_iters=2000",
                             "cp {gathered}/char-rnn/data/tinyshakespeare/input.txt data/shakespeare_char/ && "
                             "{python} data/shakespeare_char/prepare.py"),
    # its default, GPT-2 of 124 million parameters and 50304 tokens, on letters in place of OpenWebText (54 GB)
    "nanogpt_gpt2": Program("nanoGPT", "{python} train.py --dataset=letters --compile=False --gradient_accumulation_steps=4 --eval_iters=20",
                            "cp {gathered}/char-rnn/data/tinyshakespeare/input.txt data/shakespeare_char/ && "
                            "{python} data/shakespeare_char/prepare.py && mkdir -p data/letters && "
                            "cp data/shakespeare_char/train.bin data/shakespeare_char/val.bin data/letters/"),
    "nanogpt_compiled": Program("nanoGPT", "{python} train.py config/train_shakespeare_char.py --max_iters=1000",
                                "test -e data/shakespeare_char/train.bin", seconds=100),
    "nanogpt_sample": Program("nanoGPT", "{python} sample.py --out_dir=out-shakespeare-char --num_samples=5",
                              "test -e out-shakespeare-char/ckpt.pt", kind="PyTorch generation"),
    "trl_sft": Program("data", "{python} -m trl.scripts.sft --model_name_or_path gpt2 --dataset_name plays --output_dir out --bf16 False "
                       "--max_length 1024 --per_device_train_batch_size 8 --num_train_epochs 20 --report_to none --save_strategy no",
                       kind="Hugging Face trainer"),  # of TRL 1.16.0 (PyPI)
    "jax_mnist": Program("jax", "{python} -m examples.mnist_classifier", kind="JAX training"),
    "jax_scratch": Program("jax", "{python} -m examples.mnist_classifier_fromscratch", kind="JAX training"),
    "nbody": Program("HeCBench/src/nbody-cuda", "./main 64000 300", CUDA, kind="CUDA C++"),
    "fft": Program("HeCBench/src/fft-cuda", "./main 3 20000", CUDA, kind="CUDA C++"),
    "lulesh": Program("HeCBench/src/lulesh-cuda", "./lulesh -i 2000 -s 96 -r 11 -b 1 -c 1", "make -s ARCH=sm_{capability} program=lulesh",
                      kind="CUDA C++"),
    "jacobi": Program("HeCBench/src/jacobi-cuda", "./main", CUDA, kind="CUDA C++"),
    "gemm": Program("HeCBench/src/blas-gemm-cuda", "./main 8192 8192 8192 100", CUDA, kind="CUDA C++"),
    "stencil3d": Program("HeCBench/src/stencil3d-cuda", "./main 512 5000", CUDA, kind="CUDA C++"),
    "ddp": Program("examples/distributed/ddp-tutorial-series", "{python} multigpu.py 100 1000", gpus=2),
    "fsdp2": Program("examples/distributed/FSDP2", "{python} -m torch.distributed.run --standalone --nproc-per-node=2 example.py", gpus=2),
    "gpt": Program("LLMs-from-scratch/ch05/10_llm-training-speed", "{python} 00_orig.py",
                   "cp {gathered}/char-rnn/data/tinyshakespeare/input.txt middlemarch.txt", seconds=100),  # no download
    "gpt_ddp": Program("LLMs-from-scratch/ch05/10_llm-training-speed",
                       "{python} -m torch.distributed.run --standalone --nproc-per-node=2 02_opt_multi_gpu_ddp.py",
                       "cp {gathered}/char-rnn/data/tinyshakespeare/input.txt middlemarch.txt", gpus=2, seconds=100),  # no download
    "makemore_gru": Program("makemore", "{python} makemore.py --type gru --device cuda", kind="RNN, a cell a character", group="search"),
    "lecture_gpt": Program("ng-video-lecture", "{python} gpt.py", kind="transformer", group="search"),
    "siamese": Program("examples/siamese_network", "{python} main.py --epochs 200", kind="CNN, pairs of one worker", group="search"),
    "mnist_rnn": Program("examples/mnist_rnn", "{python} main.py --accel --epochs 200", kind="LSTM, one worker", group="search"),
    "mlp_gan": Program("PyTorch-GAN/implementations/gan", "{python} gan.py", LINK_MNIST.format(folder="../../data/mnist"),
                       kind="GAN of small MLPs, no worker", group="search"),
    "pix2pix": Program("PyTorch-GAN/implementations/pix2pix", "{python} pix2pix.py --dataset_name facades", kind="U-Net", group="search"),
    "minddpm": Program("minDiffusion", "{python} superminddpm.py", "mkdir -p contents && " + LINK_MNIST.format(folder="data"),
                       kind="diffusion, a CNN", group="search"),
    # bf16 and fused attention already: little should be left to save
    "timm_vit": Program("pytorch-image-models", "{python} benchmark.py --bench inference --model vit_base_patch16_224 --amp "
                        "--amp-dtype bfloat16 --num-bench-iter 1000000", kind="inference in bf16", group="search"),
}


def prepared(sources, name, capability=""):
    """(command, folder, environment) of a program whose `before` has run; CalledProcessError where that fails. Its data are there (data.make)."""
    program, folder = PROGRAMS[name], sources / PROGRAMS[name].folder
    words = {"python": sys.executable, "gathered": sources, "capability": capability}
    if program.before:
        subprocess.run(["sh", "-c", program.before.format(**words)], cwd=folder, check=True, capture_output=True, text=True)
    own = {"PYTHONPATH": str(sources / program.folder.split("/")[0])} if program.folder.startswith(("minGPT", "jax")) else {}
    return program.command.format(**words).split(), folder, {**os.environ, **own, "MPLBACKEND": "agg", "HF_HUB_OFFLINE": "1"}
