"""Decodes the telemetry of `troupe run` and `troupe serve` with the library of OpenTelemetry from
PyPI, and the metrics of `troupe serve` with that of Prometheus.

`check_receiver.py TROUPE FOLDER`: installs the pinned libraries into FOLDER unless they are there.
Ends with 77 if there is no Python's venv, or if PyPI cannot be reached.
"""

import base64
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request

PYPI = ["opentelemetry-proto==1.45.2", "prometheus-client==0.21.1"]
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
# The model of `last` is another process: a server of this program.
SERVED = AGENTS.replace(
    'name: last, model: "scripted:replies.json"',
    "name: last, model: {name: 'openai:m', base_url: '%s/v1'}")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
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


class Model(http.server.ThreadingHTTPServer):
    """Answers in the format of OpenAI, and keeps the headers of the requests."""

    def __init__(self):
        self.got = []
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(dict(self.headers.items()))
        pieces = [{"model": "m", "choices": [{"index": 0, "delta": {"content": "the end"}}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        body = "".join(f"data: {json.dumps(each)}\n\n" for each in pieces) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *unused):
        pass


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


def ask(url, body=None, **headers):
    """The text of an answer; a failure raises."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read().decode()


def serve(troupe):
    """The requests that a served run sends, those to its model, and the metrics."""
    receiver, model = Receiver(), Model()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        (made / "root_agent.yaml").write_text(SERVED % model.url)
        (made / "replies.json").write_text(json.dumps(REPLIES))
        served = subprocess.Popen(
            [troupe, "serve", made, "--port", "0", "--store", "memory:", "--log-format", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
        try:
            url = json.loads(served.stdout.readline())["address"]
            ask(f"{url}/apps/root/users/ann/sessions", {"sessionId": "s1"})
            said = json.loads(ask(
                f"{url}/run",
                {"userId": "ann", "sessionId": "s1", "newMessage": {"parts": [{"text": "go"}]}},
                traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="vendor=x"))
            assert said[-1]["content"]["parts"][0]["text"] == "the end", said
            ready = json.loads(ask(f"{url}/ready"))
            assert ready == {"status": "ready"}, ready
            metrics = ask(f"{url}/metrics")
        finally:
            served.send_signal(signal.SIGTERM)
            _, errors = served.communicate(timeout=60)
    receiver.shutdown()
    model.shutdown()
    assert served.returncode == 143, errors
    for line in errors.splitlines():
        assert json.loads(line)["severity"] == "INFO", line
    return receiver.got, model.got, metrics


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
    relations = sorted((each.name, names.get(each.parent_span_id, "-")) for each in spans
                       if each.name != "append_event")
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
    appends = [each for each in spans if each.name == "append_event"]
    assert {names[each.parent_span_id] for each in appends} == {
        "invoke_agent left", "invoke_agent right", "invoke_agent last"}, appends
    events = {facts_of(each)["gcp.vertex.agent.event_id"].string_value for each in appends}
    assert "" not in events and len(events) == len(appends), appends
    asked = [each for each in spans if each.name == model
             and names.get(each.parent_span_id) == "invoke_agent right"]
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


def check_joined(requests, asked):
    """All spans are in the trace of the request, and so is the request to the model."""
    spans, _, _ = decode(requests)
    names = {each.span_id: each.name for each in spans}
    assert {each.trace_id.hex() for each in spans} == {TRACE}, spans
    assert {each.trace_state for each in spans} == {"vendor=x"}, spans
    outside = [(each.name, each.parent_span_id.hex()) for each in spans
               if each.parent_span_id not in names]
    assert outside == [("invoke_workflow root", SPAN)], outside
    relations = {(each.name, names.get(each.parent_span_id)) for each in spans}
    assert {("execute_tool exit_loop", "invoke_agent left"),
            ("invoke_agent left", "invoke_agent lanes"),
            ("invoke_agent right", "invoke_agent lanes"),
            ("invoke_agent last", "invoke_agent root")} <= relations, relations
    (call,) = (each for each in spans if names.get(each.parent_span_id) == "invoke_agent last"
               and each.name.startswith("generate_content"))
    (headers,) = ({key.lower(): each for key, each in got.items()} for got in asked)
    assert headers["traceparent"] == f"00-{TRACE}-{call.span_id.hex()}-01", headers
    assert headers["tracestate"] == "vendor=x", headers


def check_metrics(text):
    from prometheus_client import parser
    families = list(parser.text_string_to_metric_families(text))
    samples = {each.name: each.value for family in families for each in family.samples}
    assert samples["troupe_runs_started_total"] == 1, samples
    assert samples["troupe_runs_failed_total"] == 0, samples
    assert samples["troupe_runs_active"] == 0, samples
    assert samples["troupe_store_changes_total"] > 0, samples
    assert {each.type for each in families} <= {"counter", "gauge", "histogram"}, families
    assert all(each.documentation for each in families), families
    # No names of users, sessions or agents.
    labels = {word for family in families for each in family.samples for word in each.labels.values()}
    assert not labels & {"ann", "s1", "left", "right", "last"}, labels


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
    requests, asked, metrics = serve(troupe)
    check_joined(requests, asked)
    check_metrics(metrics)
    print("The libraries of OpenTelemetry and Prometheus read all requests and metrics.")


if __name__ == "__main__":
    main(*sys.argv[1:])
