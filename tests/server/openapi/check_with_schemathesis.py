"""Sends requests that are made from the OpenAPI document of `troupe serve`.

`check_with_schemathesis.py TROUPE ENVIRONMENT`: installs the pinned schemathesis from PyPI into the
virtual environment ENVIRONMENT unless it is there, and lets it check a server over a store in
memory. Ends with 77 if PyPI cannot be reached.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import venv

PINNED = ["schemathesis==4.32.5"]
SKIPPED = 77
SEED = 20261126
EXAMPLES = 8
UNREACHABLE = ("connection", "timed out", "name resolution", "proxy", "network is unreachable")
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance", "unsupported_method"]


def install(environment):
    """Returns the program of the environment."""
    done = environment / "installed"
    wanted = "\n".join(PINNED)
    program = environment / "bin" / "schemathesis"
    if done.exists() and done.read_text() == wanted:
        return program
    if not (environment / "bin" / "python").exists():
        venv.create(environment, with_pip=True)
    pip = subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "1",
         "--timeout", "15", *PINNED],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if pip.returncode != 0:
        print(pip.stdout)
        if any(word in pip.stdout.lower() for word in UNREACHABLE):
            print("skipped: PyPI cannot be reached, so there is no schemathesis")
            sys.exit(SKIPPED)
        sys.exit("pip cannot install " + ", ".join(PINNED))
    done.write_text(wanted)
    return program


def check(schemathesis, address, folder):
    hooks = pathlib.Path(__file__).resolve().parent
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(hooks)}
    return subprocess.run(
        [schemathesis, "run", address + "/openapi.json", "--url", address, "--no-color",
         "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing",
         "--max-examples", str(EXAMPLES), "--seed", str(SEED), "--request-timeout", "30",
         "--warnings", "off", "--generation-database", "none"],
        cwd=folder, env=environment).returncode


def main():
    troupe, environment = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    schemathesis = install(environment)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([troupe, "init", folder + "/hello", "--no-program"], check=True,
                       stdout=subprocess.DEVNULL)
        with subprocess.Popen([troupe, "serve", folder, "--store", "memory:", "--port", "0"],
                              stdout=subprocess.PIPE, text=True) as server:
            address = server.stdout.readline().split()[-1]
            try:
                failed = check(schemathesis, address, folder)
            finally:
                server.send_signal(signal.SIGTERM)
            if server.wait() != 128 + signal.SIGTERM:
                sys.exit(f"the server ended with {server.returncode}")
    sys.exit(failed)


main()
