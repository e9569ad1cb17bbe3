"""Bodies of queries that are too large for a message. They go through the server's object store, in which workers have made a bucket for that."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

import nats.errors
import nats.js.errors
from nats.js.api import ObjectMeta, ObjectMetaOptions

from .errors import BucketFull, GenieError, Timeout, TooLarge

HEADER = "Genie-Query-Object"
MAX_BODY = 8 << 20  # bytes of a body, wherever it lies
PUBLISH_WITHIN = 12 * 3600.0  # seconds after which an object without a query may be swept away
_MARGIN = 64 << 10  # left of a message for its headers
_CHUNK = 128 << 10
_ATTEMPTS = 3  # tries on a connection that stays: a server answers nothing to whom it does not permit to store
_PAUSE = 0.25
_SERVER_ROOM, _NO_STORAGE, _STORE_FAILED = 10023, 10047, 10077  # the server's codes for what has no room

_USER = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def check_user(user: str) -> None:
    if not _USER.match(user):
        raise ValueError(f"{user!r} cannot be a user's token: use 1 to 64 of A-Z a-z 0-9 _ -")


def room(max_payload: int) -> int:
    """How many bytes a body may have that goes in a message of the server."""
    return min(MAX_BODY, max(max_payload - _MARGIN, max_payload // 2))


@dataclass(slots=True)
class StoredBody:
    """A body in the object store, which one query names."""

    bucket: str
    name: str
    header: str
    chunks: str  # the subject of its pieces


async def put(nc: Any, js: Any, bucket: str, body: bytes, deadline: float) -> StoredBody:
    """Store a body under a name of its own, until the deadline. BucketFull, TooLarge: it could not be, and nothing is left of it."""
    tries, last = 0, ""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Timeout(f"storing a query of {len(body)} bytes took longer than there was time{last}")
        before = nc.stats["reconnects"]
        try:
            return await asyncio.wait_for(_put(nc, js, bucket, body), left)
        except nats.js.errors.BucketNotFoundError:
            raise TooLarge("too_large", f"the body has {len(body)} bytes, a message of this server holds {room(nc.max_payload)}, and there is no bucket {bucket}: "
                           "send fewer queries per message, or start a worker that makes the bucket (of users, with object-users)") from None
        except asyncio.TimeoutError:
            last = ", before the server confirmed it"
        except nats.errors.Error as e:
            if _full(e):
                raise BucketFull(f"bucket {bucket} has no room for {len(body)} bytes: wait until workers have answered what is in it, or give it more room (stream-bytes objects=…)") from e
            if nc.is_closed or nc.is_draining:
                raise
            tries = tries + 1 if nc.is_connected and nc.stats["reconnects"] == before else 0
            if tries >= _ATTEMPTS:
                raise GenieError(f"storing a query of {len(body)} bytes, which is too large for a message (docs/security.md says what to permit for that): {e}") from e
            last = f", last: {e}"
        await asyncio.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))


async def _put(nc: Any, js: Any, bucket: str, body: bytes) -> StoredBody:
    objects = await js.object_store(bucket)
    name = uuid.uuid4().hex
    chunk = min(_CHUNK, max(nc.max_payload // 2, 1))
    stored = await objects.put(name, body, meta=ObjectMeta(name=name, options=ObjectMetaOptions(max_chunk_size=chunk)))
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode()
    return StoredBody(bucket, name, f"{name} {len(body)} SHA-256={digest}", f"$O.{bucket}.C.{stored.nuid}")


def _full(e: nats.errors.Error) -> bool:
    if not isinstance(e, nats.js.errors.APIError):
        return False
    return e.err_code in (_SERVER_ROOM, _NO_STORAGE) or e.err_code == _STORE_FAILED and "maximum" in (e.description or "")


async def remove(js: Any, stored: StoredBody) -> None:
    """Remove an object whose query is in no stream: its pieces, then its description. What cannot be removed is left to the workers' sweep."""
    description = f"$O.{stored.bucket}.M." + base64.urlsafe_b64encode(stored.name.encode()).decode()
    try:
        for subject in (stored.chunks, description):  # the library's delete leaves a marker for each object there ever was
            await js.purge_stream(f"OBJ_{stored.bucket}", subject=subject)
    except nats.errors.Error:
        pass
