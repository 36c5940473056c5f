"""Clients that append events and run agents until they are told to stop.

Each append is sent with the same id until it is acknowledged. A run has no such id: its client
looks for its message in the session, and sends a new one only if the message is not there.
"""

import dataclasses
import http.client
import json
import random
import threading
import time

from services import SECONDS, TOKEN, Failed

AGENTS = ["first", "second", "third"] # They answer in this order.
# A proxy answers so when no server does, and a server when its store does not.
AWAY = (502, 503, 504)
# Codes of troupe that a client may get while a server or the database is away.
RETRIED = ("busy", "store_failed")


class Broken(Exception):
    """A connection that ended before its answer, or an answer that allows a retry."""


@dataclasses.dataclass(frozen=True)
class Place:
    """One session."""

    app: str
    user: str
    id: str

    @property
    def path(self):
        return f"/apps/{self.app}/users/{self.user}/sessions/{self.id}"


class Record:
    """All that the clients were told. Thread-safe."""

    def __init__(self):
        self.changed = threading.Condition()
        self.appends = {} # (place, event id): amount, of acknowledged events
        self.complete = {} # message: place, of runs that were seen to end
        self.failed = set() # messages of runs whose client was told of a failure
        self.retries = {} # cause: count
        self.findings = []
        self.stopped = threading.Event()
        self.port = 0 # The clients use this port of nginx.

    def note(self, kind, key, value):
        with self.changed:
            getattr(self, kind)[key] = value
            self.changed.notify_all()

    def note_retry(self, cause):
        with self.changed:
            self.retries[cause] = self.retries.get(cause, 0) + 1

    def find(self, text):
        """Adds a finding: the test fails with it at its end."""
        with self.changed:
            self.findings.append(text)
            self.changed.notify_all()

    def await_more(self, appends, runs):
        """Waits for more acknowledged appends and ended runs."""
        with self.changed:
            appends += len(self.appends)
            runs += len(self.complete)
            done = self.changed.wait_for(
                lambda: self.findings
                or (len(self.appends) >= appends and len(self.complete) >= runs), SECONDS)
            if not done:
                raise Failed(f"{len(self.appends)} of {appends} appends and {len(self.complete)} "
                             f"of {runs} runs after {SECONDS} seconds")


class Client(threading.Thread):
    """Repeats `step`, in an order that the seed decides."""

    def __init__(self, record, places, name, seed):
        super().__init__(name=name, daemon=True)
        self.record = record
        self.places = places
        self.random = random.Random(f"{seed} {name}")
        self.count = 0

    def run(self):
        try:
            while not self.record.stopped.wait(self.random.uniform(0, 0.02)):
                self.count += 1
                self.step(self.random.choice(self.places))
        except Exception as failure: # pylint: disable=broad-except
            self.record.find(f"{self.name}: {type(failure).__name__}: {failure}")

    # -- requests ----

    def open(self, method, path, body=None):
        """Sends a request, and returns the connection and the answer, of status 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.record.port, timeout=SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            if answer.status == 200:
                return connection, answer
            text = answer.read().decode()
        except TimeoutError as hanging:
            raise Failed(f"no answer within {SECONDS} seconds: {method} {path}") from hanging
        except (OSError, http.client.HTTPException) as broken:
            raise self.broken(type(broken).__name__) from broken
        connection.close()
        code = answer.getheader("troupe-error")
        if answer.status not in AWAY or (code is not None and code not in RETRIED):
            raise Failed(f"{method} {path}: {answer.status} {code} {text}")
        raise self.broken(f"{answer.status} {code or 'of nginx'}")

    def broken(self, cause):
        self.record.note_retry(cause)
        return Broken(cause)

    def ask_once(self, method, path, body=None):
        connection, answer = self.open(method, path, body)
        try:
            return json.loads(answer.read())
        except TimeoutError as hanging:
            raise Failed(f"half an answer within {SECONDS} seconds: {path}") from hanging
        except (OSError, http.client.HTTPException) as broken:
            raise self.broken(type(broken).__name__) from broken
        finally:
            connection.close()

    def ask(self, method, path, body=None):
        """Sends a request again until it is answered with status 200."""
        pause = 0.02
        end = time.monotonic() + SECONDS
        while True:
            try:
                return self.ask_once(method, path, body)
            except Broken as broken:
                if time.monotonic() > end:
                    raise Failed(f"{method} {path}: {broken}, for {SECONDS} seconds") from broken
            time.sleep(self.random.uniform(0, pause)) # As a polite client does.
            pause = min(2 * pause, 0.5)


class Appender(Client):
    """Appends events that add to one key of each scope."""

    def step(self, place):
        name = f"{self.name}.{self.count}"
        amount = self.random.randint(1, 9)
        event = {"id": name, "author": "user", "content": {"role": "user",
                                                           "parts": [{"text": name}]},
                 "actions": {"stateOps": [{"op": "add", "key": key, "value": amount}
                                          for key in ("n", "user:n", "app:n")]}}
        sent_twice = self.random.random() < 0.2
        for _ in range(2 if sent_twice else 1):
            stored = self.ask("POST", f"{place.path}/events", event)
            if stored["id"] != name:
                raise Failed(f"the event {name} is answered as {stored['id']}")
        self.record.note("appends", (place, name), amount)


class Runner(Client):
    """Runs the agents of an app, by /run and by /run_sse."""

    def step(self, place):
        attempt = 0
        while True:
            attempt += 1
            message = f"{self.name}.{self.count}.{attempt}"
            try:
                events = self.start_run(place, message)
            except Broken as broken:
                events = self.look_up(place, message)
                if events is None:
                    continue # The message was not stored.
                if answers_of(events) != AGENTS:
                    # A run in a server that lives ends with the failure of its store.
                    if not any(code in str(broken) for code in RETRIED):
                        raise Failed(f"run {message} on {place} has ended after "
                                     f"{answers_of(events)}; its client had: {broken}") from broken
                    with self.record.changed:
                        self.record.failed.add(message)
                    continue
            if answers_of(events) != AGENTS:
                raise Failed(f"run {message} on {place} answered {events}")
            return self.record.note("complete", message, place)

    def start_run(self, place, message):
        body = {"appName": place.app, "userId": place.user, "sessionId": place.id,
                "newMessage": {"role": "user", "parts": [{"text": message}]}}
        if self.random.random() < 0.5:
            return self.ask_once("POST", "/run", body)
        return list(self.stream(body))

    def stream(self, body):
        """Gives the events of a run when they come."""
        connection, answer = self.open("POST", "/run_sse", body)
        try:
            for line in lines_of(answer):
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line.removeprefix(b"data: "))
                if "error" in event and "author" not in event:
                    kind = event["error_details"]["error_type"]
                    if kind not in RETRIED:
                        raise Failed(f"/run_sse ends with {event}")
                    raise self.broken(f"/run_sse ends with {kind}")
                yield event
        except TimeoutError as hanging:
            raise Failed(f"/run_sse is silent for {SECONDS} seconds") from hanging
        except (OSError, http.client.HTTPException) as broken:
            raise self.broken(type(broken).__name__) from broken
        finally:
            connection.close()

    def look_up(self, place, message):
        """Waits for the end of the run with the message, and returns its events. None: the message
        is not stored."""
        if not events_of_run(self.ask("GET", place.path)["events"], message):
            return None
        end = time.monotonic() + SECONDS
        while True:
            events = events_of_run(self.ask("GET", place.path)["events"], message)
            run = events[0]["invocationId"]
            left = self.ask("GET", f"/apps/{place.app}/unfinished-runs?user={place.user}")["runs"]
            if answers_of(events) == AGENTS or all(each["run"] != run for each in left):
                # Read again: it may have ended between both requests.
                return events_of_run(self.ask("GET", place.path)["events"], message)
            if time.monotonic() > end:
                raise Failed(f"run {message} of {place} has not ended: {left}")
            time.sleep(0.1)


def lines_of(answer):
    """Gives the lines of an answer when they come. Unlike `readline`, it fails if the answer is cut
    off between two chunks."""
    rest = b""
    while piece := answer.read1(65536):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def text_of(event):
    return "".join(part.get("text", "") for part in (event.get("content") or {}).get("parts", []))


def events_of_run(events, message):
    """Returns the events of the run with this message, beginning with the message."""
    runs = [each["invocationId"] for each in events
            if each["author"] == "user" and text_of(each) == message]
    if len(runs) > 1:
        raise Failed(f"the message {message} is stored {len(runs)} times")
    return [each for each in events if runs and each["invocationId"] == runs[0]]


def answers_of(events):
    """Returns the agents that have answered, in the order of their answers."""
    return [each["author"] for each in events if each["author"] in AGENTS and text_of(each)]
