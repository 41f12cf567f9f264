"""What Label Studio sends, and what its API answers, as far as it matters here; there is more in each."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, StrictBool, StrictInt, StrictStr

Number = Annotated[StrictInt, Field(ge=0, lt=2**63)]
Key = Number | Annotated[StrictStr, Field(min_length=1, max_length=100)]


class StudioUser(BaseModel):
    """Someone who annotates."""

    id: Number | None = None
    email: str | None = None
    username: str | None = None
    first_name: str | None = None
    last_name: str | None = None

    @property
    def name(self) -> str | None:
        """The name, else the address.

        >>> StudioUser(first_name="Ada", last_name="Lovelace", email="ada@b.org").name, StudioUser(email="a@b.org").name
        ('Ada Lovelace', 'a@b.org')
        """
        full = " ".join(part.strip() for part in (self.first_name, self.last_name) if part and part.strip())
        return (full or self.email or self.username or "").strip()[:80] or None


class ResultIn(BaseModel):
    """One part of an annotation; relations and the like have neither name nor value."""

    from_name: str | None = None
    value: dict[str, Any] | None = None


class AnnotationIn(BaseModel):
    id: Number
    result: list[ResultIn] | None = None
    was_cancelled: StrictBool | None = None
    completed_by: Number | StudioUser | None = None
    updated_at: Annotated[StrictStr, Field(max_length=64)] | None = None


class AnnotationId(BaseModel):
    id: Number


class TaskIn(BaseModel):
    id: Key
    data: dict[str, Any] | None = None
    project: Key | None = None


class AnnotatedTask(TaskIn):
    """A task as the API lists it."""

    annotations: list[AnnotationIn]


class TaskPage(BaseModel):
    tasks: list[AnnotatedTask]
    total: Number


class ProjectIn(BaseModel):
    id: Key | None = None
    label_config: str = ""


class SetupIn(BaseModel):
    """What Label Studio says when it connects."""

    project: Key | None = None
    label_config: str = Field("", validation_alias=AliasChoices("schema", "label_config"))
    hostname: Annotated[str, Field(max_length=1000)] | None = None
    access_token: Annotated[str, Field(max_length=4000)] | None = None


class PredictIn(BaseModel):
    tasks: list[TaskIn]
    label_config: str
    project: Key | None = None


class WebhookIn(BaseModel):
    action: Annotated[str, Field(max_length=100)]
    project: ProjectIn | None = None
    task: TaskIn | list[TaskIn] | None = None
    annotation: AnnotationIn | list[AnnotationIn] | None = None
    annotations: list[AnnotationId] | None = None


class ResyncIn(BaseModel):
    """Where to fetch from; what is left out is as Label Studio said when it connected."""

    project: Key | None = None
    url: Annotated[str, Field(max_length=1000)] | None = None
    token: Annotated[str, Field(max_length=4000)] | None = None


class ResyncOut(BaseModel):
    tasks: int = 0
    annotations: int = 0
    changed: int = 0
    """Tickets whose label was given, corrected or taken back."""
    problems: list[str] = []
    """The first few tasks that could not be taken, and why."""
