"""The picture of the tutorial, report.png: `python docs/images/draw.py` asks Chromium for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def report() -> None:
    """Fit as the tutorial does, and photograph the page."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no chromium: report.png is left as it is")
        return
    with tempfile.TemporaryDirectory() as place:
        command = Path(sys.executable).with_name("dpscreen")
        subprocess.run(
            [sys.executable, HERE.parent / "diabetes/write_csv.py"], cwd=place, check=True
        )
        fit = "fit diabetes.csv --epsilon 3 --delta 1e-4 --rows-public 440 -o model.json"
        schema = HERE.parent / "diabetes/schema.json"
        options = [*fit.split(), "--report", "report.html", "--schema", schema]
        subprocess.run([command, *options], cwd=place, check=True, stdout=subprocess.DEVNULL)
        shot = [f"--screenshot={HERE / 'report.png'}", "--window-size=1280,1000"]
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        page = (Path(place) / "report.html").as_uri()
        subprocess.run([browser, *quiet, *shot, page], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    report()
