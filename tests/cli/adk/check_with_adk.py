"""Compares the import and the export of `troupe` with ADK Python itself.

`check_with_adk.py TROUPE ENVIRONMENT`: installs the pinned ADK from PyPI into the virtual
environment ENVIRONMENT unless it is there, and runs itself in it. Ends with 77 if PyPI cannot be
reached.
"""

import asyncio
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import venv

PINNED = ["google-adk==2.13.0", "sqlalchemy[asyncio]==2.1.9", "aiosqlite==0.22.1"]
SKIPPED = 77
SEED = 20261126
UNREACHABLE = ("connection", "timed out", "name resolution", "proxy", "network is unreachable")


# -- the environment ----


def install(environment):
    """Returns the interpreter of the environment."""
    python = environment / "bin" / "python"
    done = environment / "installed"
    wanted = "\n".join(PINNED)
    if done.exists() and done.read_text() == wanted:
        return python
    if not python.exists():
        venv.create(environment, with_pip=True)
    pip = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15", *PINNED],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if pip.returncode != 0:
        print(pip.stdout)
        if any(word in pip.stdout.lower() for word in UNREACHABLE):
            print("skipped: PyPI cannot be reached, so there is no ADK Python to compare with")
            sys.exit(SKIPPED)
        sys.exit("pip cannot install " + ", ".join(PINNED))
    done.write_text(wanted)
    return python


# -- the comparison, in the environment ----


def random_events(source, samples):
    """Events with changes in all scopes, in a few runs."""
    for number in range(1, 25):
        delta = {}
        for _ in range(source.randrange(3)):
            key = source.choice(["", "user:", "app:", "temp:"]) + source.choice("abcdef")
            delta[key] = source.choice([None, 1, -2.5, "\u00e9\U0001f989", [1, None], {"x_y": {"zZ": True}}])
        yield samples.event(number, source.choice(["user", "clerk"]), samples.text(f"word {number}"),
                            after=source.random() / 4, run=f"i{number // 4}",
                            actions=samples.EventActions(state_delta=delta))


async def fill(service, samples):
    from google.adk.agents import BaseAgent
    from google.adk.runners import Runner

    await samples.fill(service)
    source = random.Random(SEED)
    for index in range(4):
        names = {"app_name": f"app{index % 2}", "user_id": f"user{index % 3}"}
        session = await service.create_session(
            **names, session_id=f"s{index}", state={"a": "given", "user:b": "given", "app:c": index, "g": {"h": None}})
        for said in random_events(source, samples):
            await service.append_event(session, said)
        runner = Runner(app_name=names["app_name"], agent=BaseAgent(name="clerk"), session_service=service)
        for target in ("i4", "i2"):
            await runner.rewind_async(
                user_id=names["user_id"], session_id=f"s{index}", rewind_before_invocation_id=target)


def as_troupe_keeps_it(session):
    """Without nulls in the state."""
    session["state"] = {key: held for key, held in session["state"].items() if held is not None}
    return session


def is_same(left, right):
    """Equal JSON. Times, which are the only large fractions, are equal to the microsecond."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, float) and isinstance(right, float) and min(left, right) > 1e9:
        return abs(left - right) < 1.5e-6
    return type(left) is type(right) and left == right


def by_key(sessions):
    return {(each["appName"], each["userId"], each["id"]): as_troupe_keeps_it(each) for each in sessions}


def without_corrections(session):
    """Leaves out the events by which troupe reaches the stored state."""
    session["events"] = [each for each in session["events"] if each["author"] != "system"]
    return session


def expect_equal(found, wanted, name):
    if found.keys() != wanted.keys():
        sys.exit(f"{name}: sessions {sorted(found)} instead of {sorted(wanted)}")
    for key, session in wanted.items():
        for field, held in session.items():
            got = found[key].get(field)
            if field == "events" and len(got) == len(held):
                pairs = list(zip(got, held))
            else:
                pairs = [(got, held)]
            for left, right in pairs:
                if not is_same(left, right):
                    sys.exit(f"{name}: {key} has {field}\n{json.dumps(left)}\ninstead of\n{json.dumps(right)}")


class Troupe:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"troupe {' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def sessions(self, store):
        apps = json.loads(self("apps", "list", "--store", store))["apps"]
        return [json.loads(line) for app in apps
                for line in self("sessions", "export", "--app", app, "--store", store).splitlines()]


# -- rewinds ----


def random_log(source, samples, name):
    """A session of a few runs, in which rewinds name runs before, after and unknown ones."""
    events = []
    for number in range(1, source.randrange(2, 40)):
        actions = samples.EventActions()
        if source.random() < 0.2:
            actions = samples.EventActions(rewind_before_invocation_id=f"i{source.randrange(9)}")
        events.append(samples.event(number, "user", samples.text(f"word {number}"), run=f"i{source.randrange(8)}",
                                    actions=actions))
    return {"id": name, "appName": "rewound", "userId": "ann", "state": {}, "lastUpdateTime": 1.0,
            "events": [json.loads(each.model_dump_json(by_alias=True, exclude_none=True)) for each in events]}, events


def compare_live_events(troupe, samples, count=1000):
    """The events that are left after the rewinds of random logs, as ADK and troupe see them."""
    from concurrent.futures import ThreadPoolExecutor

    from google.adk.events._rewind_events import _apply_rewinds

    source = random.Random(SEED)
    logs = [random_log(source, samples, f"s{index}") for index in range(count)]
    store = ("--store", "sqlite:rewound.db", "--durability", "os")
    file = pathlib.Path(troupe.folder) / "rewound.jsonl"
    file.write_text("".join(json.dumps(session) + "\n" for session, _ in logs))
    troupe("sessions", "import", str(file), *store)

    def live_ids(log):
        held = troupe("sessions", "get", "--app", "rewound", "--user", "ann", "--session", log[0]["id"], "--live", *store)
        return [each["id"] for each in json.loads(held)["events"]]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = list(threads.map(live_ids, logs))
    for (session, events), left in zip(logs, found):
        wanted = [each.id for each in _apply_rewinds(events)]
        if left != wanted:
            sys.exit(f"live events {left} instead of {wanted}\n{json.dumps(session)}")


# -- summaries ----


async def compare_summaries(troupe, samples):
    """ADK reads an exported summary of troupe, and shows it in place of the same events."""
    from google.adk.flows.llm_flows.context import _contents
    from google.adk.sessions.database_session_service import DatabaseSessionService

    said = [samples.event(number, "user", samples.text(f"word {number}"), run=f"i{number}") for number in range(1, 5)]
    events = [json.loads(each.model_dump_json(by_alias=True, exclude_none=True)) for each in said]
    events.insert(3, {
        "id": "sum", "author": "user", "invocationId": "i3", "timestamp": said[2].timestamp, "actions": {"compaction": {
            "startRevision": 1, "endRevision": 2, "startTimestamp": said[0].timestamp,
            "endTimestamp": said[1].timestamp, "compactedContent": {"role": "model", "parts": [{"text": "summed"}]}}}})
    session = {"id": "s1", "appName": "summed", "userId": "ann", "state": {}, "lastUpdateTime": 1.0, "events": events}
    (pathlib.Path(troupe.folder) / "summed.jsonl").write_text(json.dumps(session) + "\n")
    store = ("--store", "sqlite:summed.db")
    troupe("sessions", "import", str(pathlib.Path(troupe.folder) / "summed.jsonl"), *store)
    troupe("sessions", "export", "--app", "summed", "--to", "adk", "sqlite:summed_adk.db", *store)
    opened = DatabaseSessionService(f"sqlite+aiosqlite:///{troupe.folder}/summed_adk.db")
    read = await opened.get_session(app_name="summed", user_id="ann", session_id="s1")
    await opened.close()
    shown = [part.text for content in _contents._get_contents(
        current_branch=None, events=read.events, agent_name="clerk") for part in content.parts if part.text]
    if [words for words in shown if words in ("summed", "word 1", "word 2", "word 3", "word 4")] != [
            "summed", "word 3", "word 4"]:
        sys.exit(f"ADK shows {shown} for a summary of two events of four")


async def compare(program):
    import samples
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    apps = ("shop", "lone", "app0", "app1")
    with tempfile.TemporaryDirectory() as folder:
        troupe = Troupe(program, folder)
        compare_live_events(troupe, samples)
        await compare_summaries(troupe, samples)
        for name, service in (("v1", DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/v1.db")),
                              ("sqlite_service", SqliteSessionService(f"{folder}/sqlite_service.db"))):
            await fill(service, samples)
            wanted = by_key(await samples.read(service, apps))
            await service.close()
            store = f"sqlite:{name}_store.db"
            troupe("sessions", "import", "--from", "adk", f"sqlite:{name}.db", "--store", store, "--durability", "os")
            found = by_key(map(without_corrections, troupe.sessions(store)))
            expect_equal(found, wanted, f"import of {name}")

            for app in ("shop", "app0"):
                file = f"{name}_{app}.db"
                troupe("sessions", "export", "--app", app, "--to", "adk", f"sqlite:{file}", "--store", store)
                opened = DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/{file}")
                read = await samples.read(opened, (app,))
                expect_equal(by_key(map(without_corrections, read)),
                             {key: held for key, held in wanted.items() if key[0] == app}, f"export of {file}")
                first = read[0]
                session = await opened.get_session(app_name=app, user_id=first["userId"], session_id=first["id"])
                await opened.append_event(session, samples.event(900, "user", samples.text("more"), actions=(
                    samples.EventActions(state_delta={"more": 1, "user:more": 2, "app:more": 3}))))
                await opened.close()
                again = f"sqlite:{name}_{app}_again.db"
                troupe("sessions", "import", "--from", "adk", f"sqlite:{file}", "--store", again, "--durability", "os")
                grown = by_key(troupe.sessions(again))[(app, first["userId"], first["id"])]
                for key, held in (("more", 1), ("user:more", 2), ("app:more", 3)):
                    if grown["state"].get(key) != held:
                        sys.exit(f"{file}: {key} is {grown['state'].get(key)} after ADK has set it")
    print("troupe and ADK Python agree")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        interpreter = install(pathlib.Path(sys.argv[2]))
        os.execv(interpreter, [interpreter, "-W", "ignore", __file__, sys.argv[1]])
    asyncio.run(compare(sys.argv[1]))
