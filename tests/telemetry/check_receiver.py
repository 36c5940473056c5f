"""Decodes the telemetry of `troupe run` with the library of OpenTelemetry from PyPI.

`check_receiver.py TROUPE FOLDER`: installs the pinned library into FOLDER unless it is there. Ends
with 77 if there is no Python's venv, or if PyPI cannot be reached.
"""

import base64
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

PYPI = ["opentelemetry-proto==1.45.2"]
SKIPPED = 77
UNREACHABLE = ("network", "proxy", "failed to establish", "connection", "no matching distribution")

AGENTS = """
agent_class: SequentialAgent
name: root
sub_agents:
  - agent_class: ParallelAgent
    name: lanes
    sub_agents:
      - {name: left, model: "scripted:replies.json", instruction: Say left., tools: [{name: exit_loop}]}
      - {name: right, model: "scripted:replies.json", instruction: Say right.}
  - {name: last, model: "scripted:replies.json", instruction: Say the end.}
"""
USAGE = {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}, "finishReason": "STOP"}
REPLIES = {
    "left": [{"function_calls": [{"name": "exit_loop", "args": {}}]}, "left"],
    "right": [{"content": {"role": "model", "parts": [{"text": "right"}]}, "extra": USAGE}],
    "last": ["secret end"]}


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def install(folder):
    done = folder / "installed"
    if done.exists() and done.read_text() == json.dumps(PYPI):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for command, what in (([sys.executable, "-m", "venv", "python"], "venv"),
                          ([folder / "python/bin/pip", "install", "--quiet", *PYPI], "PyPI")):
        made = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if made.returncode != 0:
            print(made.stdout)
            if any(word in made.stdout.lower() for word in UNREACHABLE):
                skip(f"{what} cannot be reached")
            sys.exit(f"{what} fails")
    done.write_text(json.dumps(PYPI))


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps the requests that it gets."""

    def __init__(self):
        self.got = []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *unused):
        pass


def run(troupe, **variables):
    """The requests that a run sends."""
    receiver = Receiver()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        (made / "agents.yaml").write_text(AGENTS)
        (made / "replies.json").write_text(json.dumps(REPLIES))
        done = subprocess.run(
            [troupe, "run", made / "agents.yaml", "--store", "memory:", "--input", "go"],
            capture_output=True, text=True, timeout=120,
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **variables})
    receiver.shutdown()
    assert done.returncode == 0, done.stderr
    assert "telemetry" not in done.stderr, done.stderr
    return receiver.got


def with_bytes(value):
    """Ids are hexadecimal in the JSON of OTLP; protobuf's JSON has base64."""
    if isinstance(value, list):
        return [with_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(each)).decode()
            if key in ("traceId", "spanId", "parentSpanId") else with_bytes(each)
            for key, each in value.items()}


def decode(requests):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    kinds = {"/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
             "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
             "/v1/logs": logs_service_pb2.ExportLogsServiceRequest}
    spans, metrics, logs = [], [], []
    for path, form, body in requests:
        if form == "application/json":
            read = json_format.ParseDict(with_bytes(json.loads(body)), kinds[path]())
        else:
            assert form == "application/x-protobuf", form
            read = kinds[path].FromString(body)
        for group in (*getattr(read, "resource_spans", ()), *getattr(read, "resource_metrics", ()),
                      *getattr(read, "resource_logs", ())):
            (service,) = (each for each in group.resource.attributes if each.key == "service.name")
            assert service.value.string_value == "troupe", service
        for group in getattr(read, "resource_spans", ()):
            spans += [each for scope in group.scope_spans for each in scope.spans]
        for group in getattr(read, "resource_metrics", ()):
            metrics += [each for scope in group.scope_metrics for each in scope.metrics]
        for group in getattr(read, "resource_logs", ()):
            logs += [each for scope in group.scope_logs for each in scope.log_records]
    return spans, metrics, logs


def facts_of(record):
    return {each.key: each.value for each in record.attributes}


def check(requests):
    spans, metrics, logs = decode(requests)
    names = {each.span_id: each.name for each in spans}
    assert len(names) == len(spans), "two spans have the same id"
    assert len({each.trace_id for each in spans}) == 1, spans
    model = next(each.name for each in spans if each.name.startswith("generate_content"))
    relations = sorted((each.name, names.get(each.parent_span_id, "-")) for each in spans)
    assert relations == sorted([
        ("invoke_workflow root", "-"),
        ("invoke_agent root", "invoke_workflow root"),
        ("invoke_agent lanes", "invoke_agent root"),
        ("invoke_agent left", "invoke_agent lanes"),
        ("invoke_agent right", "invoke_agent lanes"),
        ("invoke_agent last", "invoke_agent root"),
        ("execute_tool exit_loop", "invoke_agent left"),
        *((model, f"invoke_agent {each}") for each in calls_of(spans, names))]), relations
    assert all(each.end_time_unix_nano >= each.start_time_unix_nano > 0 for each in spans)
    asked = [each for each in spans
             if names.get(each.parent_span_id) == "invoke_agent right"]
    facts = facts_of(asked[0])
    assert facts["gen_ai.usage.input_tokens"].int_value == 7, facts
    assert facts["gen_ai.usage.output_tokens"].int_value == 3, facts
    reasons = facts["gen_ai.response.finish_reasons"].array_value.values
    assert [each.string_value for each in reasons] == ["stop"], reasons
    durations = next(each for each in metrics if each.name == "gen_ai.invoke_agent.duration")
    assert durations.unit == "s", durations
    for point in durations.histogram.data_points:
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, point
        assert sum(point.bucket_counts) == point.count == 1, point
    assert {facts_of(each)["gen_ai.agent.name"].string_value
            for each in durations.histogram.data_points} == {"root", "lanes", "left", "right", "last"}
    assert all(each.event_name == "gen_ai.client.inference.operation.details" for each in logs), logs
    assert {each.span_id for each in logs} == {
        each.span_id for each in spans if each.name == model}, logs
    return logs


def calls_of(spans, names):
    """The agents that have asked a model; `left` asks again unless its tool has ended it."""
    asked = sorted(names[each.parent_span_id].split()[1] for each in spans
                   if each.name.startswith("generate_content"))
    assert asked in (["last", "left", "left", "right"], ["last", "left", "right"]), asked
    return asked


def main(troupe, folder):
    folder = pathlib.Path(folder)
    install(folder)
    (packages,) = (folder / "python/lib").glob("python*/site-packages")
    sys.path.insert(0, str(packages))
    capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    for protocol in ("http/protobuf", "http/json"):
        requests = run(troupe, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
        check(requests)
        assert all(b"secret" not in body for _, _, body in requests), protocol
        logs = check(run(troupe, OTEL_EXPORTER_OTLP_PROTOCOL=protocol, **{capture: "event_only"}))
        said = [json.loads(facts_of(each)["gen_ai.output.messages"].string_value) for each in logs]
        assert any(each[0]["parts"][0].get("content") == "secret end" for each in said), said
    assert run(troupe, OTEL_SDK_DISABLED="true") == []
    print("The library of OpenTelemetry reads all requests.")


if __name__ == "__main__":
    main(*sys.argv[1:])
