"""Queries and answers. docs/protocol.md of geniemq has every field with its type, limits and default."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union, overload

from .errors import QueryError

Scalar = Union[int, float, str, bool]
Condition = Union[Scalar, Mapping[str, Any], Sequence[Any], None]
Conditions = Mapping[str, Condition]


class Rescore(TypedDict, total=False):
    by: str
    column: str


class Query(TypedDict, total=False):
    """A query as it goes over the wire. One of row, text, vector, set, items and point; or none, with a filter."""

    id: str | int
    k: int
    row: Conditions
    text: str
    vector: Sequence[float]
    set: Sequence[int | float | str]
    items: Sequence[Mapping[str, Any]]
    point: Sequence[float] | Mapping[str, float]
    radius: float
    column: str
    method: str
    fraction: float
    recall: float
    filter: Conditions | Sequence[Conditions]
    exclude: Conditions | Sequence[Conditions]
    total: bool
    idf: bool
    weights: Mapping[str, int]
    rescore: Rescore
    candidates: int
    certify: bool
    min_count: int
    matched: bool
    explain: bool
    with_payload: bool
    form: Literal["columns"]
    keys: bool
    timeout_ms: int


@dataclass(slots=True)
class Hit:
    """One object that matched."""

    id: int
    """Its position in the index, the same only within one version."""
    key: str | None
    """Its name; None where hits came as columns without keys."""
    count: int
    similarity: float | None = None
    distance: float | None = None
    score: float | None = None
    matched: list[str] | None = None
    columns: dict[str, Any] | None = None
    payload: Any = None


@dataclass(slots=True)
class Columns(Sequence[Hit]):
    """Hits as arrays, all in the order of the hits: for a query with "form": "columns". It is a sequence of hits too.

    A hit without a similarity, distance or score has a NaN there; an array of which no hit has a value is None.
    """

    ids: array[int]
    counts: array[int]
    similarities: array[float] | None = None
    distances: array[float] | None = None
    scores: array[float] | None = None
    keys: list[str] | None = None
    matched: list[list[str] | None] | None = None
    columns: list[dict[str, Any] | None] | None = None
    payloads: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> list[Hit]: ...
    def __getitem__(self, at: int | slice) -> Hit | list[Hit]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]

        def real(values: array[float] | None) -> float | None:
            return None if values is None or values[at] != values[at] else values[at]

        def of(values: list[Any] | None) -> Any:
            return None if values is None else values[at]

        return Hit(self.ids[at], of(self.keys), self.counts[at], real(self.similarities), real(self.distances),
                   real(self.scores), of(self.matched), of(self.columns), of(self.payloads))


@dataclass(slots=True)
class Result:
    """The answer to one query: hits, best first, or an error."""

    id: str = ""
    index: str = ""
    version: str = ""
    hits: Sequence[Hit] = field(default_factory=list)
    error: QueryError | None = None
    mc_k: int = 0
    exact: bool = False
    total: int | None = None
    in_range: int | None = None
    method: str | None = None
    fraction: float | None = None
    expected_recall: float | None = None
    warnings: list[str] = field(default_factory=list)
    explain: dict[str, Any] | None = None
    took_us: dict[str, int] = field(default_factory=dict)
    first_hit: int = 0
    all_hits: int = 0
    """Of a part: how many hits the whole result has. 0: these are all."""


@dataclass(slots=True)
class Answer:
    """One message of results."""

    subject: str
    results: list[Result]
    first: int
    """The position of the first result among the queries of the message."""
    batch: bool
    msg_id: str
    """Its Nats-Msg-Id: whoever may see a message twice tells by it."""
    query_id: str
    query_seq: int
    """Receipt.sequence of the query message; 0 of direct answers."""
    headers: dict[str, str]


@dataclass(slots=True)
class Receipt:
    """Where a query was stored."""

    msg_id: str
    stream: str
    sequence: int
    duplicate: bool
    """The stream had a message with this id already, and `sequence` is that one's."""
