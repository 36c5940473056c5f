"""Compares the drawings of `troupe serve` with those of ADK Python.

`check_graphs.py TROUPE ENVIRONMENT`: installs the pinned ADK from PyPI into the virtual
environment ENVIRONMENT unless it is there, and runs itself in it. Ends with 77 if PyPI cannot be
reached.

Both read the same agent files. `build_graph` gives the same JSON. The graph of `build_graph_image`
has a node for each agent and tool that ADK draws, and the edges of ADK that lead to tools and to
agents below LLM agents.
"""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
for each in ("cli/adk", "pages"):
    sys.path.insert(0, str(TESTS / each))

FILES = {
    "root_agent.yaml": """
        agent_class: LlmAgent
        name: desk
        model: gemini-3-pro-preview
        description: The desk.
        instruction: Route "each" request.
        tools:
          - name: google_search
        sub_agents:
          - config_path: reviews.yaml
          - config_path: booker.yaml
        """,
    "booker.yaml": """
        name: booker
        model: gemini-2.5-flash
        instruction: Book.
        disallow_transfer_to_parent: true
        disallow_transfer_to_peers: true
        include_contents: none
        output_key: booking
        tools:
          - name: AgentTool
            args: {agent: {config_path: helper.yaml}}
        """,
    "helper.yaml": """
        name: helper
        model: gemini-2.5-flash
        instruction: Help.
        """,
    "reviews.yaml": """
        agent_class: SequentialAgent
        name: reviews
        sub_agents:
          - config_path: both.yaml
          - config_path: refine.yaml
        """,
    "both.yaml": """
        agent_class: ParallelAgent
        name: both
        description: Asks two.
        sub_agents:
          - config_path: left.yaml
        """,
    "left.yaml": """
        name: left
        model: gemini-2.5-flash
        instruction: Left.
        """,
    "refine.yaml": """
        agent_class: LoopAgent
        name: refine
        max_iterations: 3
        sub_agents:
          - config_path: critic.yaml
        """,
    "critic.yaml": """
        name: critic
        model: gemini-2.5-flash
        instruction: Criticise.
        tools:
          - name: exit_loop
        """,
}

# Edges of ADK from an agent to the agents that it runs itself; here they show the order.
FLOWS = {"reviews", "both", "refine"}


def expect_equal(found, wanted, about):
    if found != wanted:
        sys.exit(f"{about}:\n{found!r}\nin place of\n{wanted!r}")


def edges_of(graph):
    return set(re.findall(r'"?([\w.-]+)"? -> "?([\w.-]+)"?', graph))


def nodes_of(graph):
    return set(re.findall(r'^\s*"?([\w.-]+)"? \[.*label=', graph, re.MULTILINE))


def drawn_by_adk(folder):
    from google.adk.agents.config_agent_utils import from_config
    from google.adk.apps import App
    from google.adk.cli.utils.graph_serialization import serialize_app_info
    from google.adk.cli.utils.graph_visualization import plot_workflow_graph

    root = from_config(str(folder / "root_agent.yaml"))
    form = serialize_app_info(App(name="desk", root_agent=root))
    return json.loads(json.dumps(form)), plot_workflow_graph(form, format="dot", dark_mode=False)


def main(troupe):
    from check_server_page import Server

    os.environ["GOOGLE_API_KEY"] = "none"
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        agents = folder / "agents" / "desk"
        agents.mkdir(parents=True)
        for name, text in FILES.items():
            (agents / name).write_text(text, encoding="utf-8")
        wanted, wanted_graph = drawn_by_adk(agents)
        with contextlib.closing(Server(troupe, folder)) as server:
            found = server.ask("GET", "/dev/apps/desk/build_graph")
            images = server.ask("GET", "/dev/apps/desk/build_graph_image?dark_mode=false")
    expect_equal(found, wanted, "build_graph")
    expect_equal(list(images), [""], "paths of build_graph_image")
    graph = images[""]["dotSrc"]
    expect_equal(nodes_of(graph), nodes_of(wanted_graph), "nodes")
    missing = {(start, end) for start, end in edges_of(wanted_graph) - edges_of(graph)
               if start not in FLOWS}
    expect_equal(missing, set(), "edges of ADK that are missing")
    print("build_graph and build_graph_image agree with ADK Python")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        from check_with_adk import install

        interpreter = install(pathlib.Path(sys.argv[2]))
        os.execv(interpreter, [interpreter, "-W", "ignore", __file__, sys.argv[1]])
    main(sys.argv[1])
