"""The models of drawn PyTorch programs, as text."""
from parts import filled

DOCS = {"mlp": "A classifier of feature vectors.", "cnn": "A classifier of small pictures.", "transformer": "A classifier of token sequences.",
        "lstm": "A recurrent classifier of series.", "gnn": "A graph network that classifies graphs of equal size.",
        "elementwise": "A field that relaxes, item by item.", "solver": "A Gaussian process, one length scale after the other.",
        "decode": "A language model that writes, token after token.", "diffusion": "A sampler that takes noise out of pictures."}
NAMES = {"mlp": "Layers", "cnn": "Pictures", "transformer": "Encoder", "lstm": "Series", "gnn": "Graphs", "elementwise": "Field",
         "solver": "Process", "decode": "Writer", "diffusion": "Sampler"}


def alone(flags):
    """Whether it goes on from its own state, and takes no batches."""
    return flags["model"] in ("elementwise", "solver", "decode", "diffusion")


def constants(flags):
    """Sizes, by name."""
    spec, model = flags.spec, flags["model"]
    lines = [f"BATCH = {flags.batch}", "CLASSES = 16"]
    width = spec.get("width")
    if model == "mlp" and flags.has("odd_shapes"):
        width -= 1
    if width:
        lines.append(f"WIDTH = {width}")
    if "depth" in spec:
        lines.append(f"DEPTH = {spec['depth']}")
    if model in ("transformer", "lstm", "decode"):
        length = spec["length"]
        lines.append(f"LENGTH = {length}")
        if model == "transformer":
            lines.append(f"INNER = 4 * WIDTH{' - 3' if flags.has('odd_shapes') else ''}")
    if model in ("cnn", "diffusion"):
        lines.append(f"SIDE = {spec['side']}")
    if model == "gnn":
        lines.append(f"NODES = {spec['nodes']}")
    if "items" in spec:
        lines.append(f"ITEMS = {spec['items']}")
    return "\n".join(lines) + "\n"


BY_HAND = '''def activation(x):
    inner = 0.79788456 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + torch.tanh(inner))
'''
LIBRARY = '''def activation(x):
    return F.gelu(x, approximate="tanh")
'''
ATTENTION_BY_HAND = '''        scores = q @ k.transpose(-1, -2) / 8
        mixed = torch.softmax(scores, -1) @ v
'''
ATTENTION = '''        mixed = F.scaled_dot_product_attention(q, k, v)
'''

MODELS = {"mlp": '''@ACTIVATION@

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = activation(layer(x))
@BARRIER@        return self.head(x)
''', "cnn": '''def unit(inputs, outputs, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [WIDTH << place for place in range(DEPTH)]
        units = [unit(3, WIDTH, 1)]
        for before, after in zip(widths, widths[1:]):
            units += [unit(before, before, 1), unit(before, after, 2)]
        self.units = nn.ModuleList(units)
        self.head = nn.Linear(widths[-1], CLASSES)

    def forward(self, x):
        for part in self.units:
            x = part(x)
@BARRIER@        return self.head(x.mean((2, 3)))
''', "transformer": '''@ACTIVATION@

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, WIDTH // 64, 64).permute(2, 0, 3, 1, 4)
@ATTENTION@        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(activation(self.up(self.second(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(8192, WIDTH)
        self.places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.tokens(x) + self.places[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
@BARRIER@        return self.head(x.mean(1))
''', "lstm": '''class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        hidden = x.new_zeros(x.shape[0], WIDTH)
        memory = x.new_zeros(x.shape[0], WIDTH)
        for place in range(LENGTH):
            hidden, memory = self.cell(x[:, place], (hidden, memory))
@BARRIER@        return self.head(hidden)
''', "gnn": '''class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, CLASSES)
        draws = torch.Generator().manual_seed(2)
        self.register_buffer("sources", torch.randint(0, NODES, (8 * NODES,), generator=draws))
        self.register_buffer("targets", torch.randint(0, NODES, (8 * NODES,), generator=draws))

    def forward(self, x):
        for layer in self.layers:
            sent = layer(x)
            heard = sent.new_zeros(sent.shape).index_add(1, self.targets, sent[:, self.sources])
            x = F.relu(sent + heard / 8)
@BARRIER@        return self.head(x.mean(1))
''', "elementwise": '''@ACTIVATION@

class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.randn(ITEMS))

    def step(self):
        for _ in range(DEPTH):
            self.state.copy_(torch.lerp(self.state, activation(self.state), 0.1))
        return self.state[:8] * 1.0
''', "solver": '''class Process(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("points", torch.randn(@MANY@ITEMS, 16))
        self.register_buffer("targets", torch.randn(@MANY@ITEMS, 1))
        self.register_buffer("ridge", 0.1 * torch.eye(ITEMS))
        self.register_buffer("scale", torch.ones(()))

    def covariance(self):
        return torch.exp(-torch.cdist(self.points, self.points) ** 2 / (32 * self.scale)) + self.ridge

    def step(self):
        self.scale.mul_(0.999)
        factor = torch.linalg.@CHOLESKY@
        solved = torch.cholesky_solve(self.targets, factor)
        return ((self.targets * solved).sum() + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum()).view(1)
''', "decode": '''class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(BATCH, WIDTH // 64, LENGTH, 64))
        self.register_buffer("values", torch.zeros(BATCH, WIDTH // 64, LENGTH, 64))

    def forward(self, x, place, mask):
        q, k, v = self.qkv(self.first(x)).view(BATCH, 1, 3, WIDTH // 64, 64).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, place, k.to(self.keys.dtype))
        self.values.index_copy_(2, place, v.to(self.values.dtype))
        mixed = F.scaled_dot_product_attention(q.to(self.keys.dtype), self.keys, self.values, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, 1, WIDTH))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(16384, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.last = nn.Linear(WIDTH, 16384)
        self.register_buffer("token", torch.zeros(BATCH, 1, dtype=torch.long))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("numbers", torch.arange(LENGTH))

    def step(self):
        mask = (self.numbers <= self.place)[None]
        x = self.tokens(self.token)
        for block in self.blocks:
            x = block(x, self.place, mask)
        self.token.copy_(self.last(x).argmax(-1))
        self.place.copy_((self.place + 1) % LENGTH)
        return self.token[:, 0].float()
''', "diffusion": '''class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Conv2d(4, WIDTH, 3, 1, 1)
        self.middle = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, 1, 1) for _ in range(4 * DEPTH))
        self.norms = nn.ModuleList(nn.GroupNorm(8, WIDTH) for _ in range(4 * DEPTH))
        self.end = nn.Conv2d(WIDTH, 4, 3, 1, 1)
        self.register_buffer("pictures", torch.randn(BATCH, 4, SIDE, SIDE))

    def step(self):
        x = self.start(self.pictures)
        for conv, norm in zip(self.middle, self.norms):
            x = x + F.silu(norm(conv(x)))
        self.pictures.mul_(0.99).sub_(0.01 * self.end(x).clamp(-3, 3))
        return self.pictures[:, 0, 0, 0] * 1.0
'''}


def text(flags):
    barrier = "            torch.cuda.synchronize()\n" if flags.has("barriers") else ""
    return filled(MODELS[flags["model"]], MANY="BATCH, " if flags.probe == "batch" else "", ACTIVATION=BY_HAND if flags.has("unfused") else LIBRARY, BARRIER=barrier,
                  ATTENTION=ATTENTION_BY_HAND if flags.has("unfused") else ATTENTION,
                  CHOLESKY="cholesky_ex(self.covariance()).L" if flags.probe in ("sync", "launch") else "cholesky(self.covariance())")


INPUTS = {"mlp": "torch.randn(count, WIDTH@DTYPE@)", "cnn": "torch.randn(count, 3, SIDE, SIDE@DTYPE@)",
          "transformer": "torch.randint(1, 8192, (count, LENGTH))", "lstm": "torch.randn(count, LENGTH, WIDTH@DTYPE@)",
          "gnn": "torch.randn(count, NODES, WIDTH@DTYPE@)"}


def examples(flags):
    if alone(flags):
        return ""
    dtype = ", dtype=torch.bfloat16" if flags.precision == "bf16" else ""
    inputs = filled(INPUTS[flags["model"]], DTYPE=dtype)
    return f"def examples(count):\n    return {inputs}, torch.randint(0, CLASSES, (count,))\n"
