"""Run every benchmark in turn: `python -m benchmarks`, or only those named: `python -m benchmarks games`.

A benchmark has a `main`; a longer study, made once and kept in docs/results, has a `study` and is run by its own name.
"""

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> None:
    """Run the benchmarks with these names, all of them if there are none."""
    every = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    unknown = [name for name in names if name not in every]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}: there are {', '.join(every)}")
    for name in names or every:
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "main"):
            print(f"== {name}", flush=True)
            module.main()


if __name__ == "__main__":
    main(sys.argv[1:])
