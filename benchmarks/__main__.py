"""Run every benchmark and print ratios: `make bench`, or `python -m benchmarks foundation`."""

from __future__ import annotations

import sys

from benchmarks import exactness, foundation, private_lasso

BENCHMARKS = {
    "foundation": foundation.main,
    "exactness": exactness.main,
    "private-lasso": private_lasso.main,
}


def main() -> None:
    unknown = [name for name in sys.argv[1:] if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
