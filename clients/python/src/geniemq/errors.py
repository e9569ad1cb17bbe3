"""What can go wrong. All of it is a GenieError; what the service answers is a QueryError of the class of its code."""

from __future__ import annotations


class GenieError(Exception):
    """Anything that this package raises, but for wrong arguments and errors of nats-py itself."""


class NotServed(GenieError):
    """No worker listens for direct search of this index. The durable calls would wait for one."""


class NoStream(GenieError):
    """geniemq's streams are not there: it has never run here, or runs with another prefix or in another account."""


class QueueFull(GenieError):
    """The stream of queries has no room for this index. Nothing was published; try again later."""


class BucketFull(GenieError):
    """The query is too large for a message, and the bucket for such queries has no room. Nothing was published; try again when workers have answered what is in it."""


class Timeout(GenieError, TimeoutError):
    """The time ran out. A query that was published may be stored, and be answered later."""


class BadAnswer(GenieError):
    """A message is no answer of geniemq."""


class QueryError(GenieError):
    """What the service answered instead of hits. `code` is for programs, `message` for people."""

    code = ""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    @property
    def final(self) -> bool:
        """Sending the same query again is useless."""
        return self.code in ("bad_request", "too_large", "unsupported")


class BadRequest(QueryError):
    """The query is wrong and stays wrong."""


class UnknownIndex(QueryError):
    """Nobody serves an index of this name."""


class TooLarge(QueryError):
    """A limit on size or number was exceeded, by the message or by its answer."""


class DeadlineExceeded(QueryError):
    """The query's timeout_ms ran out before it was answered."""


class Overloaded(QueryError):
    """Direct search has no room now: try again later, or send the query through the stream."""


class Unsupported(QueryError):
    """Valid, but not by this worker."""


class ObjectMissing(QueryError):
    """The query's body was to lie in the object store, and is not there: store it anew."""


class Internal(QueryError):
    """The fault is the server's."""


CODES: dict[str, type[QueryError]] = {
    "bad_request": BadRequest,
    "unknown_index": UnknownIndex,
    "too_large": TooLarge,
    "deadline_exceeded": DeadlineExceeded,
    "overloaded": Overloaded,
    "unsupported": Unsupported,
    "object_missing": ObjectMissing,
    "internal": Internal,
}


def query_error(code: str, message: str) -> QueryError:
    """The error of a code; a code that is not known here is an Internal."""
    return CODES.get(code, Internal)(code, message)
