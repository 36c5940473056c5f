"""Follows docs/tutorial.md literally: writes its files and runs its commands, in one shell.

A block of ```sh is run. A block with a file name, such as ```cpp main.cpp, is that file. A block
without a language is the output of the commands before it, where … stands for anything. The model
is a server of this test, in place of the port 8080.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from model_server import ModelServer

END_OF_BLOCK = "== end of block"


class Block:
    def __init__(self, kind, name, text, line):
        self.kind, self.name, self.text, self.line = kind, name, text, line


def blocks_of(page):
    found, lines = [], page.splitlines()
    begin = None
    for number, line in enumerate(lines, 1):
        if begin is None and line.startswith("```"):
            kind, _, name = line[3:].strip().partition(" ")
            begin = number
        elif begin is not None and line == "```":
            found.append(Block(kind, name, "\n".join(lines[begin:number - 1]) + "\n", begin))
            begin = None
    return found


def shell_script(blocks):
    script = ["exec 2>&1"]
    for block in blocks:
        if block.name:
            script.append(f"cat > {block.name} <<'END_OF_FILE'\n{block.text}END_OF_FILE")
        elif block.kind == "sh":
            script.append(f"{block.text}echo '{END_OF_BLOCK}'")
    return "\n".join(script) + "\n"


def check_outputs(blocks, outputs):
    """Compares each promised output with the output of the commands before it."""
    outputs = iter(outputs)
    said = ""
    for block in blocks:
        if block.kind == "sh":
            said = next(outputs)
        elif not block.kind:
            form = "".join(".*" if part == "…" else re.escape(part)
                           for part in re.split("(…)", block.text))
            if not re.search(f"^{form}", said, re.MULTILINE):
                sys.exit(f"tutorial.md:{block.line}: should be\n{block.text}but is\n{said}")


def check_folder(made, example):
    """The folder that the page has made holds the files of the example."""
    for file in sorted(example.iterdir()):
        if not (made / file.name).exists() or (made / file.name).read_text() != file.read_text():
            sys.exit(f"The tutorial makes another {file.name} than {file}.")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("page", type=pathlib.Path)
    options.add_argument("example", type=pathlib.Path, help="folder that the tutorial makes")
    options.add_argument("build", type=pathlib.Path, help="build folder of troupe")
    given = options.parse_args()
    blocks = blocks_of(given.page.read_text())
    commands = [block for block in blocks if block.kind == "sh"]
    if len(commands) < 12 or len([block for block in blocks if block.name]) < 9:
        sys.exit("Few blocks were found: has their form changed?")
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        # The clone of the tutorial: `./dev demo` has built it already.
        clone = pathlib.Path(folder, "clone")
        (clone / "build").mkdir(parents=True)
        (clone / "build/release").symlink_to(given.build.resolve())
        (clone / "dev").write_text("#!/bin/sh\n")
        (clone / "dev").chmod(0o755)
        script = shell_script(blocks)
        if "localhost:8080" not in script:
            sys.exit("The server of the page has another URL now.")
        script = script.replace("localhost:8080", f"localhost:{model.port}")
        pathlib.Path(folder, "script").write_text(script)
        here = f"http://localhost:{model.port}"
        ran = subprocess.run(
            ["bash", "-e", str(pathlib.Path(folder, "script"))], cwd=clone, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=1500, check=False,
            env={**os.environ, "HOME": folder, "GOOGLE_GEMINI_BASE_URL": here,
                 "ANTHROPIC_BASE_URL": here})
        outputs = ran.stdout.split(f"{END_OF_BLOCK}\n")
        if ran.returncode != 0 or len(outputs) != len(commands) + 1:
            failed = commands[min(len(outputs), len(commands)) - 1]
            sys.exit(f"tutorial.md:{failed.line} ended with {ran.returncode}:\n{outputs[-1]}")
        check_outputs(blocks, outputs)
        check_folder(pathlib.Path(folder, "desk"), given.example)
        if set(model.forms) != {"openai", "gemini", "anthropic"}:
            sys.exit(f"The model was asked in these formats only: {set(model.forms)}")
    print(f"{len(commands)} blocks of commands")


main()
