"""Record anew: `python tests/golden/record.py [PART_OF_A_NAME]`, and say in the commit why."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

from golden_cases import CASES
from golden_values import FILE, read_golden, write_golden


def main(part: str = "") -> None:
    """Run the cases whose names hold this part, and keep what is recorded of the others."""
    warnings.simplefilter("ignore")
    golden = read_golden() if part and FILE.exists() else {}
    records = {name: golden[name] for name in CASES if name in golden}
    for name in (name for name in CASES if part in name):
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            records[name] = CASES[name](Path(folder))
        print(f"{time.perf_counter() - begun:6.2f} s  {name}")
    write_golden(records)


if __name__ == "__main__":
    main(*sys.argv[1:])
