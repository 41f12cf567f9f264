"""The commands of `sparingly agent` for the agents of a service: list, pause, rename, delete and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparingly.commands.service_commands import STORE, Place, service_database

if TYPE_CHECKING:
    from sparingly.live.service.agent_registry import AgentRegistry

AgentName = Annotated[str, typer.Argument(metavar="NAME", help="An agent of the service.")]


def register(agent: typer.Typer) -> None:
    """Add the commands to those of one agent."""
    agent.command("list")(list_agents)
    for command in (pause, resume, archive, unarchive, rename, delete):
        agent.command()(command)


def list_agents(store: Place = STORE) -> None:
    """List the agents of a service and their states."""
    for name, one in _registry(store).all().items():
        typer.echo(f"{one.state:<8}  {name}")


def pause(name: AgentName, store: Place = STORE) -> None:
    """Let an agent of a service take no observations; its questions stay answerable."""
    _change_state(name, "pause", store)


def resume(name: AgentName, store: Place = STORE) -> None:
    """Let a paused agent take observations again."""
    _change_state(name, "resume", store)


def archive(name: AgentName, store: Place = STORE) -> None:
    """Let an agent of a service only be read from now on."""
    _change_state(name, "archive", store)


def unarchive(name: AgentName, store: Place = STORE) -> None:
    """Let an archived agent work again."""
    _change_state(name, "unarchive", store)


def rename(name: AgentName, new: Annotated[str, typer.Argument(help="Its new name.")], store: Place = STORE) -> None:
    """Give an agent of a service another name."""
    from sparingly.live.service.auth.tokens import Operator

    _registry(store).rename(name, new, Operator.current())
    typer.echo(f"{name} is now {new}")


def delete(
    name: AgentName,
    store: Place = STORE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
) -> None:
    """Delete an agent of a service, with all it knows."""
    from sparingly.live.service.agent_directory import Agents
    from sparingly.live.service.auth.tokens import Operator

    if not yes:
        typer.confirm(f"delete agent {name} of {store} for good?", abort=True)
    gone = Agents(service_database(store)).delete(name, Operator.current())
    typer.echo(f"{name} is deleted" if gone else f"{name} is deleted as soon as the running service closes it")


def _change_state(name: str, what: str, store: str) -> None:
    from sparingly.live.service.auth.tokens import Operator

    typer.echo(f"{name} is {_registry(store).change_state(name, what, Operator.current())}")


def _registry(store: str) -> AgentRegistry:
    from sparingly.live.service.agent_registry import AgentRegistry

    return AgentRegistry(service_database(store))
