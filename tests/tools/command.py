"""The command line, as a real process and in this one."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from dpscreen.cli.app import dpscreen as app

MAIN = "import sys; sys.argv[0] = 'dpscreen'; from dpscreen.cli import main; main()"


def command_line(*arguments: object, before: str = "") -> list[str]:
    """Return what starts `dpscreen` in a new process; warnings are errors there."""
    code = f"{before}\n{MAIN}"
    return [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]


def dpscreen(
    *arguments: object, cwd: object = None, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a real process; `before` is code that it starts with."""
    return subprocess.run(
        command_line(*arguments, before=before),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
        timeout=180,
        check=False,
    )


def here(
    *arguments: object, cwd: object = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, as if it were one of its own: a second start is not paid.

    What the command does not catch is raised: it would be a traceback in the shell.
    """
    with contextlib.chdir(Path.cwd() if cwd is None else str(cwd)):
        done = CliRunner(env=environment).invoke(app, [str(one) for one in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def invoke(*arguments: object) -> Result:
    """Run the command in this process, which is quicker."""
    return CliRunner().invoke(app, [str(one) for one in arguments])


Done = Result | subprocess.CompletedProcess[str]


def code_of(done: Done) -> int:
    return done.exit_code if isinstance(done, Result) else done.returncode


def succeeded(done: Done, *words: str, **streams: str) -> Done:
    """Return what a command did, if it succeeded, said these words, and no more on some streams."""
    assert code_of(done) == 0, done.stderr
    for one in words:
        assert one in done.stdout + done.stderr
    for name, text in streams.items():
        assert getattr(done, name) == text
    return done


def failed(done: Done, code: int, *words: str, stdout: str | None = None) -> Done:
    """Return what a command did, if it failed with a code, in sentences with these words."""
    assert code_of(done) == code, done.stderr
    for one in words:
        assert one in done.stderr
    assert "Traceback" not in done.stderr
    assert stdout is None or done.stdout == stdout
    return done
