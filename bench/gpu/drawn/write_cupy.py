"""Programs in CuPy."""
from parts import Flags, beside, filled, host_code, indented, program, reported

IMPORTS = "import cupy\nimport numpy\n"
# Each: (what is kept, a step that gives `values`)
STEPS = {
    "chain": ("state = cupy.random.standard_normal(ITEMS, dtype=cupy.float32)\n",
              "for _ in range(DEPTH):\n    state = @RELAX@(state)\n@BARRIER@values = state[:8]\n"),
    "jacobi": ("grid = cupy.random.standard_normal((ITEMS, ITEMS), dtype=cupy.float32)\n",
               "for _ in range(DEPTH):\n    inner = mean(grid[1:-1, :-2], grid[1:-1, 2:], grid[:-2, 1:-1], grid[2:, 1:-1])\n"
               "    grid[1:-1, 1:-1] = inner\n@BARRIER@values = grid[1, :8]\n"),
    "solver": ("points = cupy.random.standard_normal((@MANY@ITEMS, 16), dtype=cupy.float32)\n"
               "targets = cupy.random.standard_normal((@MANY@ITEMS, 1), dtype=cupy.float32)\nridge = 0.1 * cupy.eye(ITEMS, dtype=cupy.float32)\n",
               "products = points @ points.swapaxes(-1, -2)\nsquares = (points * points).sum(-1)\n"
               "factor = cupy.linalg.cholesky(covariance(products, squares[..., :, None], squares[..., None, :], ridge))\n"
               "values = factor[..., 0, 0].ravel()[:1] + targets[..., :8, 0].ravel()[:8]\n"),
    "scatter": ("weights = cupy.random.standard_normal(ITEMS, dtype=cupy.float32)\n"
                "targets = cupy.random.randint(0, ITEMS // 8, ITEMS)\n",
                "heard = cupy.zeros(ITEMS // 8, dtype=cupy.float32)\nfor _ in range(DEPTH):\n"
                "    cupy.add.at(heard, targets, weights * heard[targets] + weights)\n    heard = cupy.tanh(heard)\n@BARRIER@values = heard[:8]\n"),
}
MEAN = '''def mean(left, right, above, below):
    return (left + right + above + below) * 0.25
'''
RELAX = '''def relax(state):
    inner = 0.79788456 * (state + 0.044715 * state * state * state)
    return state + 0.1 * (0.5 * state * (1 + cupy.tanh(inner)) - state)
'''
COVARIANCE = '''def covariance(products, rows, columns, ridge):
    return cupy.exp(-(rows + columns - 2 * products) / 32) + ridge
'''
FUNCTIONS = {"chain": RELAX, "jacobi": MEAN, "solver": COVARIANCE}
# A step that a graph takes over: what it goes on with lies where it did
CAPTURED = {"chain": "fresh = state\nfor _ in range(DEPTH):\n    fresh = @RELAX@(fresh)\nstate[...] = fresh\nvalues = state[:8]\n"}
REPLAYED = '''def replayed(update):
    """The kernels of an update as one graph, and what it returns."""
    cupy.cuda.get_current_stream().synchronize()
    cupy.cuda.Stream(non_blocking=True).use()
    for _ in range(3):
        update()
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    stream.begin_capture()
    values = update()
    return stream.end_capture(), values
'''
DOCS = {"chain": "A field that relaxes, in CuPy.", "jacobi": "Heat in a plate, in CuPy.", "solver": "Covariances and their factors, in CuPy.",
        "scatter": "Messages on a graph, in CuPy."}


def capturable(spec):
    """CuPy captures no cuBLAS."""
    return spec["model"] != "solver" and not {"barriers", "no_pool"} & spec["faults"].keys()


def probe_of(spec, cause):
    possible = {"sync": True, "batch": spec["model"] == "solver", "launch": capturable(spec), "host": True,
                "memory": spec["model"] in FUNCTIONS and "unfused" not in spec["faults"]}
    return cause if possible.get(cause) else None


def source(spec, without=frozenset(), probe=None):
    flags = Flags(spec, without, probe)
    functions, host_setup, places = host_code(flags)
    setup, step = STEPS[flags["model"]]
    captured = probe in ("launch", "host") and capturable(spec)
    step = CAPTURED.get(flags["model"], step) if captured else step
    barrier = "    cupy.cuda.get_current_stream().synchronize()\n" if flags.has("barriers") else ""
    setup, step = filled(setup, MANY="BATCH, " if probe == "batch" else ""), filled(step, RELAX="relax", BARRIER=barrier)
    fused = flags.drawn("unfused") and not flags.has("unfused") or probe == "memory"
    function = "@cupy.fuse()\n" * (fused and flags["model"] in FUNCTIONS) + FUNCTIONS.get(flags["model"], "")
    loop = places.get("host_before", "")
    if flags.drawn("pageable"):
        count = max(1, flags.knobs["pageable"] // 4)
        setup += f"extra = numpy.ones({count}, numpy.float32)\ntotal = cupy.zeros((), cupy.float32)\nplace = cupy.empty({count}, cupy.float32)\n"
        if not flags.has("pageable"):
            setup += (f"locked = numpy.frombuffer(cupy.cuda.alloc_pinned_memory({4 * count}), numpy.float32, {count})\nlocked[...] = extra\n"
                      "extra = locked\n")
        loop += "place.set(extra)\ntotal += place.sum()\n"
    if flags.drawn("chatty"):
        setup += filled("rows = list(numpy.ones((@N@, 64), numpy.float32))\nseen = cupy.zeros((), cupy.float32)\n", N=flags.knobs["chatty"])
        loop += ("block = cupy.stack([cupy.asarray(row) for row in rows])\n" if flags.has("chatty")
                 else "block = cupy.asarray(numpy.stack(rows))\n") + "seen += block.sum()\n"
    more, after = beside(flags, "cupy.ones(@N@, cupy.float32)", "cupy.asnumpy(memory)", "cupy.asarray(kept)", "float(values[which % len(values)])")
    setup += more
    if flags.has("no_pool"):
        setup += "cupy.cuda.set_allocator(None)\n"
    if captured:
        functions += REPLAYED
        setup += "\ndef update():\n" + indented(step + "return values\n") + "\ngraph, values = replayed(update)\n"
        step = "graph.launch(cupy.cuda.get_current_stream())\n"
    loop += step + places.get("host_after", "") + places.get("logging", "") + after
    loop += reported(flags, "shown.append(float(values.mean()))\n")
    loop += "if not progress.step(BATCH):\n    break\nstep += 1\n"
    constants = f"BATCH = {flags.batch}\nITEMS = {spec['items']}\nDEPTH = {spec['depth']}\n"
    main = ("def main(progress):\n" + indented(setup + host_setup + "shown = []\nstep = 0\nwhile True:\n" + indented(loop)
                                               + "print(\"last\", shown[-1:], file=sys.stderr)\n"))
    return program(DOCS[flags["model"]], IMPORTS, [constants, function, functions, main])
