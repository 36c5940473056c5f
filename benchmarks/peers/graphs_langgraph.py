"""Measures workflow graphs of LangGraph: the rows of `./dev bench --only graphs`.

usage: graphs_langgraph.py [ROUNDS]

Needs langgraph 1.2.22 and langgraph-checkpoint-sqlite 3.1.2 from PyPI. Prints the median over
ROUNDS (3 by default) of the wall time per node. A node returns its number and keeps nothing
else, as the nodes of the benchmark of troupe do.
"""

import operator
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

CHAIN = 1_000
FAN = 10_000


class Last(TypedDict):
    output: int


class Collected(TypedDict):
    outputs: Annotated[list, operator.add]


def chain(saver):
    graph = StateGraph(Last)
    before = START
    for index in range(CHAIN):
        name = f"n{index}"
        graph.add_node(name, lambda state, index=index: {"output": index})
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    return graph.compile(checkpointer=saver)


def fan(saver):
    graph = StateGraph(Collected)
    names = [f"n{index}" for index in range(FAN)]
    for index, name in enumerate(names):
        graph.add_node(name, lambda state, index=index: {"outputs": [index]})
        graph.add_edge(START, name)
    graph.add_node("all", lambda state: {})
    graph.add_edge(names, "all")
    graph.add_edge("all", END)
    return graph.compile(checkpointer=saver)


def microseconds(graph, start, nodes, thread):
    config = {"recursion_limit": nodes + 10, "configurable": {"thread_id": thread}}
    began = time.perf_counter()
    graph.invoke(start, config)
    return (time.perf_counter() - began) / nodes * 1e6


def print_row(what, rounds, graph, start, nodes):
    times = [microseconds(graph, start, nodes, f"t{turn}") for turn in range(rounds)]
    print(f"{what:<44} {statistics.median(times):9.1f} us wall per node", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    first = {"output": 0}
    print_row("chain of 1,000 nodes, no checkpointer", rounds, chain(None), first, CHAIN)
    print_row("chain of 1,000 nodes, in memory", rounds, chain(InMemorySaver()), first, CHAIN)
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(os.path.join(folder, "graphs.db"), check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        line = chain(SqliteSaver(database))
        print_row("chain of 1,000 nodes, SQLite", rounds, line, first, CHAIN)
        database.close()
    first = {"outputs": []}
    print_row("fan-out and join of 10,000, no checkpointer", rounds, fan(None), first, FAN)
    print_row("fan-out and join of 10,000, in memory", rounds, fan(InMemorySaver()), first, FAN)


if __name__ == "__main__":
    main()
