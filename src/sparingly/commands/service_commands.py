"""The commands of the service: serve, token and webhook. What they need is imported when they run."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparingly.commands.cost_options import (
    Cost,
    Costs,
    Horizon,
    MaxCost,
    MaxOpen,
    MaxPerDay,
    MaxPerHour,
    MaxTotal,
    QueryCost,
    stated_costs,
)

if TYPE_CHECKING:
    from sparingly.live.service.auth.tokens import Token, Tokens
    from sparingly.live.service.service import Service
    from sparingly.live.service.service_database import ServiceDatabase
    from sparingly.live.service.webhooks.webhook_outbox import WebhookOutbox

DATA = "SPARINGLY_STORE"
Place = Annotated[str, typer.Option("--store", envvar=DATA, help="A folder, or the URL of a PostgreSQL database.")]
STORE = "sparingly-store"

token = typer.Typer(help="Tokens that let programs and people into the service.", no_args_is_help=True)

webhook = typer.Typer(help="Addresses that a service tells what became of tickets.", no_args_is_help=True)
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="An agent of the service.")]
WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The webhook's id, as `list` shows it.")]


def register(app: typer.Typer, routers: Sequence[str] = ()) -> None:
    """Add the commands to an app; `routers` names modules whose routes are served too."""
    app.command(context_settings={"obj": tuple(routers)})(serve)
    app.add_typer(token, name="token")
    app.add_typer(webhook, name="webhook")


Experts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:PRICE[:gold|:person|:URL]",
        help="Who can be asked, in place of --query-cost: human:1:gold, or one that is called, with the URL of its "
        "API and its model: gpt:0.01:https://api.example.com/v1#small; may be repeated.",
    ),
]
SecondOpinions = Annotated[float | None, typer.Option(help="The share of answers that another person gives, too.")]
InsecureCookie = Annotated[
    bool, typer.Option("--insecure-cookie", help="Let the session's cookie travel over plain HTTP.")
]
AdminTokenFile = Annotated[
    Path | None, typer.Option(help="A file with the first admin's token; or set SPARINGLY_ADMIN_TOKEN.")
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(metavar="ADDRESS", help="A proxy, or a network of them, whose X-Forwarded-For is believed."),
]
WebhookNetworks = Annotated[
    list[str] | None,
    typer.Option(metavar="NETWORK", help="Addresses that are not public, to which webhooks may be sent."),
]


def serve(
    context: typer.Context,
    classes: Annotated[str | None, typer.Option(help="The classes of the first agent, such as cat,dog.")] = None,
    name: Annotated[str, typer.Option(help="The first agent's name.")] = "default",
    cost: Cost = None,
    costs: Costs = None,
    query_cost: QueryCost = 1.0,
    expert: Experts = None,
    strategy: Annotated[str | None, typer.Option(help="The strategy's name; ours if not given.")] = None,
    audit_rate: Annotated[float, typer.Option(help="Share of announcements that are checked all the same.")] = 0.0,
    second_opinions: SecondOpinions = None,
    max_open: MaxOpen = None,
    max_per_hour: MaxPerHour = None,
    max_per_day: MaxPerDay = None,
    max_total: MaxTotal = None,
    max_cost: MaxCost = None,
    horizon: Horizon = None,
    seed: Annotated[int, typer.Option(help="The seed of the first agent's strategy.")] = 0,
    hold: Annotated[bool, typer.Option("--hold", help="Announce nothing before there is a model.")] = False,
    reveal: Annotated[str, typer.Option(help="When people see the agent's guess: after, before, never.")] = "after",
    store: Place = STORE,
    host: Annotated[str, typer.Option(help="The address to listen on; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 finds a free one.")] = 8000,
    max_body: Annotated[int, typer.Option(help="Bytes that one call may have.")] = 16 * 2**20,
    max_features: Annotated[int, typer.Option(help="Features that one observation may have.")] = 200_000,
    rate: Annotated[float, typer.Option(help="Calls a second that one token may make.")] = 2000.0,
    lease: Annotated[float, typer.Option(help="Seconds for which a question is leased to one person.")] = 600.0,
    max_lease: Annotated[float, typer.Option(help="Seconds for which a call may lease one at the most.")] = 3600.0,
    max_leases: Annotated[int, typer.Option(help="Questions that one person may hold at a time.")] = 100,
    retention_days: Annotated[float | None, typer.Option(help="Days after which payloads are erased.")] = None,
    insecure_cookie: InsecureCookie = False,
    admin_token_file: AdminTokenFile = None,
    trusted_proxy: TrustedProxies = None,
    webhook_network: WebhookNetworks = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
) -> None:
    """Serve agents over HTTP, with a page on which people answer."""
    from sparingly.experts import MachineExpert
    from sparingly.experts.expert_options import stated_expert
    from sparingly.live.service import server
    from sparingly.live.service.service import Service
    from sparingly.live.service.service_limits import ServiceLimits
    from sparingly.live.service.web import logs

    logs.configure(log_level, log_format, access_log=access_log)
    limits = ServiceLimits(max_body, max_features, per_second=rate, burst=2 * rate)
    limits = replace(limits, lease_seconds=lease, max_lease_seconds=max_lease, leases=max_leases)
    proxies = [server.checked_network(proxy) for proxy in trusted_proxy or ()]
    admin = server.chosen_secret(admin_token_file)
    experts = [stated_expert(one) for one in expert or ()]
    listener = server.listen(host, port)
    service = Service(
        store,
        limits,
        secure_cookie=not insecure_cookie,
        retention_days=retention_days,
        machines=[one for one in experts if isinstance(one, MachineExpert)],
        webhook_networks=webhook_network or (),
    )
    settings = {
        "costs": stated_costs(costs, cost),
        "query_cost": query_cost,
        "experts": experts or None,
        "strategy": strategy,
        "audit_rate": audit_rate,
        "second_opinions": second_opinions,
        "max_open": max_open,
        "max_per_hour": max_per_hour,
        "max_per_day": max_per_day,
        "max_total": max_total,
        "max_cost": max_cost,
        "horizon": horizon,
        "seed": seed,
        "hold": hold,
        "reveal": reveal,
    }
    _begin(service, name, classes, settings, server.address(listener), admin)
    server.run(service, listener, routers=context.obj, trusted_proxies=proxies)


def _begin(
    service: Service, name: str, classes: str | None, settings: dict[str, Any], address: str, admin: str | None
) -> None:
    """Make the first agent and the first token where there are none, open all agents, and say where they are served."""
    from sparingly.live.service import server

    with service.database.starting():
        server.first_agent(service, name, [c.strip() for c in classes.split(",")] if classes else [], settings)
        service.agents.open_all()
        secret = server.first_token(service, admin)
    typer.echo(f"sparingly serves {', '.join(service.agents.names())} at {address}")
    if secret is not None:
        typer.echo(f"first token, an admin's, shown this once: {secret}")


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Whose it is; answers are kept under this name.")],
    role: Annotated[str, typer.Option(help="producer, expert, host or admin.")] = "expert",
    agent: Annotated[list[str] | None, typer.Option(metavar="NAME", help="An agent that it is limited to.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends: 30d, 12h, or a date.")] = None,
    store: Place = STORE,
) -> None:
    """Make a token and show it, this once."""
    from sparingly.live.service.auth.expiry import expiry

    ends = None if expires is None else expiry(expires, time.time())
    made, secret = _tokens(store).create(name, role, agents=agent or None, expires=ends)
    typer.echo(secret)
    typer.echo(f"(id {made.id}, for {made.name}, {made.role}{_limits(made)})", err=True)


@token.command("list")
def list_tokens(store: Place = STORE) -> None:
    """List the tokens, without their secrets."""
    for one in _tokens(store).list():
        state = "revoked" if one.revoked else "in use" if one.is_valid(time.time()) else "expired"
        typer.echo(f"{one.id}  {one.role:<8}  {_minute(one.created)}  {state:<7}  {one.name}{_limits(one)}")


@token.command("revoke")
def revoke_token(which: Annotated[str, typer.Argument(help="The token's id or name.")], store: Place = STORE) -> None:
    """Let no one in any more with a token."""
    _tokens(store).revoke(which)
    typer.echo(f"revoked {which}")


@webhook.command("add")
def add_webhook(
    agent: AgentName,
    url: Annotated[str, typer.Argument(help="Where messages are sent: https://...")],
    event: Annotated[
        list[str] | None,
        typer.Option(help="decided, answered, corrected, closed or alert; all if none is given."),
    ] = None,
    store: Place = STORE,
) -> None:
    """Tell an address what becomes of an agent's tickets from now on; shows the secret that signs it, this once.

    The service that runs refuses to send to addresses that are not public unless it allows them (`serve
    --webhook-network`).
    """
    from sparingly.live.service.auth.tokens import Operator
    from sparingly.live.service.webhooks.webhook_targets import checked_target

    checked_target(url)
    outbox = _outbox(store)
    made, secret = outbox.register(agent, url, event, position=None, by=Operator.current())
    typer.echo(secret)
    typer.echo(f"(webhook {made.id}, for {', '.join(made.events)})", err=True)


@webhook.command("list")
def list_webhooks(agent: AgentName, store: Place = STORE) -> None:
    """List an agent's webhooks, and the state of their messages."""
    for one in _outbox(store).of_agent(agent):
        state = f"{one.waiting} waiting, {one.dead} given up" + (f", failing: {one.error}" if one.error else "")
        typer.echo(f"{one.id}  {one.url}  {','.join(one.events)}  {state}")


@webhook.command("remove")
def remove_webhook(agent: AgentName, which: WebhookId, store: Place = STORE) -> None:
    """Send nothing more to an address."""
    from sparingly.live.service.auth.tokens import Operator

    _outbox(store).remove(agent, which, Operator.current())
    typer.echo(f"removed {which}")


@webhook.command("dead")
def dead_letters(agent: AgentName, which: WebhookId, store: Place = STORE) -> None:
    """Show the messages that were given up, as JSON lines."""
    for one in _outbox(store).dead_letters(agent, which, limit=1_000_000):
        typer.echo(json.dumps(one))


@webhook.command("resend")
def resend_messages(agent: AgentName, which: WebhookId, store: Place = STORE) -> None:
    """Send the messages again that were given up."""
    from sparingly.live.service.auth.tokens import Operator

    typer.echo(f"{_outbox(store).resend(agent, which, None, Operator.current())} are sent again")


def _limits(made: Token) -> str:
    only = f", only {', '.join(made.agents)}" if made.agents is not None else ""
    return only + (f", until {_minute(made.expires)}" if made.expires is not None else "")


def _minute(at: float) -> str:
    return datetime.datetime.fromtimestamp(at).isoformat(" ", "minutes")


def _tokens(store: str) -> Tokens:
    from sparingly.live.service.auth.tokens import Tokens

    return Tokens(service_database(store))


def _outbox(store: str) -> WebhookOutbox:
    from sparingly.live.service.webhooks.webhook_outbox import WebhookOutbox

    return WebhookOutbox(service_database(store))


def service_database(store: str) -> ServiceDatabase:
    """The database of a service that is there."""
    from sparingly.live.service.service_database import ServiceDatabase

    if "://" not in store and not (Path(store) / "service.db").exists():
        raise ValueError(f"{store} is not the folder of a service: it has no service.db")
    return ServiceDatabase(store)
