"""The command `sparingly` and Jupyter's kernel without their seconds of start-up, for pages and notebooks.

One process has imported everything that they need, and forks for each command that is typed: the copy takes over
the caller's files, folder, environment and arguments, runs the command from its beginning and gives its exit code; it
ends with its caller. That commands also start from nothing is tested by those tests that start a process of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PRELOADED = (
    *("sparingly.commands.main", "sparingly.live.service.server", "sparingly.live.consultation.consultation"),
    *("sparingly.experiments.runs.many_runs", "sparingly.experiments.reports.report", "sparingly.experts", "sklearn"),
    *("pandas", "duckdb", "matplotlib.figure", "sklearn.ensemble", "sparingly.encoders"),
)
FOR_NOTEBOOKS = ("nbclient", "ipykernel.kernelapp", "ipykernel.zmqshell")
TYPED = """#!{python} -SE
import json, os, signal, socket, sys
server, is_ended = socket.socket(socket.AF_UNIX), []
def end(*_):
    is_ended.append(True)
    server.shutdown(socket.SHUT_WR)
server.connect({address!r})
signal.signal(signal.SIGTERM, end)
words = json.dumps([{program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [b"%12d" % len(words)], [0, 1, 2])
server.sendall(words)
code = server.recv(1)
if is_ended and not code:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
sys.exit((code or b"\\xff")[0])
"""


def install(command: Path, program: str = "sparingly") -> None:
    """Write a program that runs one of `PROGRAMS`; the server starts with the first of them."""
    command.write_text(TYPED.format(python=sys.executable, address=_address(), program=program))
    command.chmod(0o755)


def python(folder: Path) -> list[str]:
    """What stands for `python -c`, with everything imported that the program needs."""
    install(folder / "forked-python", "python")
    return [str(folder / "forked-python")]


def python_module(folder: Path, name: str) -> list[str]:
    """What stands for `python -m`."""
    return [*python(folder), f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"]


def _sparingly(arguments: list[str]) -> None:
    from joblib.externals.loky.backend.context import set_start_method

    from sparingly.commands.main import main

    set_start_method("fork", force=True)  # of the workers of `run`; tests/experiments/runs starts them from nothing
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


def _python(arguments: list[str]) -> None:
    """The program that the first argument holds."""
    sys.argv[:] = ["-c", *arguments[1:]]
    exec(compile(arguments[0], "<forked>", "exec"), {"__name__": "__main__"})


PROGRAMS = {"sparingly": _sparingly, "python": _python, "kernel": _kernel, "notebook": _notebook}


@functools.cache
def _address() -> str:
    """Where the server of this test run listens; the first worker that needs it starts it."""
    run, everyone = os.environ.get("PYTEST_XDIST_TESTRUNUID"), os.getppid()
    run, everyone = (run, everyone) if run else (f"{os.getpid()}", os.getpid())
    folder = Path(tempfile.gettempdir(), f"sparingly-fork-{run}")
    folder.mkdir(mode=0o700, exist_ok=True)
    address = f"{folder}/commands"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not Path(address).exists():
            path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")])
            environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
            command = [sys.executable, "-m", "tests.fork_server", address, str(everyone)]
            server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
            assert server.stdout is not None
            assert server.stdout.readline() == b"listening\n", "the server of commands did not start"
    return address


def serve(address: str, everyone: int) -> None:
    """Serve until the process for which everything is done has ended."""
    for name in (*PRELOADED, *FOR_NOTEBOOKS):
        importlib.import_module(name)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    listening.settimeout(1.0)
    os.write(1, b"listening\n")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the commands here
    while True:
        try:
            caller, _ = listening.accept()
        except TimeoutError:
            if _is_alive(everyone):
                continue
            shutil.rmtree(Path(address).parent, ignore_errors=True)
            return
        caller.setblocking(True)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            _take_over(caller)
        caller.close()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _end_with(caller: socket.socket) -> None:
    """Whoever ends the program that a caller typed ends this process, and waits for its end."""
    with contextlib.suppress(OSError):
        caller.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


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
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
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
    serve(sys.argv[1], int(sys.argv[2]))
