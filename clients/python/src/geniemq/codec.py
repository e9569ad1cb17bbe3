"""Bodies of messages: queries into JSON or MessagePack, answers back, and the parts of long answers together."""

from __future__ import annotations

import base64
import json
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgpack

from .errors import BadAnswer, query_error
from .model import Answer, Columns, Hit, Query, Result

Codec = Literal["json", "msgpack"]
MEDIA: dict[Codec, str] = {"json": "application/json", "msgpack": "application/msgpack"}


def encode(codec: Codec, queries: Sequence[Query], batch: bool) -> bytes:
    message: Any = {"queries": list(queries)} if batch else queries[0]
    if codec == "json":
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return bytes(msgpack.packb(message))


def decode(subject: str, headers: Mapping[str, str] | None, body: bytes) -> Answer:
    """Read an answer. BadAnswer: it is none, such as another service's message."""
    headers = dict(headers or {})
    media = headers.get("Content-Type", "").partition(";")[0].strip()
    try:
        if media == MEDIA["msgpack"]:
            doc = msgpack.unpackb(body, strict_map_key=False)
        elif media in ("", MEDIA["json"]):
            doc = json.loads(body)
        else:
            raise BadAnswer(f"an answer on {subject} is {media}")
        batch = "results" in doc
        results = [_result(r) for r in (doc["results"] if batch else [doc])]
        first = int(doc.get("first", 0))
    except BadAnswer:
        raise
    except Exception as e:
        raise BadAnswer(f"a message on {subject} is no answer: {e}") from e
    seq = headers.get("Genie-Query-Seq", "")
    return Answer(subject, results, first, batch, headers.get("Nats-Msg-Id", ""), headers.get("Genie-Query-Id", ""),
                  int(seq) if seq.isdigit() else 0, headers)


_PLAIN = ("id", "index", "version", "mc_k", "exact", "total", "in_range", "method", "fraction", "expected_recall",
          "warnings", "explain", "took_us", "first_hit", "all_hits")
_HIT = ("similarity", "distance", "score", "matched", "columns", "payload")


def _result(doc: Mapping[str, Any]) -> Result:
    if "hits" not in doc and "error" not in doc:
        raise BadAnswer("it has neither hits nor an error")
    r = Result(**{name: doc[name] for name in _PLAIN if name in doc})
    if "error" in doc:
        r.error = query_error(str(doc["error"]["code"]), str(doc["error"]["message"]))
    elif isinstance(doc["hits"], dict):
        r.hits = _columns(doc["hits"])
    else:
        r.hits = [Hit(h["id"], h["key"], h["count"], *(h.get(name) for name in _HIT)) for h in doc["hits"]]
    return r


def _columns(doc: Mapping[str, Any]) -> Columns:
    def packed(name: str) -> bytes | None:
        value = doc.get(name)
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value

    ids = packed("ids")
    if ids is None or len(ids) % 4:
        raise BadAnswer("columns without ids, or with broken ones")
    n = len(ids) // 4

    def numbers(name: str, types: Mapping[int, str]) -> array[Any] | None:
        raw = packed(name)
        if not raw:
            return None
        if n == 0 or len(raw) % n or len(raw) // n not in types:
            raise BadAnswer(f"{name} has {len(raw)} bytes for {n} hits")
        return _array(types[len(raw) // n], raw)

    def values(name: str) -> list[Any] | None:
        value: list[Any] | None = doc.get(name)
        if value is not None and len(value) != n:
            raise BadAnswer(f"{name} has {len(value)} elements for {n} hits")
        return value

    reals = {4: "f", 8: "d"}
    counts = numbers("counts", {1: "B", 2: "H", 4: "I"})
    return Columns(_array("I", ids), counts if counts is not None else array("B", bytes(n)), numbers("similarities", {4: "f"}),
                   numbers("distances", reals), numbers("scores", reals), values("keys"), values("matched"),
                   values("columns"), values("payloads"))


def _array(typecode: str, raw: bytes) -> array[Any]:
    a: array[Any] = array(typecode)
    a.frombytes(raw)
    if sys.byteorder == "big":
        a.byteswap()
    return a


class Collector:
    """Puts the messages of an answer together, by the positions of results and hits: they may come twice, in any order, and from two workers."""

    def __init__(self, queries: int, batch: bool) -> None:
        self.batch = batch
        self.results: list[Result | None] = [None] * queries
        self._parts: dict[tuple[int, int, str], dict[int, Result]] = {}

    def add(self, answer: Answer) -> bool:
        """Take a message in; true when the answer is complete. What is wrong with the message as a whole is raised."""
        if self.batch and not answer.batch:
            error = answer.results[0].error
            raise error if error else BadAnswer("a batch was answered by a single result")
        for at, result in enumerate(answer.results, answer.first):
            if at < len(self.results) and self.results[at] is None:
                self.results[at] = self._joined(at, result)
        return None not in self.results

    def _joined(self, at: int, part: Result) -> Result | None:
        if part.all_hits == 0 or part.error:
            return part
        parts = self._parts.setdefault((at, part.all_hits, part.version), {})
        if part.first_hit not in parts or len(parts[part.first_hit].hits) < len(part.hits):
            parts[part.first_hit] = part
        whole: Result | None = None
        pieces: list[tuple[Sequence[Hit], int]] = []
        reach = 0
        for first, piece in sorted(parts.items()):
            if first > reach:
                return None
            whole = whole or piece  # what is told beside hits is the first part's
            if first + len(piece.hits) > reach:
                pieces.append((piece.hits, reach - first))
                reach = first + len(piece.hits)
        if whole is None or reach < part.all_hits:
            return None
        del self._parts[at, part.all_hits, part.version]
        whole.hits, whole.all_hits = _concatenated(pieces), 0
        return whole


def _concatenated(pieces: list[tuple[Sequence[Hit], int]]) -> Sequence[Hit]:
    """Hits from a position of each piece on. Columns stay columns."""
    columns = [(p, at) for p, at in pieces if isinstance(p, Columns)]
    if len(columns) != len(pieces):
        return [hit for piece, at in pieces for hit in piece[at:]]

    def join(name: str, typecode: str, missing: Any) -> Any:
        if all(getattr(p, name) is None for p, _ in columns):
            return None
        whole: Any = array(typecode) if typecode else []
        for p, at in columns:
            value = getattr(p, name)
            whole.extend([missing] * (len(p) - at) if value is None else list(value[at:]))
        return whole

    nan = float("nan")
    return Columns(join("ids", "I", 0), join("counts", "I", 0), join("similarities", "f", nan), join("distances", "d", nan),
                   join("scores", "d", nan), join("keys", "", ""), join("matched", "", None), join("columns", "", None),
                   join("payloads", "", None))
