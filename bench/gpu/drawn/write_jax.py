"""Programs in JAX."""
from parts import Flags, beside, filled, host_code, indented, program, reported

IMPORTS = "import jax\nimport jax.numpy as jnp\nimport numpy\n"
MLP = '''def start(key):
    keys = jax.random.split(key, DEPTH)
    return [jax.random.normal(key, (WIDTH, WIDTH), @DTYPE@) / WIDTH ** 0.5 for key in keys]


def network(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return x


def loss(weights, x):
    return jnp.mean(jnp.square(network(weights, x) - x), axis=1, dtype=jnp.float32)


@JIT@def train(weights, x):
    values, pull = jax.vjp(lambda weights: loss(weights, x), weights)
    gradients = pull(jnp.full(values.shape, 1 / len(values), values.dtype))[0]
    return [weight - 1e-3 * gradient.astype(weight.dtype) for weight, gradient in zip(weights, gradients)], values


@JIT@def apply(weights, x):
    return weights, jnp.max(network(weights, x), axis=1).astype(jnp.float32)
'''
FIELD = '''@JIT@def relax(state):
    for _ in range(DEPTH):
        inner = 0.79788456 * (state + 0.044715 * state * state * state)
        state = state + 0.1 * (0.5 * state * (1 + jnp.tanh(inner)) - state)
    return state, state[:8]
'''


SEVERAL = '''AT_ONCE = 8


@jax.jit
def several(kept@GIVEN@):
    def once(carried, _):
        kept@GIVEN@ = jax.lax.optimization_barrier(carried)  # each time all of it is computed
        kept, values = @CALL@
        return (kept@GIVEN@), values
    carried, each = jax.lax.scan(once, (kept@GIVEN@), length=AT_ONCE)
    return @KEPT@, [each[which] for which in range(AT_ONCE)]
'''


def probe_of(spec, cause):
    several = not {"new_shapes", "eager"} & spec["faults"].keys()
    possible = {"sync": True, "batch": spec["model"] == "mlp", "launch": several, "host": several}
    return cause if possible.get(cause) else None


def source(spec, without=frozenset(), probe=None):
    flags = Flags(spec, without, probe)
    functions, host_setup, places = host_code(flags)
    mlp = flags["model"] == "mlp"
    jit = "" if flags.has("eager") else "@jax.jit\n"
    constants = f"BATCH = {flags.batch}\nDEPTH = {spec['depth']}\n" + (f"WIDTH = {spec['width']}\n" if mlp else f"ITEMS = {spec['items']}\n")
    dtype = "jnp.float32" if spec["precision"] in ("tf32", "fp32") else "jnp.bfloat16"
    text = filled(MLP if mlp else FIELD, DTYPE=dtype, JIT=jit)
    setup = f"key = jax.random.key({spec['style'] % 1000})\n"
    setup += (f"weights = start(key)\nx = jax.random.normal(key, (BATCH, WIDTH), {dtype})\n" if mlp
              else "state = jax.random.normal(key, (ITEMS,))\n")
    loop = places.get("host_before", "")
    if flags.drawn("chatty"):
        setup += filled("rows = list(numpy.ones((@N@, 64), numpy.float32))\n", N=flags.knobs["chatty"])
        loop += ("block = jnp.stack([jax.device_put(row) for row in rows])\n" if flags.has("chatty")
                 else "block = jax.device_put(numpy.stack(rows))\n")
    more, after = beside(flags, "jnp.ones(@N@)", "numpy.asarray(memory)", "jax.device_put(kept)", "float(values[which % len(values)])")
    setup += more
    taken, name = ("x", "x") if mlp else ("state", "state")
    if flags.drawn("new_shapes"):
        every = flags.knobs["new_shapes"]
        size = "BATCH" if mlp else "ITEMS"
        cut = f"{size} - 8 * (step // {every} % ({size} // 16))"
        if flags.has("new_shapes"):
            loop += f"given = {taken}[:{cut}]\n"
        else:  # padded to what is compiled already; what cuts it is no part of what compiling takes
            loop += f"count = {cut}\ngiven = {taken}[:{size} - 8]\n"
        name = "given"
    kept = "weights" if mlp else "state"
    call = f"{'train' if spec['loop'] == 'train' else 'apply'}(weights, {name})" if mlp else f"relax({'given' if flags.drawn('new_shapes') else 'state'})"
    work = f"{'_' if flags.drawn('new_shapes') and not mlp else kept}, values = {call}\n"
    after = places.get("host_after", "") + places.get("logging", "") + after
    after += reported(flags, "shown.append(float(values.mean()))\n")
    if probe in ("launch", "host"):  # the same steps by one call; what is beside them stays as often
        text += "\n\n" + filled(SEVERAL, GIVEN=", x" if mlp else "", CALL=call.replace(f"({kept}", "(kept"), KEPT="carried[0]" if mlp else "carried")
        loop = f"for _ in range(AT_ONCE):\n{indented(loop)}" if loop else ""
        loop += f"{kept}, each = several({kept}{', x' if mlp else ''})\nfor values in each:\n" + indented(after + "step += 1\n")
        loop += "if not progress.step(AT_ONCE * BATCH):\n    break\n"
    else:
        loop += work + after + "if not progress.step(BATCH):\n    break\nstep += 1\n"
    main = ("def main(progress):\n" + indented(setup + host_setup + "shown = []\nstep = 0\nwhile True:\n" + indented(loop)
                                               + "print(\"last\", shown[-1:], file=sys.stderr)\n"))
    doc = "A network of equal layers, in JAX." if mlp else "A field that relaxes, in JAX."
    return program(doc, IMPORTS, [constants, text, functions, main])
