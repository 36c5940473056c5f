#!/usr/bin/env python3
"""Makes the sample reports of this directory that no run of troupe made, the same each time.

    make_samples.py DIR           the samples that are kept
    make_samples.py --large DIR   large ones, to see that pages stay quick
"""

import json
import math
import pathlib
import random
import sys

MS = 1_000_000
LONG_WORD = "w" * 200
EVIL = "<script>throw new Error('markup in a name')</script>\u202egpj\u2066.exe"
VERSIONS = {"troupe": "0.9.0", "compiler": "GCC 14.2.0", "store": "SQLite 3.46.1"}
MACHINE = {
    "cpu": "AMD EPYC 7B13", "cores": 2, "memoryBytes": 8_345_894_912,
    "kernel": "Linux 6.6.56", "system": "Debian GNU/Linux 12 (bookworm)",
}
SETTINGS = {
    "store": "sqlite:load.db", "durability": "durable", "apps": 1, "users": 8, "sessions": 64,
    "callers": 64, "appends": None, "durationSeconds": 10.0, "arrival": "closed", "rate": 0.0,
    "zipf": 0.0, "hot": False, "ops": "session:add=7,session+user:add=2,session+user+app:add=1",
    "payloadBytes": 64, "readers": 0, "seed": 1,
}
COMMON = {"startedAt": "2026-03-14T09:26:53Z", "versions": VERSIONS, "machine": MACHINE}


def histogram(values):
    """As troupe writes it, with coarser buckets."""
    if not values:
        names = ["max", "min", "p50", "p90", "p95", "p99", "p99_9", "p99_99"]
        return {"count": 0, "overflow": 0, "mean": 0.0, "buckets": [], **dict.fromkeys(names, 0)}
    values = sorted(int(value) for value in values)
    buckets = {}
    for value in values:
        low = int(1.03 ** math.floor(math.log(max(value, 1), 1.03)))
        buckets[low] = buckets.get(low, 0) + 1

    def at(share):
        return values[min(math.ceil(share * len(values)), len(values)) - 1]

    return {
        "count": len(values), "overflow": 0, "min": values[0], "max": values[-1],
        "mean": sum(values) / len(values), "p50": at(0.5), "p90": at(0.9), "p95": at(0.95),
        "p99": at(0.99), "p99_9": at(0.999), "p99_99": at(0.9999),
        "buckets": [list(each) for each in sorted(buckets.items())],
    }


def load(**changes):
    empty = histogram([])
    return {
        "kind": "load", **COMMON, "settings": SETTINGS, "run": "405f82b5", "elapsedSeconds": 0.2,
        "interrupted": False, "sent": 0, "stored": 0, "reads": 0, "failed": {},
        "appendsPerSecond": 0.0, "offeredPerSecond": 0.0, "ownCostNanoseconds": 490,
        "residentBytes": 23_400_000, "response": empty, "service": empty, "reading": empty,
        "byOperation": {}, "batches": [], "seconds": [],
        "verdict": {
            "checked": True, "holds": True, "acknowledged": 0, "lost": 0, "doubled": 0,
            "ghosts": 0, "reordered": 0, "torn": 0, "wrongTotals": 0, "findings": [],
        }, **changes,
    }


def load_failing(chance, rows):
    times = [chance.lognormvariate(14, 0.7) for _ in range(6000)]
    slow = [time * (30 if chance.random() < 0.01 else 1) for time in times]
    made = load(
        settings={**SETTINGS, "arrival": "open", "rate": 600.0, "zipf": 0.9,
                  "store": f"postgres:///{LONG_WORD}"},
        elapsedSeconds=rows + 0.013, interrupted=True, sent=rows * 600, stored=rows * 560,
        failed={"unavailable": rows * 25, "deadline_exceeded": rows * 15, LONG_WORD: 1, EVIL: 2},
        appendsPerSecond=560.2, offeredPerSecond=600.0,
        response=histogram(slow), service=histogram(times),
        byOperation={EVIL: histogram(times[:2000]), LONG_WORD: histogram(times[2000:]),
                     "session+用户:add=1": histogram(times[:1])},
        batches=[[size, max(int(40000 / size ** 1.4), 1)] for size in range(1, 400)])
    resident = 40e6
    for second in range(rows):
        outage = rows * 0.4 < second < rows * 0.55
        resident += chance.random() * 1e6
        made["seconds"].append({
            "atSeconds": second + 1.003, "stored": 0 if outage else chance.randint(540, 620),
            "failed": chance.randint(500, 620) if outage else int(chance.random() < 0.02),
            "inFlight": chance.randint(0, 900) if outage else chance.randint(0, 9),
            "offered": 600, "p50": 0 if outage else int(chance.lognormvariate(14, 0.1)),
            "p99": 0 if outage else int(chance.lognormvariate(16, 0.3)),
            "max": 0 if outage else int(chance.lognormvariate(18, 0.5)),
            "residentBytes": int(resident),
        })
    made["seconds"].append({
        "atSeconds": rows + 0.013, "stored": 2, "failed": 0, "inFlight": 0, "offered": 3,
        "p50": 1 * MS, "p99": 2 * MS, "max": 2 * MS, "residentBytes": int(resident)})
    made["verdict"] = {
        "checked": True, "holds": False, "acknowledged": rows * 560, "lost": 3, "doubled": 1,
        "ghosts": 0, "reordered": 12, "torn": 0, "wrongTotals": 2,
        "findings": [f"session load-405f82b5-{index}: append {index * 17} of caller {index} is "
                     "not there" for index in range(14)] + [EVIL, LONG_WORD],
    }
    return made


def sweep_rows(chance, varied):
    rows = []
    for first_index, first in enumerate(varied[0]["values"]):
        for second_index, second in enumerate(varied[1]["values"] if varied[1:] else [None]):
            values = {varied[0]["name"]: first}
            if second is not None:
                values[varied[1]["name"]] = second
            speed = 9000 * 1.9 ** first_index / (1 + 0.09 * 1.8 ** first_index)
            speed *= (1 + 0.5 * second_index) * chance.uniform(0.95, 1.05)
            p99 = int(900_000 * 1.7 ** first_index * chance.uniform(0.9, 1.2))
            rows.append({
                "values": values, "appendsPerSecond": speed, "p50": p99 // 3, "p99": p99,
                "p99_9": p99 * 2, "failed": 0, "holds": True})
    return rows


def sweep(chance, varied, **changes):
    return {"kind": "sweep", **COMMON, "vary": varied, "settings": SETTINGS,
            "rows": sweep_rows(chance, varied), **changes}


def step(kind, name, start, end, **more):
    return {"kind": kind, "name": name, "start": int(start), "end": int(end),
            "event": f"e{int(start) % 99991:05d}", "detail": None, "error": None, **more}


def lane(chance, agent, branch, start, turns, error=None):
    steps = []
    now = start
    for turn in range(turns):
        if turn and chance.random() < 0.4:
            waited = now + chance.uniform(20, 200) * MS
            steps.append(step("wait", "rate limit", now, waited))
            now = waited
        done = now + chance.lognormvariate(0, 0.4) * 420 * MS
        steps.append(step("model", "gemini-2.0-flash", now, done,
                          detail=f"{chance.randint(200, 4000)} tokens in, "
                                 f"{chance.randint(20, 400)} out"))
        now = done + chance.uniform(0.02, 3) * MS
        tools = chance.choice([0, 1, 1, 3])
        ends = [now]
        for number in range(tools):
            ends.append(now + chance.lognormvariate(0, 0.8) * 160 * MS)
            steps.append(step("tool", chance.choice(["search", "fetch_page", "add_note"]), now,
                              ends[-1], detail=f"call {number + 1}"))
        now = max(ends)
        stored = now + chance.uniform(0.2, 2) * MS
        steps.append(step("other", "append events", now, stored))
        now = stored
    if error:
        steps[-1]["error"] = error
    return {"agent": agent, "branch": branch, "steps": steps}


def visit(node, number, began, ended, state="done", failures=(), routes=()):
    return {"node": node, "number": number, "state": state, "attempt": len(failures) + 1,
            "failures": [{"attempt": place + 1, "at": began, "code": "tool_failed", "message": each}
                         for place, each in enumerate(failures)],
            "routes": list(routes), "missing": [], "began": began, "ended": ended, "due": None}


def workflow(path, visits, state="done"):
    return {"name": path, "path": path, "run": "e-7f3a9c", "invocations": ["e-7f3a9c"],
            "parent": None, "state": state, "failure": None, "conflict": None,
            "began": 1773480413.25, "ended": None, "nodes": [], "edges": [], "visits": visits}


def timeline(lanes, started=1773480413.25, invocation="e-7f3a9c", error=None, taken_back=False,
             workflows=None):
    steps = [each for row in lanes for each in row["steps"]]
    work = [each["end"] - each["start"] for each in steps if each["kind"] in ("model", "tool")]
    wall = max((each["end"] for each in steps), default=0)
    return {
        "invocation": invocation, "startedAt": started, "wall": wall, "work": sum(work),
        "longestLane": int(wall * 0.93), "error": error, "takenBack": taken_back,
        "modelCalls": sum(each["kind"] == "model" for each in steps),
        "toolCalls": sum(each["kind"] == "tool" for each in steps), "lanes": lanes,
        **({"workflows": workflows} if workflows else {}),
    }


def research(chance, breadth=4, turns=3, error=None):
    root = lane(chance, "coordinator", "", 0, 1)
    begin = root["steps"][-1]["end"]
    lanes = [root]
    for number in range(breadth):
        name = ["web_researcher", "paper_researcher", "fact_checker", "summariser"][number % 4]
        lanes.append(lane(chance, name, f"coordinator.{name}_{number}", begin,
                          chance.randint(1, turns), error if number == 1 else None))
        if number == 0:
            lanes.append(lane(chance, "page_reader", f"coordinator.{name}_0.page_reader",
                              begin + 300 * MS, 2))
    end = max(each["end"] for row in lanes for each in row["steps"])
    root["steps"].append(step("wait", "sub-agents", begin, end))
    root["steps"].append(step("model", "gemini-2.0-pro", end, end + 900 * MS))
    return lanes


def trace(invocations, **session):
    return {"kind": "trace", "session": {"app": "research", "user": "ada",
                                         "id": "load-405f82b5-0", **session},
            "invocations": invocations}


def trace_awkward(chance):
    lanes = research(chance, 2, 2)
    lanes[1]["agent"] = EVIL
    lanes[2]["agent"] = LONG_WORD
    lanes[3]["agent"] = "агент 研究員 🙂"
    lanes[1]["steps"][0].update(name=EVIL, detail=LONG_WORD, event=LONG_WORD)
    lanes[2]["steps"][0].update(name="", detail={"cause": EVIL}, error="tool failed: " + LONG_WORD)
    lanes.append({"agent": "idle", "branch": "coordinator.idle", "steps": []})
    lanes.append({"agent": "instant", "branch": "a.b.c.d.e.f.g.h.i.j.k.l",
                  "steps": [step("tool", "no time at all", 5 * MS, 5 * MS)]})
    began = 1773480413.25
    visits = [visit(EVIL, 1, began, began + 0.4, failures=[EVIL, LONG_WORD], routes=[EVIL, 7, True]),
              visit(LONG_WORD, 12, began + 0.4, began + 1, "failed", [EVIL]),
              visit("later", 1, None, None, "waiting")]
    return trace([timeline(lanes, error="deadline_exceeded: " + LONG_WORD,
                           workflows=[workflow(EVIL, visits, "failed"),
                                      workflow("empty@1", [], "running")]),
                  timeline([], invocation="e-empty"),
                  timeline([{"agent": "alone", "branch": "", "steps": []}], started=None)],
                 app=EVIL, user=LONG_WORD, id="会話 1")


def trace_wide(chance, lanes=200, steps=2):
    made = [lane(chance, "dispatcher", "", 0, 1)]
    for number in range(lanes - 1):
        made.append(lane(chance, f"worker_{number:03d}", f"dispatcher.worker_{number:03d}",
                         600 * MS + chance.uniform(0, 900) * MS, steps))
    return trace([timeline(made)])


def spread(values):
    if not values:
        return None
    values = sorted(values)
    mean = sum(values) / len(values)
    half = None
    if len(values) > 1:
        deviation = math.sqrt(sum((each - mean) ** 2 for each in values) / (len(values) - 1))
        half = 2.1 * deviation / math.sqrt(len(values))
    return {"mean": mean, "low": None if half is None else mean - half,
            "high": None if half is None else mean + half, "min": values[0], "max": values[-1],
            "p50": values[len(values) // 2], "p90": values[int(len(values) * 0.9)]}


def experiment_run(chance, variant, index, given, repeat, error, with_timeline):
    made = timeline(research(chance, 1 + index % 4, 2 + index % 3, error), error=error)
    turns = max(made["modelCalls"], 1)
    city = chance.choice(["Lisbon", "Lisbon", "Lisbon", "Porto", "Faro", "Évora"])
    return {
        "variant": variant, "input": given, "repeat": repeat,
        "session": {"app": "research", "user": "experiment", "id": f"{index}-{given}-{repeat}"},
        "wall": made["wall"], "longestLane": made["longestLane"], "work": made["work"],
        "modelCalls": made["modelCalls"], "toolCalls": made["toolCalls"],
        "tokens": turns * chance.randint(800, 1200), "error": error,
        "output": "" if error else f"The best city is {city}.\nIt rains least there.",
        "state": {} if error else {"city": city, "score": chance.randint(6, 9)},
        "timeline": made if with_timeline else None,
    }


def variant_of(name, changes, runs):
    good = [run for run in runs if not run["error"]]

    def over(read):
        return spread([read(run) for run in good])

    def counted(key):
        found = [run["state"][key] for run in good]
        return [{"value": value, "count": found.count(value)} for value in sorted(set(found))]

    cities = counted("city")
    return {
        "name": name, "changes": changes, "runs": len(runs),
        "failed": {"unavailable": len(runs) - len(good)} if len(good) < len(runs) else {},
        "wall": over(lambda run: run["wall"]), "longestLane": over(lambda run: run["longestLane"]),
        "parallelism": over(lambda run: run["work"] / run["wall"]),
        "overheadPerTurn": over(
            lambda run: (run["wall"] - run["longestLane"]) / max(run["modelCalls"], 1)),
        "modelCalls": over(lambda run: run["modelCalls"]),
        "toolCalls": over(lambda run: run["toolCalls"]), "tokens": over(lambda run: run["tokens"]),
        "agreement": max(each["count"] for each in cities) / len(good) if good else None,
        "keys": {"city": cities, "score": counted("score")} if good else {},
    }


def experiment(chance, names, inputs, repeats, failing=0.05, timelines=1):
    runs, variants = [], []
    for index, (name, changes) in enumerate(names):
        own = [experiment_run(chance, name, index, given, repeat,
                              "unavailable: the model is overloaded"
                              if chance.random() < failing else None, repeat < timelines)
               for given in range(len(inputs)) for repeat in range(repeats)]
        runs += own
        variants.append(variant_of(name, changes, own))
    return {"kind": "experiment", **COMMON, "name": "How many researchers?",
            "file": "experiments/researchers.yaml", "seed": 7, "repeats": repeats,
            "inputs": inputs, "settings": {"store": "sqlite:experiment runs.db", "atOnce": 4},
            "variants": variants, "runs": runs}


def experiment_awkward(chance):
    names = [(EVIL, [EVIL, LONG_WORD]), (LONG_WORD, []), ("ключ 鍵", ["a: 1"])]
    made = experiment(chance, names, [LONG_WORD, EVIL], 1, 0)
    made["variants"][0]["keys"][EVIL] = [
        {"value": {"deep": [1, None, EVIL]}, "count": 2}, {"value": LONG_WORD, "count": 1},
        {"value": None, "count": 1}, {"value": "", "count": 1}, {"value": 1.5, "count": 1}]
    for key in ("tokens", "agreement"):
        made["variants"][1][key] = None
    made["runs"][0].update(output=LONG_WORD + "\n" + EVIL, state={EVIL: LONG_WORD})
    made["runs"][1].update(error={"code": "internal", "message": EVIL}, tokens=None)
    made["runs"][0]["session"]["id"] = "it's; rm -rf /"
    return made


def forked(made, past, **place):
    """The same experiment on forks of a session, with the keys that each run has changed."""
    made["from"] = {"app": "travel", "user": "ada", "session": "s-4711", "revision": 9,
                    "past": past, **place}
    for run in made["runs"]:
        run["changes"] = {} if run["error"] else {
            "city": {"before": "Lisbon", "after": run["state"].get("city")},
            "score": {"after": run["state"].get("score")},
            "answered": {"before": False, "after": True}}
        # A run that leaves a key as it was has no change of it.
        run["changes"] = {key: each for key, each in run["changes"].items()
                          if each.get("before") != each["after"]}
    return made


def experiment_forked_awkward(chance):
    past = [{"revision": 1_000_000 + number, "author": who, "text": text} for number, (who, text)
            in enumerate([("user", EVIL), (LONG_WORD, LONG_WORD), ("", "会話 1")])]
    made = forked(experiment_awkward(chance), past, session=EVIL, user=LONG_WORD,
                  revision=1_000_002)
    made["runs"][0]["changes"] = {EVIL: {"before": EVIL, "after": {"deep": [1, None, LONG_WORD]}},
                                  LONG_WORD: {"before": 1}, "topic": {"after": "owls"}}
    # Every object of JavaScript has a member of this name.
    made["runs"][-1]["changes"] = {"topic": {"after": "owls"},
                                   "constructor": {"before": 1, "after": 2}}
    return made


def samples(chance):
    researchers = [(f"researchers-{count}", [f"researchers: {count}", "model: gemini-2.0-flash"])
                   for count in (1, 2, 3, 4)]
    yield "load_short", load(verdict={
        "checked": False, "reason": "the test was interrupted before anything was stored"})
    yield "load_failing", load_failing(chance, 40)
    yield "load_failures_only", load(
        sent=900, failed={"unavailable": 900}, elapsedSeconds=1.4,
        seconds=[{"atSeconds": 1.0, "stored": 0, "failed": 640, "inFlight": 64, "p50": 0,
                  "p99": 0, "max": 0},
                 {"atSeconds": 1.4, "stored": 0, "failed": 260, "inFlight": 0, "p50": 0,
                  "p99": 0, "max": 0}])
    one = histogram([1_250_000])
    stored = {**load()["verdict"], "acknowledged": 1}
    yield "load_one_append", load(
        sent=1, stored=1, appendsPerSecond=5.0, verdict=stored, response=one, service=one,
        batches=[[1, 1]],
        byOperation={"session:add=1": one},
        seconds=[{"atSeconds": 0.2, "stored": 1, "failed": 0, "inFlight": 0, "p50": 1_250_000,
                  "p99": 1_250_000, "max": 1_250_000}])
    callers = {"name": "callers", "values": ["1", "8", "64", "512", "4096"]}
    yield "sweep_one", sweep(chance, [callers])
    yield "sweep_two", sweep(chance, [callers, {"name": "sessions", "values": ["1", "8", "64"]}])
    awkward = sweep(chance, [
        {"name": "store", "values": ["memory:", f"sqlite:{LONG_WORD}", f"sqlite:{EVIL}"]},
        {"name": "durability", "values": [f"kind {index}" for index in range(10)]}])
    awkward["rows"][3].update(holds=False, failed={"unavailable": 4})
    awkward["rows"][7].update(holds=None, appendsPerSecond=0.0, p50=0, p99=0, p99_9=0)
    del awkward["rows"][-2:]
    yield "sweep_awkward", awkward
    yield "sweep_empty", sweep(chance, [callers], rows=[])
    yield "trace_research", trace([
        timeline(research(chance)),
        timeline(research(chance, 3, 2, "unavailable: the search service did not answer"),
                 1773480530.5, "e-81d0aa", "unavailable: the search service did not answer", True)])
    yield "trace_awkward", trace_awkward(chance)
    yield "trace_200_lanes", trace_wide(chance)
    yield "trace_many", trace([timeline(research(chance, 1, 1), 1773480413 + 60 * number,
                                        f"e-{number:04d}") for number in range(12)])
    yield "trace_empty", trace([])
    inputs = ["Which city in Portugal has the mildest winter?", "Where does it rain least?",
              "Where would you go with children, and why?"]
    yield "experiment_researchers", experiment(chance, researchers, inputs, 6)
    yield "experiment_awkward", experiment_awkward(chance)
    many = [(f"temperature-{index / 20:.2f}", [f"temperature: {index / 20:.2f}"])
            for index in range(40)]
    yield "experiment_40_variants", experiment(chance, many, inputs[:1], 3, timelines=0)
    yield "experiment_all_failed", experiment(chance, researchers[:2], inputs[:1], 2, 1.1)
    yield "experiment_empty", experiment(chance, [], [], 0)
    past = [{"revision": 2, "author": "user", "text": "I would like to travel in January."},
            {"revision": 3, "author": "planner", "text": "Where to?"},
            {"revision": 8, "author": "user", "text": "Somewhere mild.\nWhat do you propose?"}]
    yield "experiment_forked", forked(experiment(chance, researchers, inputs[:2], 4), past)
    yield "experiment_forked_awkward", experiment_forked_awkward(chance)
    yield "experiment_forked_many", forked(
        experiment(chance, many[:4], inputs[:1], 60, timelines=0), [], revision=0)
    yield "experiment_forked_empty", forked(experiment(chance, [], [], 0), [])


def large_samples(chance):
    made = load_failing(chance, 600)
    yield "large_load", made
    yield "large_trace", trace_wide(chance, 60, 30)
    yield "large_experiment", experiment(
        chance, [(f"variant-{index}", [f"index: {index}"]) for index in range(10)],
        ["one", "two", "three"], 10, timelines=10)


def main(arguments):
    large = arguments[:1] == ["--large"]
    into = pathlib.Path(arguments[-1])
    into.mkdir(parents=True, exist_ok=True)
    for name, made in (large_samples if large else samples)(random.Random(1)):
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        (into / f"sample_{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1:])
