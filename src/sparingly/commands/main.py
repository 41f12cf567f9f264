"""The command line. Each command is in another module of this folder; here they are only registered.

To add one, import its function and add a line below. A command's module imports what it needs when it runs, so that
every other command starts quickly.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

import sparingly
from sparingly.commands import experiment_commands, served_agent_commands, service_commands
from sparingly.commands.agent_commands import agent
from sparingly.commands.game_command import game
from sparingly.commands.predict_command import predict
from sparingly.commands.simulate_command import simulate
from sparingly.commands.strategies_command import strategies

app = typer.Typer(
    help="Ask experts sparingly.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command()(game)
app.command()(strategies)
experiment_commands.register(app)
served_agent_commands.register(agent)
app.add_typer(agent, name="agent")
app.command()(predict)
service_commands.register(app, routers=["sparingly.adapters.label_studio"])
app.command()(simulate)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Show the version and leave.")) -> None:
    if version:
        typer.echo(f"sparingly {sparingly.__version__}")
        raise typer.Exit


def main(args: Sequence[str] | None = None) -> None:
    """Run a command; what the user got wrong is one line on stderr and exit code 2."""
    try:
        code = app(args=None if args is None else list(args), standalone_mode=False)
    except ImportError as error:
        _leave(_with_extra(error))
    except (ValueError, OSError) as error:
        _leave(str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        # Usage errors derive from no public class of typer, whose click may be its own copy.
        if not hasattr(error, "format_message"):
            raise
        _leave(error.format_message())
    sys.exit(code if isinstance(code, int) else 0)


_EXTRAS = {
    "service": ("fastapi", "uvicorn", "httpx", "jinja2", "PIL", "prometheus_client", "multipart", "sse_starlette"),
    "experiments": ("pandas", "sklearn", "joblib", "pyarrow", "duckdb", "river", "matplotlib"),
}


def _with_extra(error: ImportError) -> str:
    """What is missing, and what to install if the error does not say it itself.

    >>> _with_extra(ImportError("No module named 'fastapi'", name="fastapi"))
    "No module named 'fastapi': pip install 'sparingly[service]'"
    """
    missing = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in _EXTRAS.items() if missing in packages), None)
    if extra is None or "pip install" in str(error):
        return str(error)
    return f"{error}: pip install 'sparingly[{extra}]'"


def _leave(message: str) -> None:
    line = " ".join(message.split())
    sys.stderr.write(f"sparingly: {line}\n")
    sys.exit(2)
