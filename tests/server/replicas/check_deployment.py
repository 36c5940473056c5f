"""Checks the files in docs/deployment against `troupe serve` and the packages of this machine.

`check_deployment.py TROUPE`: each metric of the dashboard is served by `/metrics` or is a histogram
of docs/telemetry.md, and the dashboard has the fields that Grafana needs; each option in the files
is one of `troupe serve`; the image has the packages that ./dev installs, and the libraries of the
program.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEPLOYMENT = ROOT / "docs" / "deployment"
# Words of PromQL, and labels.
METRIC = re.compile(r"\b(?:troupe|gen_ai)_\w+")
LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without) *\([^)]*\)")
# A histogram in the form of Prometheus.
PARTS = re.compile(r"_(?:bucket|sum|count)$")
UNITS = {"s": "_seconds"} # Units in braces are left out of the name.

findings = []


def expect(condition, text):
    if not condition:
        findings.append(text)


# -- the dashboard ----


def served_metrics(program):
    """Returns the names that /metrics of a server has."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "init", "desk", "--no-program"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        with subprocess.Popen([program, "serve", "desk", "--port", "0", "--store", "memory:"],
                              cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().split(" on ")[1].strip()
                with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
                    text = answer.read().decode()
            finally:
                server.terminate()
    return set(re.findall(r"^# TYPE (\S+)", text, re.M))


def documented_histograms():
    """Returns the histograms of docs/telemetry.md under their names in Prometheus."""
    page = (ROOT / "docs" / "telemetry.md").read_text()
    section = page.split("\n## Histograms\n")[1].split("\n## ")[0]
    found = set()
    for names, unit in re.findall(r"^\| (`.*?) \| (\S+) \|", section, re.M):
        for name in re.findall(r"`([^`]+)`", names):
            found.add(name.replace(".", "_") + UNITS.get(unit, ""))
    return found


def check_dashboard(program):
    board = json.loads((DEPLOYMENT / "dashboard.json").read_text())
    expect(isinstance(board.get("schemaVersion"), int), "the dashboard has no schemaVersion")
    expect(board.get("title") and board.get("uid"), "the dashboard has no title or uid")
    variables = {each["name"]: each for each in board["templating"]["list"]}
    source = variables.get("datasource", {})
    expect(source.get("type") == "datasource" and source.get("query") == "prometheus",
           "the dashboard has no variable for its data source")
    panels = board["panels"]
    expect(len({each["id"] for each in panels}) == len(panels) > 0, "ids of panels repeat")
    known = served_metrics(program)
    expect(len(known) >= 9, f"/metrics serves only {known}")
    histograms = documented_histograms()
    expect(len(histograms) >= 7, f"docs/telemetry.md lists only {histograms}")
    shown = set()
    taken = set()
    for panel in panels:
        name = panel["title"]
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        expect(not cells & taken and max(x for x, _ in cells) < 24, f"{name} overlaps a panel")
        taken |= cells
        expect(panel["type"] and panel["targets"], f"{name} shows nothing")
        for target in panel["targets"]:
            expect(target["datasource"]["uid"] == "${datasource}", f"{name} has another source")
            for variable in re.findall(r"\$(\w+)", target["expr"]):
                expect(variable in variables or variable.startswith("__"),
                       f"{name} uses the unknown variable {variable}")
            found = METRIC.findall(LABELS.sub("", target["expr"]))
            expect(target["refId"] and found, f"{name} asks for no metric: {target['expr']}")
            shown.update(found)
    for metric in sorted(shown):
        histogram = PARTS.sub("", metric)
        expect(metric in known or (histogram != metric and histogram in histograms),
               f"the dashboard shows {metric}, which nothing tells")
    expect(shown >= known, f"the dashboard does not show {known - shown}")


# -- the other files ----


def check_options(program):
    text = subprocess.run([program, "serve", "--help"], check=True, capture_output=True,
                          text=True).stdout
    for name in ("troupe.service", "kubernetes.yaml"):
        lines = [line for line in (DEPLOYMENT / name).read_text().splitlines()
                 if not line.lstrip().startswith("#")]
        options = set(re.findall(r"(?<=[ ])--[a-z][a-z-]*", "\n".join(lines)))
        expect(len(options) >= 5, f"{name} has only the options {options}")
        for option in sorted(options):
            expect(re.search(rf"(?:^|[ ,]){option}(?:[ ,]|$)", text, re.M),
                   f"{name} has {option}, which troupe serve does not")


def packages_in(stage):
    command = stage.replace("\\\n", " ").split("--no-install-recommends")[1].split("\n")[0]
    return set(command.split("&&")[0].split())


def check_image(program):
    _, build, image = (DEPLOYMENT / "Containerfile").read_text().split("FROM debian:12")
    script = (ROOT / "dev").read_text()
    listed = script.split("packages_build=(")[1].split("\n)")[0]
    wanted = set(re.sub("#.*", "", listed).split()) - {"make", "ccache"}
    expect(packages_in(build) == wanted,
           f"the image is built with other packages than ./dev installs: "
           f"{packages_in(build) ^ wanted}")
    if shutil.which("dpkg-query") is None or shutil.which("readelf") is None:
        print("not checked: the libraries of the image, without dpkg-query or readelf")
        return
    # The packages of the libraries that the program names itself; these depend on all others.
    names = re.findall(r"\(NEEDED\).*\[(.+)\]",
                       subprocess.run(["readelf", "-d", program], check=True, capture_output=True,
                                      text=True).stdout)
    expect(len(names) >= 10, f"the program needs only {names}")
    for name in names:
        found = subprocess.run(["dpkg-query", "-S", f"*-linux-gnu*/{name}"], check=False,
                               capture_output=True, text=True).stdout
        owners = {line.split(":")[0] for line in found.splitlines()}
        # The last three are in every image.
        expect(owners & (packages_in(image) | {"libc6", "libgcc-s1"}),
               f"the image has no package with {name}: {owners}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    check_dashboard(program)
    check_options(program)
    check_image(program)
    if findings:
        sys.exit("\n".join(findings))
    print("the files in docs/deployment are right")


if __name__ == "__main__":
    main()
