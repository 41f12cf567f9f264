"""The command `sparingly` without its seconds of start-up, for pages that type many commands.

One process has imported everything that commands need, and forks for each command that is typed: the copy takes over
the caller's files, folder, environment and arguments, runs the command from its beginning and gives its exit code. That
commands also start from nothing is tested by those tests that start a process of their own.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PRELOADED = (
    *("sparingly.commands.main", "sparingly.live.agent.agent", "sparingly.live.consultation.consultation"),
    *("sparingly.experiments.runs.many_runs", "sparingly.experiments.reports.report", "sparingly.experts", "sklearn"),
    *("pandas", "duckdb", "matplotlib.figure", "sklearn.ensemble", "sparingly.encoders"),
)
TYPED = """#!{python} -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [b"%12d" % len(words)], [0, 1, 2])
server.sendall(words)
sys.exit((server.recv(1) or b"\\xff")[0])
"""


def install(command: Path) -> None:
    """Write a program that runs a command of this very tree; the server starts with the first of them."""
    command.write_text(TYPED.format(python=sys.executable, address=_address()))
    command.chmod(0o755)


@functools.cache
def _address() -> str:
    """Where this process's server listens; it ends with this process."""
    folder = tempfile.TemporaryDirectory()
    address = f"{folder.name}/commands"
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tests.fork_server", address]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"listening\n", "the server of commands did not start"
    atexit.register(lambda: (server.kill(), server.wait(), folder.cleanup()))
    return address


def serve(address: str) -> None:
    for name in PRELOADED:
        __import__(name)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    os.write(1, b"listening\n")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the commands here
    while True:
        caller, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            _take_over(caller)
        caller.close()


def _take_over(caller: socket.socket) -> None:
    """Become the command that a caller typed."""
    size, files, _, _ = socket.recv_fds(caller, 12, 3)
    text = b""
    while len(text) < int(size):
        text += caller.recv(int(size) - len(text))
    arguments, folder, environment = json.loads(text)
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        from sparingly.commands.main import main

        sys.argv[:] = ["sparingly", *arguments]
        main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(bytes([code & 255]))
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
