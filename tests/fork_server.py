"""The command `sparingly` and Jupyter's kernel without their seconds of start-up, for pages and notebooks.

One process has imported everything that they need, and forks for each command that is typed: the copy takes over
the caller's files, folder, environment and arguments, runs the command from its beginning and gives its exit code. That
commands also start from nothing is tested by those tests that start a process of their own.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
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
FOR_NOTEBOOKS = ("nbclient", "ipykernel.kernelapp", "ipykernel.zmqshell")
TYPED = """#!{python} -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = json.dumps([{program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [b"%12d" % len(words)], [0, 1, 2])
server.sendall(words)
sys.exit((server.recv(1) or b"\\xff")[0])
"""


def install(command: Path, program: str = "sparingly") -> None:
    """Write a program that runs one of `PROGRAMS`; the server starts with the first of them."""
    command.write_text(TYPED.format(python=sys.executable, address=_address(), program=program))
    command.chmod(0o755)


def _sparingly(arguments: list[str]) -> None:
    from sparingly.commands.main import main

    main(arguments)


def _kernel(arguments: list[str]) -> None:
    """The process in which a notebook's cells run."""
    import matplotlib
    from ipykernel.kernelapp import IPKernelApp

    matplotlib.use("module://matplotlib_inline.backend_inline")  # as a kernel that starts from nothing has it
    IPKernelApp.launch_instance(arguments)


def _notebook(arguments: list[str]) -> None:
    """Run the cells of a notebook as Jupyter does, and write the notebook with their outputs."""
    import nbclient
    import nbformat

    source, target, kernel = arguments
    notebook = nbformat.read(source, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name=kernel).execute()
    nbformat.write(notebook, target)


PROGRAMS = {"sparingly": _sparingly, "kernel": _kernel, "notebook": _notebook}


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
    for name in (*PRELOADED, *FOR_NOTEBOOKS):
        importlib.import_module(name)
    gc.freeze()
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
    program, arguments, folder, environment = json.loads(text)
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        sys.argv[:] = [program, *arguments]
        PROGRAMS[program](arguments)
        code = 0
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
