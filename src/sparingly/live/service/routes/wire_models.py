"""What goes over the wire, as the OpenAPI description tells it: the agent's own records, and these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from sparingly.live.quality.quality_records import Opinion
from sparingly.live.service.alerts import Alert
from sparingly.live.tickets.ticket_records import Answered, Entry, ExpertCall, Statistics, TicketEvent, Waiting

Label = StrictBool | StrictInt | StrictFloat | StrictStr
Count = Annotated[StrictInt, Field(ge=0, lt=2**63)]
Id = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """A body whose every field is known."""

    model_config = ConfigDict(extra="forbid")


class PayloadOut(BaseModel):
    kind: Literal["image", "text", "fields"]
    media: str | None = None
    image: str | None = Field(None, description="base64")
    text: str | None = None
    fields: dict[str, Any] | None = None


class QuestionOut(BaseModel):
    """A question, with what its expert needs to see; the agent's guess only if people see it before they answer."""

    id: str
    why: str
    reason: str = Field(description="Why, for people.")
    numbers: dict[str, Any] = Field(description="The numbers of `why`.")
    at: float
    choices: list[Label]
    likely: list[Label] = Field(
        description="Those that the agent holds likely; in their own order if its guess is not shown."
    )
    features: list[float]
    feature_names: list[str] | None
    payload: PayloadOut | None
    expert: str | None
    until: float | None
    seconds_left: float | None = Field(None, description="Of the lease, whatever the caller's clock says.")
    prediction: Label | None = None


class QuestionsOut(BaseModel):
    questions: list[QuestionOut]
    may_add_classes: bool = Field(description="Whether an answer of the caller may name a class that is new.")
    open: int
    today: dict[str, float]


class TicketIn(Strict):
    ticket: Id


class ReleaseIn(TicketIn):
    expert: Annotated[StrictStr, Field(min_length=1, max_length=80)] | None = Field(
        None, description="Whose lease is ended: one's own if left out, anyone's for an admin."
    )


class RenewedOut(BaseModel):
    ticket: str
    until: float
    seconds_left: float


class AnswerIn(TicketIn):
    label: Label
    new_class: StrictBool = Field(False, description="None of the classes: the label becomes one, if it is not yet.")


class ClassIn(Strict):
    """A class that was not known before."""

    label: Label
    cost: Annotated[StrictInt | StrictFloat, Field(ge=0, le=1e300, allow_inf_nan=False)] | None = Field(
        None, description="Of every mistake about it; the largest that there is if left out."
    )


class ClassesOut(BaseModel):
    classes: list[Label]


class NewClassesIn(Strict):
    people: list[Annotated[StrictStr, Field(min_length=1, max_length=80)]] = Field(
        max_length=1000, description='Who may add classes besides admins: the names of their tokens, or "*".'
    )


class DoneOut(BaseModel):
    """What stands now; the agent's guess once people may see it."""

    ticket: str
    status: str
    label: Label | None = None
    prediction: Label | None = None
    today: dict[str, float] | None = None


class GivenAnswer(BaseModel):
    ticket: str
    label: Label | None
    closed: float | None = Field(description="When it was answered.")


class AnswersOut(BaseModel):
    answers: list[GivenAnswer]


class UndoneOut(BaseModel):
    """The question, leased again to whoever took the answer back."""

    question: QuestionOut


class HistoryOut(BaseModel):
    tickets: list[Entry]
    next: str | None = Field(None, description="Pass as `after` for the tickets that follow.")


class RecentOut(BaseModel):
    """A ticket as the dashboard lists it."""

    id: str
    at: float
    prediction: Label | None
    asks: bool
    label: Label | None
    status: str
    why: str
    reason: str = Field(description="Why, for people.")
    numbers: dict[str, Any]
    expert: str | None


class SearchOut(BaseModel):
    tickets: list[RecentOut]
    next: str | None = Field(None, description="Pass as `before` for older ones.")


class DetailsOut(RecentOut):
    """All about one ticket."""

    probabilities: list[tuple[Label, float]] = Field(description="Of the likeliest classes.")
    closed: float | None
    erased: str | None
    payload: PayloadOut | None
    features: list[float] | None
    feature_names: list[str] | None
    holder: str | None = Field(description="Who has the question now.")
    asked: list[str] = Field(description="Who was asked so far, in this order, where experts have names.")
    paid: float = Field(description="What experts that were called have cost.")
    calls: list[ExpertCall] = Field(description="What experts that are called were asked, and what came of it.")
    opinions: list[Opinion] = Field(description="What people said of it where more than one was asked.")
    events: list[TicketEvent]


class BoardOut(BaseModel):
    """Everything the dashboard draws."""

    events: int = Field(description="The number of the last event that it tells of.")
    statistics: Statistics
    alerts: list[Alert] = Field(description="What needs an admin.")
    over_time: list[Statistics]
    experts: list[Answered]
    recent: list[RecentOut]
    open: list[Waiting]


class CostIn(Strict):
    announced: Label
    true: Label
    cost: StrictFloat = Field(ge=0, allow_inf_nan=False)


class CostsIn(Strict):
    """What mistakes, and a question, cost from now on; what is left out stays."""

    costs: list[CostIn] | None = Field(
        None, max_length=1_000_000, description="Costs of mistakes that are not 1, or of right answers that are not 0."
    )
    query_cost: Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)] | None = None


class AgentIn(Strict):
    """A new agent."""

    name: StrictStr = Field(pattern="^[a-z][a-z0-9_]{0,39}$")
    classes: list[Label] = Field(min_length=2, max_length=1000)
    n_features: Annotated[StrictInt, Field(ge=1)] | None = None
    costs: list[CostIn] | None = Field(None, description="Costs of mistakes that are not 1.")
    query_cost: StrictFloat = Field(1.0, ge=0, allow_inf_nan=False)
    strategy: StrictStr | None = None
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] = 0
    fields: dict[str, StrictStr | list[StrictStr] | dict[str, Any]] | None = Field(
        None, description="What the fields of raw rows are, by name: number, boolean, date, category, text, or words."
    )
    encoder: Literal["minilm", "static", "hashing"] | None = Field(None, description="What turns texts into numbers.")
    max_open: Count | None = None
    max_per_hour: Count | None = None
    max_per_day: Count | None = None
    max_total: Count | None = Field(None, description="Questions in all, spent where they are worth most.")
    max_cost: Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Money for questions in all, spent where they are worth most."
    )
    horizon: Annotated[Count, Field(ge=1)] | None = Field(None, description="Observations that are expected in all.")
    audit_rate: StrictFloat = Field(0.0, ge=0, le=1)
    hold: StrictBool = Field(
        False, description="Announce nothing before there is a model: tickets are held until then."
    )
    reveal: Literal["after", "before", "never"] = "after"
    retention_days: Annotated[StrictInt | StrictFloat, Field(gt=0, lt=1e6)] | None = None
    descriptions: dict[str, StrictStr] | None = Field(None, description="What classes mean, by name.")
    second_opinions: Annotated[StrictInt | StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None, description="The share of answers that another person gives, too."
    )


class Descriptions(Strict):
    """What classes mean, by name, for those who choose among them."""

    descriptions: dict[str, StrictStr] = Field(max_length=1000)


class RevealIn(Strict):
    reveal: Literal["after", "before", "never"]


class AgentOut(BaseModel):
    name: str
    classes: list[Label]
    shape: list[int] | None
    feature_names: list[str] | None
    fields: dict[str, str] | None = Field(None, description="Of raw rows, by name, and what each holds.")
    encoder: str | None = Field(None, description="What turns texts into numbers.")
    costs: list[list[float]] = Field(description="[announced or asked, true]")
    actions: list[str]
    strategy: str
    reveal: str
    may_add_classes: list[str] = Field(description='Who may add classes besides admins; "*" is everyone.')


class AgentsOut(BaseModel):
    agents: list[str]
    states: dict[str, Literal["paused", "archived", "damaged"]] | None = Field(None, description="Of those not active.")
    failures: dict[str, str] | None = Field(None, description="Why an agent is damaged, for admins.")


class RetentionIn(Strict):
    days: Annotated[StrictInt | StrictFloat, Field(gt=0, lt=1e6)] | None = Field(description="None for ever.")


class RenameIn(Strict):
    name: StrictStr = Field(pattern="^[a-z][a-z0-9_]{0,39}$")


class StateOut(BaseModel):
    name: str
    state: Literal["active", "paused", "archived", "deleted"]


class TokenIn(Strict):
    name: StrictStr = Field(min_length=1, max_length=80)
    role: Literal["producer", "expert", "host", "admin"]
    agents: Annotated[list[StrictStr], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="The agents it is limited to; all if left out."
    )
    expires: StrictStr | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | None = Field(
        None, description="A duration such as 30d or 12h, a date such as 2030-01-31, or seconds since 1970."
    )


class TokenOut(BaseModel):
    id: str
    name: str
    role: str
    created: float
    revoked: float | None = None
    agents: list[str] | None = None
    expires: float | None = None


class NewTokenOut(TokenOut):
    token: str = Field(description="The secret, shown only once.")


class TokensOut(BaseModel):
    tokens: list[TokenOut]


class AuditOut(BaseModel):
    lines: list[dict[str, Any]]


class HealthOut(BaseModel):
    status: str


class ReadyOut(HealthOut):
    damaged: list[str] | None = Field(None, description="Agents that are set aside since they cannot be opened.")


class ErrorOut(BaseModel):
    error: str


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The body is not JSON."},
    401: {"model": ErrorOut, "description": "No token, or one that is unknown or revoked."},
    403: {"model": ErrorOut, "description": "The token's role may not do this."},
    404: {"model": ErrorOut, "description": "No such agent or ticket."},
    409: {"model": ErrorOut, "description": "The ticket's state does not allow this."},
    413: {"model": ErrorOut, "description": "The body is too large."},
    415: {"model": ErrorOut, "description": "The body is sent as something else than JSON."},
    422: {"model": ErrorOut, "description": "Something in the request makes no sense; the message names it."},
    429: {"model": ErrorOut, "description": "Too many calls."},
    503: {"model": ErrorOut, "description": "The database cannot be used now; nothing was kept."},
}
"""What the OpenAPI description says of errors; each router names it."""
