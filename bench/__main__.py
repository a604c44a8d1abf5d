"""Run the named benchmarks, or all of them."""

import os
import platform
import sys
import tempfile
from pathlib import Path

from bench import context, history, hooks, mcp, page, patterns, run, search, startup

MEASURES = {
    **history.MEASURES,
    **search.MEASURES,
    **context.MEASURES,
    **startup.MEASURES,
    **hooks.MEASURES,
    **mcp.MEASURES,
    **page.MEASURES,
    **run.MEASURES,
    **patterns.MEASURES,
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(MEASURES)
    unknown = [name for name in chosen if name not in MEASURES]
    if unknown:
        sys.exit(
            f"no benchmark is called '{unknown[0]}'; "
            f"the benchmarks are: {', '.join(MEASURES)}"
        )
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    missed = 0
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
            for figure in MEASURES[name](Path(folder)):
                mark = "ok  " if figure.is_met else "MISS"
                missed += not figure.is_met
                print(f"{mark} {figure.name}: {figure.value}  (target {figure.target})")
                print(f"     {figure.baseline}", flush=True)
    sys.exit(1 if missed else 0)
