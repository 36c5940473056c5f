"""PostgreSQL, `troupe serve` and nginx as child processes. All of them end with the test."""

import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

SKIPPED = 77
# Finds a process that hangs.
SECONDS = 60
TOKEN = "test-0123456789abcdef"
DEPLOYMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "deployment"


class Failed(Exception):
    """A condition that did not hold."""


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def until(condition, what, seconds=SECONDS):
    """Asks until the condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} seconds: {what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def find_postgres():
    """Returns the folder of the newest programs of PostgreSQL."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"),
                   key=lambda each: int(each.parent.parent.name))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return pathlib.Path(initdb).parent if initdb else skip("no PostgreSQL server is installed")


def find_nginx():
    return shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or skip(
        "nginx is not installed")


def start(command, log, user=None):
    """Starts a process that is killed with the thread that has started it."""
    rights = ["setpriv", "--pdeathsig", "KILL"]
    if user is not None:
        rights += ["--reuid", user, "--regid", user, "--clear-groups"]
    with open(log, "ab") as output:
        return subprocess.Popen([*rights, *command], stdout=subprocess.PIPE, stderr=output,
                                cwd="/")


class Postgres:
    """A database cluster of its own, reached by a socket in its folder."""

    def __init__(self, folder):
        self.programs = find_postgres()
        self.folder = folder / "postgres"
        self.folder.mkdir()
        self.user = None
        if os.geteuid() == 0: # PostgreSQL refuses to run as root.
            self.user = "postgres" if "postgres" in {each.pw_name for each in pwd.getpwall()} \
                else "nobody"
            shutil.chown(self.folder, self.user)
        self.url = f"postgres://postgres@/postgres?host={self.folder}"
        made = start([self.programs / "initdb", f"--pgdata={self.folder / 'data'}", "--no-sync",
                      "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"],
                     folder / "initdb.log", self.user)
        if made.wait(SECONDS) != 0:
            raise Failed((folder / "initdb.log").read_text())
        self.log = folder / "postgres.log"
        self.begin()

    def begin(self):
        # No power fails here: fsync only costs time.
        self.process = start([self.programs / "postgres", "-D", self.folder / "data",
                              "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"],
                             self.log, self.user)
        until(self.answers, "PostgreSQL is ready")

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"PostgreSQL has ended:\n{self.log.read_text()}")
        return subprocess.run([self.programs / "pg_isready", "-q", "-h", self.folder, "-U",
                               "postgres"], check=False).returncode == 0

    def restart(self):
        """Does the work of `pg_ctl restart -m fast`."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(SECONDS)
        self.begin()

    def ask(self, statement):
        return subprocess.run([self.programs / "psql", "-h", self.folder, "-U", "postgres", "-Atc",
                               statement], check=True, capture_output=True,
                              text=True).stdout.strip()

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(SECONDS)


class Server:
    """One `troupe serve`, which keeps its port when it is started again."""

    def __init__(self, program, folder, number, store):
        self.number = number
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.folder = folder
        self.command = [program, "serve", folder / "agents", "--port", str(self.port),
                        "--store", store, "--token-file", folder / "tokens",
                        "--trust-proxy", "127.0.0.1", "--recover"]
        self.logs = [] # One for each start.
        self.begin()

    def begin(self):
        self.logs.append(self.folder / f"server{self.number}.{len(self.logs)}.log")
        self.process = start(self.command, self.logs[-1])
        line = self.process.stdout.readline().decode()
        if " on " not in line:
            raise Failed(f"server {self.number} does not start: {self.logs[-1].read_text()}")

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)

    def close(self):
        """Ends the server as systemd does, and returns its exit code."""
        self.process.terminate()
        return self.process.wait(SECONDS)

    def ask(self, path):
        sent = urllib.request.Request(f"http://{self.address}{path}",
                                      headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(sent, timeout=SECONDS) as answer:
            return json.load(answer)


class Nginx:
    """nginx with docs/deployment/nginx.conf: on one port as it is there, on another one without the
    line that keeps a session at one server."""

    EXAMPLES = ("10.0.0.11:8000", "10.0.0.12:8000", "10.0.0.13:8000")

    def __init__(self, folder, servers):
        self.sticky, self.any = free_port(), free_port()
        self.log = folder / "access.log"
        self.errors = folder / "nginx.log"
        site = (DEPLOYMENT / "nginx.conf").read_text()
        for example, server in zip(self.EXAMPLES, servers, strict=True):
            site = replace_once(site, example, server.address)
        site = "\n".join(line for line in site.splitlines() if "ssl_certificate" not in line)
        maps, rest = site.split("upstream troupe {")
        rest = "upstream troupe {" + rest
        spread = replace_once(rest, "    hash $troupe_session consistent;\n", "")
        spread = replace_once(spread, "upstream troupe {", "upstream troupe_any {")
        spread = replace_once(spread, "http://troupe;", "http://troupe_any;")
        written = folder / "nginx.conf"
        written.write_text(f"""
daemon off;
worker_processes 1;
pid {folder / 'nginx.pid'};
error_log {self.errors};
events {{ worker_connections 1024; }}
http {{
log_format short '$server_port $troupe_session $status $uri $upstream_addr';
access_log {self.log} short;
client_body_temp_path {folder / 'bodies'};
proxy_temp_path {folder / 'answers'};
fastcgi_temp_path {folder / 'fastcgi'};
uwsgi_temp_path {folder / 'uwsgi'};
scgi_temp_path {folder / 'scgi'};
{maps}
{on_port(rest, self.sticky)}
{on_port(spread, self.any)}
}}
""")
        self.process = start([find_nginx(), "-c", written, "-e", self.errors], self.errors)
        until(self.answers, "nginx is ready")

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"nginx has ended:\n{self.errors.read_text()}")
        with socket.socket() as reached:
            return reached.connect_ex(("127.0.0.1", self.any)) == 0

    def servers_of_sessions(self, port):
        """Returns {session: addresses} of the requests so far that came to the port."""
        found = {}
        for line in self.log.read_text().splitlines():
            came_to, session, _, uri, addresses = line.split(" ", 4)
            if "/sessions/" in uri and uri.split("/")[6] != session:
                raise Failed(f"nginx takes {session} for the session of {uri}")
            if came_to == str(port):
                found.setdefault(session, set()).update(addresses.split(", "))
        return found

    def close(self):
        self.process.terminate()
        self.process.wait(SECONDS)


def replace_once(text, old, new):
    if text.count(old) != 1:
        raise Failed(f"docs/deployment/nginx.conf has {text.count(old)} times: {old}")
    return text.replace(old, new)


def on_port(site, port):
    return replace_once(site, "listen 443 ssl;", f"listen 127.0.0.1:{port};")
