"""What was annotated while the service could not hear of it, fetched again from Label Studio's API."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from sqlalchemy import delete, func, insert, select

from sparingly.adapters.label_studio.label_studio_annotations import Annotation, Annotations, agent_key
from sparingly.adapters.label_studio.label_studio_api import LabelStudioAPI, checked_url
from sparingly.adapters.label_studio.label_studio_bodies import AnnotatedTask, AnnotationIn, ResyncOut, TaskIn
from sparingly.adapters.label_studio.label_studio_tasks import WORDS, Choices, features_of, ticket_id
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.audit import Actor
from sparingly.live.service.auth.authentication import Identity
from sparingly.live.service.auth.tokens import HOST
from sparingly.live.service.service import Service
from sparingly.live.service.service_database import ServiceDatabase, agents
from sparingly.live.service.service_database import label_studio_projects as table

log = logging.getLogger(__name__)

OURSELVES = Identity("label studio resync", HOST, "-")
PAUSES = (2.0, 300.0)
"""Seconds between attempts at a Label Studio that cannot be reached: the first, and the longest."""
PROBLEMS = 10


@dataclass(frozen=True)
class ProjectConnection:
    """Where a project of Label Studio is; `is_told` if a person said so, and not Label Studio itself."""

    url: str
    token: str
    is_told: bool


class Connections:
    """The projects that an agent learns from, kept so that they can be asked after a restart."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    def get(self, agent: str, project: str) -> ProjectConnection | None:
        here = (table.c.agent == agent_key(self._database, agent), table.c.project == project)
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(*here)).first()
        return None if row is None else ProjectConnection(row.url, row.token, row.is_told)

    def put(self, agent: str, project: str, new: ProjectConnection) -> bool:
        """Remember where a project is, unless a person said otherwise; whether that is new."""
        checked_url(new.url)
        before = self.get(agent, project)
        if before == new or (before is not None and before.is_told and not new.is_told):
            return False
        key = agent_key(self._database, agent)
        with self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.agent == key, table.c.project == project))
            row = {"agent": key, "project": project, "url": new.url, "token": new.token, "is_told": new.is_told}
            connection.execute(insert(table), row)
        return True

    def known(self) -> list[tuple[str, str]]:
        """Agents and projects, of agents that there are."""
        query = select(agents.c.name, table.c.project).join(
            table, table.c.agent == func.coalesce(agents.c.file, agents.c.name)
        )
        with self._database.reading() as connection:
            return [(row.name, row.project) for row in connection.execute(query)]


class Annotators:
    """The names of those who annotate, by Label Studio's address and their number; asked once."""

    def __init__(self, forget_after: float = 60.0) -> None:
        self._names: dict[tuple[str, int], tuple[str | None, float]] = {}
        self._forget_after = forget_after

    async def name(self, given: AnnotationIn, connection: ProjectConnection | None, otherwise: str) -> str:
        by = given.completed_by
        if by is None:
            return otherwise
        number = by if isinstance(by, int) else by.id
        name = None if isinstance(by, int) else by.name
        if name is None and connection is not None and number is not None:
            name = await self._asked(connection, number)
        return name or f"Label Studio user {number}"

    async def _asked(self, connection: ProjectConnection, number: int) -> str | None:
        name, asked = self._names.get((connection.url, number), (None, float("-inf")))
        if name is None and time.monotonic() - asked > self._forget_after:
            try:
                async with LabelStudioAPI(connection.url, connection.token, timeout=5.0) as api:
                    name = (await api.person(number)).name
            except AgentError as error:
                log.warning("the name of an annotator is not known: %s", error)
            self._names[(connection.url, number)] = (name, time.monotonic())
        return name


@dataclass(frozen=True)
class TaskContent:
    """What a task is to an agent: features, the id of its ticket, what a person reads."""

    features: Any
    ticket: str
    payload: str | None

    @classmethod
    def of(cls, agent: Agent, project: Any, task: TaskIn, choices: Choices) -> TaskContent:
        plain: Mapping[str, Any] = {"id": task.id, "data": task.data or {}}
        width = agent.settings.shape[0] if agent.settings.shape else WORDS
        x = features_of(plain, choices, width)
        texts = [str(plain["data"][field]) for field in choices.texts if plain["data"].get(field)]
        owner = project if project is not None else task.project
        return cls(x, ticket_id(owner, plain, x), "\n".join(texts) or None)


class Resync:
    """Brings an agent to what a project has now."""

    def __init__(self, service: Service) -> None:
        self.connections = Connections(service.database)
        self.annotators = Annotators()
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, name: str, project: str, who: Actor) -> ResyncOut:
        """Fetch every task once, and take what its annotations say."""
        service, result = self._service, ResyncOut()
        connection = await service.call(self.connections.get, name, project)
        if connection is None:
            raise AgentError(f"it is not known where project {project} is: connect Label Studio, or give url and token")
        agent = await service.agent(name)
        service.agents.check_answers(name)
        async with LabelStudioAPI(connection.url, connection.token) as api:
            choices = Choices.of(await api.label_config(project))
            choices.check(agent.classes)
            annotations = Annotations(service.database, name, agent, project, who)
            began = time.time()
            async for page in api.pages(project):
                for task in page.tasks:
                    result.tasks, result.annotations = result.tasks + 1, result.annotations + len(task.annotations)
                    try:
                        found = [await self.read(one, choices, connection, who.name) for one in task.annotations]
                        result.changed += await service.call(
                            _take, agent, annotations, choices, project, task, found, began
                        )
                    except AgentError as error:
                        result.problems = [*result.problems, f"task {task.id}: {error}"[:300]][:PROBLEMS]
                began = time.time()
        return result

    async def read(
        self, given: AnnotationIn, choices: Choices, connection: ProjectConnection | None, otherwise: str
    ) -> Annotation:
        """An annotation as it is kept."""
        label = None if given.was_cancelled else choices.chosen(given.result or [])
        expert = await self.annotators.name(given, connection, otherwise)
        return Annotation(given.id, label, expert, given.updated_at or "")

    def begin(self, name: str, project: str) -> None:
        """Resync beside everything else, trying again while Label Studio cannot be reached."""
        task = asyncio.get_running_loop().create_task(self._until_done(name, project))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _until_done(self, name: str, project: str) -> None:
        pause, longest = PAUSES
        while True:
            try:
                result = await self.run(name, project, OURSELVES)
                for problem in result.problems:
                    log.warning("agent %s, project %s of Label Studio: %s", name, project, problem)
                return
            except AgentError as error:
                log.warning("agent %s, project %s of Label Studio is fetched again later: %s", name, project, error)
            except Exception:
                log.exception("agent %s, project %s of Label Studio cannot be fetched", name, project)
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)


def _take(
    agent: Agent,
    annotations: Annotations,
    choices: Choices,
    project: str,
    task: AnnotatedTask,
    found: list[Annotation],
    began: float,
) -> bool:
    content = TaskContent.of(agent, project, task, choices)
    if found:
        agent.observe_many([content.features], ids=[content.ticket], payloads=[content.payload])
    return annotations.put(content.ticket, found, all_at=began)


@asynccontextmanager
async def resyncing(app: FastAPI) -> AsyncIterator[None]:
    """While the service runs: every project that is known is fetched once, at the start."""
    service: Service = app.state.service
    app.state.label_studio = resync = Resync(service)
    for name, project in await service.call(resync.connections.known):
        resync.begin(name, project)
    try:
        yield
    finally:
        await resync.stop()
