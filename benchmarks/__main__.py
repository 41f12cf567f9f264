"""Run every benchmark in turn: `python -m benchmarks`, or only those named: `python -m benchmarks games`.

A benchmark has a `main`; a longer study, made once and kept in docs/results, has a `study` and is run by its own name.
A check with options of its own has a `command` that takes the rest of the line, and runs only when it is named first.
"""

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> int:
    """Run the benchmarks with these names, all of them if there are none."""
    every = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    if names and names[0] in every:
        first = importlib.import_module(f"benchmarks.{names[0]}")
        if hasattr(first, "command"):
            return int(first.command(names[1:]))
    unknown = [name for name in names if name not in every]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}: there are {', '.join(every)}")
    for name in names or every:
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "main"):
            print(f"== {name}", flush=True)
            module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
