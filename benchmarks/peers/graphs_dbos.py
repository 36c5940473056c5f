"""Measures workflows of DBOS: a chain of steps, as in `./dev bench --only graphs`.

usage: graphs_dbos.py [ROUNDS [DATABASE_URL]]

Needs dbos 3.4.0 from PyPI. Without DATABASE_URL (postgresql://…) the steps are stored in a SQLite
file in a temporary folder. Prints the median over ROUNDS (3 by default) of the wall time per step.
"""

import os
import statistics
import sys
import tempfile
import time

from dbos import DBOS

CHAIN = 1_000


@DBOS.step()
def numbered(index):
    return index


@DBOS.workflow()
def chain():
    last = 0
    for index in range(CHAIN):
        last = numbered(index)
    return last


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[2] if len(sys.argv) > 2 else f"sqlite:///{os.path.join(folder, 'graphs.db')}"
        DBOS(config={"name": "graphs", "system_database_url": url, "log_level": "ERROR",
                     "run_admin_server": False})
        DBOS.launch()
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            chain()
            times.append((time.perf_counter() - began) / CHAIN * 1e6)
        where = url.split(":", 1)[0]
        print(f"chain of 1,000 steps, {where:<21} {statistics.median(times):9.1f} us wall per step",
              flush=True)
        DBOS.destroy()


if __name__ == "__main__":
    main()
