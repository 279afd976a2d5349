#!/usr/bin/env python3
"""No line of C is longer than 140 columns, none of Markdown longer than 120.

usage: columns.py              check the project: one line for each that is too long, and exit status 1
       columns.py --fix        wrap the paragraphs and list items of Markdown that have such lines
       columns.py --wrap       the same of standard input, to standard output
       columns.py --self-test

Not counted: a line that is one address or the definition of one link; what a program wrote (EXCEPT). Tables and code are for
hands: a table that is too wide becomes a list.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMITS = {".md": 120, ".c": 140, ".h": 140, ".def": 140}
EXCEPT = re.compile(r"bench/results/.*/(?!README\.md$)|tests/golden/receipt\.md$")
ADDRESS = re.compile(r"\s*(\[[^]]+\]:\s*)?\S+$")
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)")
ALONE = re.compile(r"\s*(#|\||<|>|\[[^]]+\]:|!\[)|\s*$|---+$")  # headings, rows, HTML, quotes, definitions, pictures, nothing
SPECIAL = re.compile(r"([-*+>|]|#+|\d+[.)]|=+|---+)$|```|~~~|[#|<>]")  # what must not begin a line of a paragraph


def words(text):
    """Words of a paragraph. Code of up to 50 characters stays in one piece."""
    kept = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", "\0") if len(code.group()) <= 52 else code.group(), text)
    return [word.replace("\0", " ") for word in kept.split()]


def wrap(text, first="", rest="", limit=LIMITS[".md"]):
    """The paragraph in lines of at most `limit` columns."""
    lines, line = [], None
    for word in words(text):
        if line is None:
            line = first + word
        elif len(line) + 1 + len(word) <= limit:
            line += " " + word
        else:
            kept, _, last = line.rpartition(" ")
            if SPECIAL.match(word) and kept.strip() and kept != first.rstrip():
                lines.append(kept)
                line = f"{rest}{last} {word}"
            else:
                lines.append(line)
                line = rest + word
    return lines + ([line] if line is not None else [])


def wrapped(text):
    """Markdown with its paragraphs and items wrapped, where they have a line that is too long."""
    out, block, first, rest = [], [], "", ""
    fence, code = None, False

    def end():
        if any(len(line) > LIMITS[".md"] for line in block):
            body = " ".join([block[0][len(first):].strip()] + [line.strip() for line in block[1:]])
            out.extend(wrap(body, first, rest))
        else:
            out.extend(block)
        block.clear()

    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence or mark:
            end()
            out.append(line)
            fence = (None if mark and mark.group(1) == fence else fence) if fence else mark.group(1)
            continue
        indent = len(line) - len(line.lstrip())
        item = ITEM.match(line)
        code = not block and indent >= 4 and (code or not out or not out[-1].strip()) and not item
        if code or ALONE.match(line):
            end()
            out.append(line)
        elif item:
            end()
            first, rest = item.group(), " " * len(item.group())
            block.append(line)
        else:
            if not block:
                first = rest = " " * indent
            block.append(line)
    end()
    return "\n".join(out)


def files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.splitlines()]
    else:  # no clone: all but what is built
        paths = [path for path in root.rglob("*") if not {"build", "node_modules"} & set(path.relative_to(root).parts)]
    return sorted(path for path in paths if path.suffix in LIMITS and path.is_file()
                  and not EXCEPT.match(str(path.relative_to(root))))


def too_long(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > LIMITS[path.suffix] and not (path.suffix == ".md" and ADDRESS.match(line)):
            yield number, len(line)


def check(root):
    found = [f"{path.relative_to(root)}:{number}: {columns} columns, more than {LIMITS[path.suffix]}"
             for path in files(root) for number, columns in too_long(path)]
    print("\n".join(found)) if found else None
    return 1 if found else 0


def fix(root):
    for path in files(root):
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            if (new := wrapped(text)) != text:
                path.write_text(new, encoding="utf-8")


def self_test():
    long = "word " * 40
    address = f"[x]: https://example.org/{'y' * 120}"
    cases = [
        (long + "\nend\n", (long + "end").split()), ("short\nlines\n", None), (address, None),
        (f"    {long}\n", None), (f"```\n{long}\n```\n", None), (f"| {long} |\n", None), (f"# {long}\n", None),
        (f"- {long}\n  end\n- next\n", ("- " + long + "end - next").split()),
    ]
    wrong = 0
    for text, expected in cases:
        got = wrapped(text)
        good = got == text if expected is None else got.split() == expected and max(map(len, got.split("\n"))) <= 120
        wrong += not good
    got = wrapped("- " + "a" * 60 + " " + "b" * 50 + " - c `d e`" + " f" * 20)
    wrong += not all(line.startswith(("- a", "  ")) and not line.startswith("  - ") for line in got.split("\n"))
    wrong += "`d e`" not in got
    import tempfile  # only here
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.md").write_text(f"{long}\n{address}\n")
        (root / "b.c").write_text("/" * 141 + "\n" + "/" * 140 + "\n")
        seen = [(path.name, number) for path in files(root) for number, _ in too_long(path)]
        wrong += seen != [("a.md", 1), ("b.c", 1)]
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:] == ["--wrap"]:
        sys.exit(sys.stdout.write(wrapped(sys.stdin.read())) < 0)
    sys.exit(fix(ROOT) if sys.argv[1:] == ["--fix"] else check(ROOT))
