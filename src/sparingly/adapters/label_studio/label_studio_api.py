"""Label Studio's own API: a project's tasks with their annotations, and the names of those who annotate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from sparingly.adapters.label_studio.label_studio_bodies import ProjectIn, StudioUser, TaskPage
from sparingly.live.agent.errors import AgentError

PAGE = 100
"""Tasks that are fetched at a time."""
M = TypeVar("M", bound=BaseModel)


class LabelStudioError(AgentError):
    """Label Studio cannot be reached, or does not answer as it should."""


class LabelStudioAPI:
    """A Label Studio that can be asked.

    Parameters
    ----------
    url
        Its address, as it says itself when it connects.
    token
        An access token: a legacy one, or a personal one, which is exchanged for a short-lived one.
    timeout
        Seconds after which a call fails.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 10.0) -> None:
        self._url = checked_url(url)
        self._token = token
        try:
            self._http = httpx.AsyncClient(
                base_url=self._url, headers={"authorization": f"Token {token}"}, timeout=timeout, trust_env=False
            )
        except UnicodeEncodeError:
            raise AgentError("the access token of Label Studio must be plain ASCII") from None

    async def label_config(self, project: str) -> str:
        """The labelling configuration of a project."""
        return (await self._get(ProjectIn, f"/api/projects/{project}/")).label_config

    async def pages(self, project: str) -> AsyncIterator[TaskPage]:
        """All tasks of a project, a page at a time."""
        page, seen = 1, 0
        while True:
            query = {"project": project, "page": page, "page_size": PAGE, "fields": "all"}
            found = await self._get(TaskPage, "/api/tasks/", query)
            yield found
            seen, page = seen + len(found.tasks), page + 1
            if not found.tasks or seen >= found.total:
                return

    async def person(self, number: int) -> StudioUser:
        return await self._get(StudioUser, f"/api/users/{number}/")

    async def _get(self, model: type[M], path: str, query: dict[str, Any] | None = None) -> M:
        try:
            if self._token.count(".") == 2:
                await self._exchange_token()
            response = await self._http.get(path, params=query)
            response.raise_for_status()
            return model.model_validate_json(response.content)
        except httpx.HTTPStatusError as error:
            raise LabelStudioError(f"Label Studio at {self._url} said {error.response.status_code} to {path}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LabelStudioError(
                f"Label Studio at {self._url} cannot be reached: {error or type(error).__name__}"
            ) from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise LabelStudioError(
                f"Label Studio at {self._url} answered {path} with {where}: {first['msg']}"
            ) from None

    async def _exchange_token(self) -> None:
        """A personal token is a JSON web token that gives others, which last some minutes."""
        response = await self._http.post("/api/token/refresh", json={"refresh": self._token})
        response.raise_for_status()
        try:
            access = str(response.json()["access"])
        except (ValueError, KeyError, TypeError):
            raise LabelStudioError(f"Label Studio at {self._url} gave no access token for the personal one") from None
        self._http.headers["authorization"] = f"Bearer {access}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()


def checked_url(url: str) -> str:
    """An address that can be fetched from.

    >>> checked_url("file:///etc")
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: the address of Label Studio is 'file:///etc': it must be http or https
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise AgentError(f"the address of Label Studio is {url[:100]!r}: it must be http or https")
    return url.rstrip("/")
