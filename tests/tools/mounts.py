"""Mounts that only one command can see, where the system permits them (Linux)."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

MOUNT = 'mount --bind "$1" "$2" && mount -o "remount,bind,$3" "$2" && shift 3 && exec "$@"'


def mounted(source: Path, target: Path, options: str = "rw") -> list[str]:
    """Return what to put before a command so that it finds the source at the target as well."""
    return ["unshare", "-m", "sh", "-c", MOUNT, "sh", str(source), str(target), options]


@cache
def may_mount() -> bool:
    """Whether that works here."""
    if shutil.which("unshare") is None:
        return False
    asked = [*mounted(Path("/tmp"), Path("/tmp")), "true"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
