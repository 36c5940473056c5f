"""Checks that several `troupe serve` on one PostgreSQL, behind nginx, are one service.

`check_replicas.py TROUPE [SEED]`: three servers get appends and runs on shared sessions, users and
apps. Twice a server is killed in the middle of runs, and the database is restarted. First nginx
keeps each session at one server, then it does not. At the end nothing that was acknowledged is
missing or there twice, and other processes have ended the runs of the killed servers. Ends with 77
if PostgreSQL or nginx is not installed.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from services import SECONDS, TOKEN, Failed, Nginx, Postgres, Server, find_nginx, \
    find_postgres, until
from traffic import AGENTS, Appender, Broken, Place, Record, Runner, answers_of, text_of

# A look each two seconds, the run itself, and a busy machine.
RECOVERY_SECONDS = 40
# docs/operations.md tells operators this number.
CONNECTIONS_PER_SERVER = 7
APPS = ("desk", "slow")
DESK = [Place("desk", user, name) for user in ("ann", "bob") for name in ("d1", "d2", "d3")]
# Their second agent answers after three seconds.
SLOW = {"sticky": Place("slow", "ann", "s1"), "spread": Place("slow", "bob", "s2")}


def write_agents(folder):
    for app, waits in (("desk", [50, 100, 50]), ("slow", [0, 3000, 0])):
        home = folder / "agents" / app
        home.mkdir(parents=True)
        agents = "".join(
            f"  - {{name: {name}, model: 'scripted:replies.json', include_contents: none, "
            f"output_key: {name}}}\n" for name in AGENTS)
        (home / "root_agent.yaml").write_text(
            f"name: chain\nagent_class: SequentialAgent\nsub_agents:\n{agents}")
        (home / "replies.json").write_text(json.dumps(
            {name: [{"text": f"{name} says", "latency_ms": wait}]
             for name, wait in zip(AGENTS, waits)}))


class Cut(Runner):
    """A run that is under way when its server is killed."""

    def __init__(self, record, place, servers, name):
        super().__init__(record, [place], name, 0)
        self.place = place
        self.servers = servers
        self.victim = None
        self.invocation = None

    def run(self):
        body = {"appName": self.place.app, "userId": self.place.user, "sessionId": self.place.id,
                "newMessage": {"role": "user", "parts": [{"text": self.name}]}}
        try:
            for event in self.stream(body):
                if event["author"] == AGENTS[0]:
                    self.invocation = event["invocationId"]
                    # Read by the test: the server that has the run under way.
                    self.victim = next(each for each in self.servers if event["invocationId"] in
                                       each.ask(f"{self.place.path}/runs")["runs"])
            self.record.find(f"the run {self.name} ended before its server was killed")
        except Broken:
            events = self.look_up(self.place, self.name)
            if events is None or answers_of(events) != AGENTS:
                self.record.find(f"the run {self.name} has ended with {events}")
            else:
                self.record.note("complete", self.name, self.place)
        except Exception as failure: # pylint: disable=broad-except
            self.record.find(f"{self.name}: {type(failure).__name__}: {failure}")


class Test:
    """The three servers, their clients, and the checks."""

    def __init__(self, program, folder, seed, stack):
        self.begun = time.monotonic()
        self.program = program
        self.random = random.Random(seed)
        (folder / "tokens").write_text(f"{TOKEN} admin admin\n")
        write_agents(folder)
        self.database = stack.enter_context(contextlib.closing(Postgres(folder)))
        self.store = self.database.url
        self.servers = []
        for number in range(3):
            self.servers.append(Server(program, folder, number, self.store))
            stack.callback(self.servers[-1].kill)
        self.proxy = stack.enter_context(contextlib.closing(Nginx(folder, self.servers)))
        self.record = Record()
        self.record.port = self.proxy.sticky
        self.cut_runs = {} # {invocation id: name of the killed process's log}
        self.clients = [kind(self.record, DESK, f"{kind.__name__}{index}", seed)
                        for kind, number in ((Appender, 4), (Runner, 4))
                        for index in range(number)]
        for place in [*DESK, *SLOW.values()]:
            self.clients[0].ask("POST", f"/apps/{place.app}/users/{place.user}/sessions",
                                {"sessionId": place.id})

    def say(self, text):
        print(f"{time.monotonic() - self.begun:5.1f} s  {text}", flush=True)

    def run(self):
        self.say("three servers are ready")
        for client in self.clients:
            client.start()
        self.record.await_more(100, 20)
        self.check_stickiness()
        self.restart_database()
        first = self.kill_one("sticky")
        self.record.await_more(50, 0)
        first.victim.begin()
        self.say(f"server {first.victim.number} is started again; any server for each request")
        self.record.port = self.proxy.any
        self.record.await_more(100, 0)
        second = self.kill_one("spread")
        second.victim.begin()
        self.say(f"server {second.victim.number} is started again")
        self.record.await_more(50, 0)
        for cut in (first, second):
            until(lambda cut=cut: not cut.is_alive(), f"the run {cut.name} ends", RECOVERY_SECONDS)
        self.await_recoveries()
        self.restart_database()
        self.check_connections()
        self.record.stopped.set()
        for client in self.clients:
            client.join(SECONDS)
            if client.is_alive():
                raise Failed(f"{client.name} does not end")
        self.say(f"{len(self.record.appends)} appends and {len(self.record.complete)} runs; "
                 f"retries: {self.record.retries}; runs that failed with the database: "
                 f"{len(self.record.failed)}")
        if self.record.findings:
            raise Failed("\n".join(self.record.findings))
        self.check_all()

    # -- disturbances ----

    def restart_database(self):
        self.database.restart()
        self.say("PostgreSQL was restarted")
        self.record.await_more(50, 10)

    def kill_one(self, name):
        """Kills the server of a slow run, and notes the runs that this cuts off."""
        cut = Cut(self.record, SLOW[name], self.servers, f"cut-{name}")
        cut.start()
        until(lambda: cut.victim or self.record.findings, "a server has the slow run")
        if self.record.findings:
            raise Failed("\n".join(self.record.findings))
        cut.victim.kill()
        # A run that is of none of the others is one of the killed server, or an earlier one.
        others = [each for each in self.servers if each is not cut.victim]
        lists = [{run["run"] for app in APPS for run in list_runs(server, app)
                  if not run["own"]} for server in others]
        # Another server may have recovered it already: the end of a process here is seen at once.
        found = set.intersection(*lists) | {cut.invocation}
        for run in found:
            self.cut_runs.setdefault(run, cut.victim.logs[-1])
        self.say(f"server {cut.victim.number} is killed; open runs: {len(found)}")
        return cut

    def await_recoveries(self):
        until(lambda: self.told("recovered run ").keys() >= self.cut_runs.keys(),
              f"all of {self.cut_runs} are recovered", RECOVERY_SECONDS)
        failures = self.told("recovery of run ")
        for run, killed in self.cut_runs.items():
            ended = [log for log, _ in self.told("recovered run ")[run]]
            # Servers that begin at the same time, or later, come too late.
            others = [line for _, line in failures[run]
                      if not re.search(": (conflict|not_found|busy): ", line)]
            if len(ended) != 1 or ended[0] == killed or others:
                raise Failed(f"run {run} of {killed}: ended in {ended}, failed: {others}")
        self.say(f"{len(self.cut_runs)} runs were ended by other processes")

    def told(self, beginning):
        """Returns {invocation id: [(log, line)]} of the servers' lines that begin so."""
        found = collections.defaultdict(list)
        for server in self.servers:
            for log in server.logs:
                for line in log.read_text().splitlines():
                    if line.startswith(beginning):
                        found[line.removeprefix(beginning).split()[0]].append((log, line))
        return found

    # -- checks ----

    def check_stickiness(self):
        for session, servers in self.of_desk(self.proxy.sticky).items():
            if len(servers) != 1:
                raise Failed(f"requests of the session {session} went to {servers}")

    def of_desk(self, port):
        names = {each.id for each in DESK}
        found = {session: servers for session, servers
                 in self.proxy.servers_of_sessions(port).items() if session in names}
        if found.keys() != names:
            raise Failed(f"port {port} had requests of {sorted(found)} alone")
        return found

    def check_connections(self):
        count = int(self.database.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'troupe'"))
        if not 3 <= count <= 3 * CONNECTIONS_PER_SERVER:
            raise Failed(f"three servers have {count} connections to PostgreSQL")

    def check_all(self):
        for session, servers in self.of_desk(self.proxy.any).items():
            if len(servers) != 3:
                raise Failed(f"without stickiness, the session {session} used only {servers}")
        until(lambda: not any(list_runs(server, app) for server in self.servers
                              for app in APPS),
              "the lists of open runs are empty", 20)
        sessions = {place: self.clients[0].ask("GET", place.path)
                    for place in [*DESK, *SLOW.values()]}
        self.check_appends(sessions)
        self.check_runs(sessions)
        for server in self.servers:
            if (code := server.close()) != 143:
                raise Failed(f"server {server.number} ended with {code}: "
                             f"{server.logs[-1].read_text()}")
            for log in server.logs:
                if "has lost" in log.read_text() or "does not have" in log.read_text():
                    raise Failed(f"{log}: {log.read_text()}")
        self.check_store(sessions)

    def check_appends(self, sessions):
        totals = collections.Counter()
        for (place, _), amount in self.record.appends.items():
            totals[place] += amount
            totals[place.app, place.user] += amount
            totals[place.app] += amount
        for place in DESK:
            found = [each["id"] for each in sessions[place]["events"]
                     if each["id"].startswith("Appender")]
            wanted = [name for where, name in self.record.appends if where == place]
            if sorted(found) != sorted(wanted):
                raise Failed(f"{place}: missing {set(wanted) - set(found)}, not acknowledged "
                             f"{set(found) - set(wanted)}, more than once "
                             f"{[each for each, n in collections.Counter(found).items() if n > 1]}")
            state = sessions[place]["state"]
            for key, total in (("n", totals[place]), ("user:n", totals[place.app, place.user]),
                               ("app:n", totals[place.app])):
                if state.get(key) != total:
                    raise Failed(f"{place}: {key} is {state.get(key)} in place of {total}")
        self.say("each acknowledged append is stored once, and all sums are right")

    def check_runs(self, sessions):
        for place, session in sessions.items():
            messages = {}
            answers = collections.defaultdict(list)
            for event in session["events"]:
                if event["author"] == "user" and text_of(event).startswith(("Runner", "cut-")):
                    if text_of(event) in messages.values():
                        raise Failed(f"{place} has {text_of(event)} twice")
                    messages[event["invocationId"]] = text_of(event)
                elif event["author"] in AGENTS and text_of(event):
                    answers[event["invocationId"]].append(event["author"])
            for run, message in messages.items():
                told = answers[run]
                whole = told == AGENTS
                if not whole and (message not in self.record.failed
                                  or told != AGENTS[:len(told)]):
                    raise Failed(f"{place}: the run {run} of {message} answered {told}")
            missing = {message for message, where in self.record.complete.items()
                       if where == place} - set(messages.values())
            if missing or answers.keys() - messages.keys():
                raise Failed(f"{place}: missing {missing}, without a message "
                             f"{answers.keys() - messages.keys()}")
        self.say("each step of each run is stored once")

    def check_store(self, sessions):
        """Compares the store with the answers of the servers."""
        exported = {}
        for app in APPS:
            for line in self.call("sessions", "export", "--app", app).splitlines():
                session = json.loads(line)
                exported[Place(app, session["userId"], session["id"])] = session
        if exported.keys() != sessions.keys():
            raise Failed(f"exported are {exported.keys()}")
        for place, session in sessions.items():
            told, kept = session["events"], exported[place]["events"]
            if [facts_of(each) for each in told] != [facts_of(each) for each in kept]:
                raise Failed(f"{place}: the export has {kept} in place of {told}")
        self.call("store", "check")
        self.say("the export agrees, and the store is undamaged")

    def call(self, *command):
        done = subprocess.run([self.program, *command, "--store", self.store], check=False,
                              capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise Failed(f"troupe {' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout


def facts_of(event):
    """Returns the parts of an event that each of its forms has."""
    return [*(event.get(key) for key in ("id", "invocationId", "author", "content", "timestamp")),
            event["actions"]["stateDelta"]]


def list_runs(server, app):
    return server.ask(f"/apps/{app}/unfinished-runs?limit=1000")["runs"]


def main():
    find_postgres()
    find_nginx()
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2 ** 32)
    print("seed", seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="troupe_replicas_") as made, \
            contextlib.ExitStack() as stack:
        folder = pathlib.Path(made)
        os.chmod(folder, 0o755) # The user of PostgreSQL gets in.
        try:
            Test(pathlib.Path(sys.argv[1]).resolve(), folder, seed, stack).run()
        except (Failed, OSError) as failure:
            for log in sorted(folder.glob("*.log")):
                if log.name != "access.log":
                    print(f"-- {log.name}\n{log.read_text()[-3000:]}")
            sys.exit(f"seed {seed}: {failure}")


if __name__ == "__main__":
    main()
