"""Talks to `troupe serve` with the client of ADK JS, `AdkApiClient` of @google/adk-devtools.

`check_js_client.py TROUPE FOLDER`: fetches the pinned packages from npm into FOLDER unless they are
there. The client alone is loaded, as the rest of its package needs drivers of databases. Ends with
77 if there is no Node or npm cannot be reached.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "pages"))

from check_server_page import Server, write_agents

CLIENT = "@google/adk-devtools@2.0.0"
PINNED = {"@google/genai": "2.9.0"}
SKIPPED = 77
UNREACHABLE = ("enotfound", "econn", "etimedout", "eai_again", "network", "proxy")


def npm(folder, *arguments):
    done = subprocess.run(["npm", *arguments, "--no-audit", "--no-fund", "--loglevel", "error",
                           "--fetch-retries", "1"],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return done.stdout
    print(done.stdout)
    if any(word in done.stdout.lower() for word in UNREACHABLE):
        skip("npm cannot be reached, so there is no client of ADK JS")
    sys.exit("npm " + " ".join(arguments) + " fails")


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def install(folder):
    """Returns the file of the client."""
    done = folder / "installed"
    wanted = CLIENT + json.dumps(PINNED)
    if not done.exists() or done.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": PINNED}))
        npm(folder, "install", "--ignore-scripts")
        packed = npm(folder, "pack", "--silent", CLIENT).split()[-1]
        with tarfile.open(folder / packed) as archive:
            archive.extractall(folder, filter="data")
        done.write_text(wanted)
    return folder / "package/dist/esm/server/adk_api_client.js"


def main():
    troupe, folder = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    client = install(folder)
    with tempfile.TemporaryDirectory() as made:
        write_agents(pathlib.Path(made), model_port=1)
        with contextlib.closing(Server(troupe, pathlib.Path(made), "--artifacts",
                                       "memory:")) as server:
            failed = subprocess.run(["node", HERE / "use_js_client.mjs", client,
                                     server.address]).returncode
    sys.exit(failed)


main()
