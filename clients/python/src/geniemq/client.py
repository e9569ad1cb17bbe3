"""The client. See Client."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

import nats.errors
import nats.js.errors
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg

from . import large
from .codec import MEDIA, Codec, Collector, decode, encode
from .errors import BadAnswer, GenieError, NoStream, NotServed, QueueFull, Timeout, TooLarge
from .model import Answer, Query, Receipt, Result
from .subscription import Subscription, subscribe

ATTEMPT = 2.0  # seconds that one try of a publish waits for its acknowledgement
PAUSE = 0.25  # between tries, and how often a client looks whether its connection was away
NO_STREAM = 5.0  # for so long a connected server may not know the stream: one that recovers, or elects a leader
FIRST_LOOK, LAST_LOOK = 2.0, 30.0  # when a request looks into the stream though nothing seems wrong
LOOKERS = 16  # requests that read the stream at a time
STORE_FAILED = 10077  # the server's code for a stream that has reached a limit

_INDEX = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class Client:
    """Asks geniemq over a connection of nats-py that the application brings, keeps and closes.

    There are three ways to ask, each for one query and for a batch of queries in one message:

    - search asks a worker directly: the lowest latency, nothing stored, and Overloaded where there is no room.
    - request puts the query into a stream and waits for its answer, which is stored too: neither a lost connection nor a
      worker or server that is killed loses it. It tries for as long as its timeout.
    - publish puts the query into the stream and returns. Whoever subscribes to the subject of the answers gets them.

    request and publish take queries of up to 8 MiB: what does not fit a message goes into the server's object store, where workers have made a
    bucket for that. With a user queries go to that user's subjects, and answers come to subjects that only the user may read; with
    bulk they are stored as work that nobody waits for, which all others go before.

    A query is a dict (Query). Connect with max_reconnect_attempts=-1 if requests shall outlive a server that restarts.
    Errors are GenieErrors; what the service answers is a QueryError. In a batch the error of a query is its result's.
    """

    def __init__(self, nc: Connection, *, prefix: str = "genie", codec: Codec = "msgpack", timeout: float = 30.0, user: str | None = None,
                 bulk: bool = False) -> None:
        if codec not in MEDIA:
            raise ValueError(f"codec {codec!r}: use json or msgpack")
        if user is not None:
            large.check_user(user)
        self.nc = nc
        self.js = nc.jetstream()
        self.prefix = prefix
        self.codec: Codec = codec
        self.timeout = timeout
        self.user = user
        self.bulk = bulk
        self._of_user = f".{user}" if user else ""  # what subjects have after the index
        self._id = uuid.uuid4().hex
        self._asked = 0
        self._boxes: dict[str, asyncio.Queue[Msg | None]] = {}  # by reply subject; None wakes a request to look into the stream
        self._inboxes: dict[str, asyncio.Task[Any]] = {}  # by index
        self._watcher: asyncio.Task[None] | None = None
        self._lookers = asyncio.Semaphore(LOOKERS)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the client. The connection stays open, and queries that were published stay in the stream."""
        if self._watcher:
            self._watcher.cancel()
        inboxes, self._inboxes = self._inboxes, {}
        for made in inboxes.values():
            try:
                await (await made).unsubscribe()
            except nats.errors.Error:
                pass  # the connection is closed, and the subscription with it

    async def search(self, index: str, query: Query, *, timeout: float | None = None, headers: Mapping[str, str] | None = None) -> Result:
        """Ask a worker directly. Nothing is stored and nothing is repeated."""
        return _only(await self._search(index, [query], False, timeout, headers))

    async def search_batch(self, index: str, queries: Sequence[Query], *, timeout: float | None = None, headers: Mapping[str, str] | None = None) -> list[Result]:
        """Ask many queries directly, in one message. The answer is one message too: ask for less at a time when it is TooLarge."""
        return await self._search(index, queries, True, timeout, headers)

    async def request(self, index: str, query: Query, *, timeout: float | None = None, msg_id: str | None = None,
                      headers: Mapping[str, str] | None = None) -> Result:
        """Store a query and wait for its answer, whatever crashes in between.

        With a msg_id of its own the call may be repeated, by another process too: within two minutes the stream takes the id once,
        and the answer is found for as long as it is stored, an hour. The id must be unique among all queries of the deployment.
        """
        return _only(await self._request(index, [query], False, timeout, msg_id, headers))

    async def request_batch(self, index: str, queries: Sequence[Query], *, timeout: float | None = None, msg_id: str | None = None,
                            headers: Mapping[str, str] | None = None) -> list[Result]:
        """request for many queries in one message. Long answers come in parts, which are put together here."""
        return await self._request(index, queries, True, timeout, msg_id, headers)

    async def publish(self, index: str, query: Query, *, reply: str | None = None, msg_id: str | None = None, timeout: float | None = None,
                      headers: Mapping[str, str] | None = None) -> Receipt:
        """Store a query. Its answer goes to reply, by default to genie.result.<index>.

        It tries until the stream has confirmed it, or the timeout. After a Timeout the query may have been stored or not, and
        publishing it again with the same msg_id is safe.
        """
        return await self._publish(index, [query], False, reply, msg_id, timeout, headers)

    async def publish_batch(self, index: str, queries: Sequence[Query], *, reply: str | None = None, msg_id: str | None = None,
                            timeout: float | None = None, headers: Mapping[str, str] | None = None) -> Receipt:
        """Store many queries in one message, whose answers come together, in their order."""
        return await self._publish(index, queries, True, reply, msg_id, timeout, headers)

    async def subscribe(self, subject: str, *, durable: str | None = None, all: bool = False, ack_wait: float = 30.0) -> Subscription:
        """Read answers: of an index's subject, or the user's, for which its name is enough, or of any other, with wildcards.

        Answers of genie.result.> are read from their stream, each once, from now on or all that are stored. With a durable the reading
        goes on where it was; an answer is acknowledged when the next one is asked for. Other subjects are plain subscriptions, which
        drop a message whose id came before.
        """
        if _INDEX.match(subject):
            subject = f"{self.prefix}.result.{subject}{self._of_user}" + (".answers" if self.user else "")
        return await subscribe(self.nc, self.js, self.prefix, subject, durable, all, ack_wait)

    async def understood(self, index: str) -> list[str]:
        """The fields of a query that all workers of an index understand. It needs the right to publish to $SRV.INFO.geniemq."""
        inbox = self.nc.new_inbox()
        sub = await self.nc.subscribe(inbox)
        fields: list[str] | None = None
        wait = self.timeout
        try:
            await self.nc.publish("$SRV.INFO.geniemq", b"", reply=inbox)
            while True:
                msg = await sub.next_msg(timeout=wait)
                wait = PAUSE  # others answer as soon
                for endpoint in json.loads(msg.data or b"{}").get("endpoints", []):
                    if endpoint["metadata"].get("index") == index:
                        has = endpoint["metadata"].get("query_fields", "").split()
                        fields = has if fields is None else [f for f in fields if f in has]
                if not msg.data:
                    break
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
            pass
        finally:
            await sub.unsubscribe()
        if fields is None:
            raise NotServed(f"no worker serves {index}")
        return fields

    def _message(self, index: str, queries: Sequence[Query], batch: bool, most: int, deadline: float | None, headers: Mapping[str, str] | None) -> tuple[bytes, dict[str, str]]:
        if not _INDEX.match(index):
            raise ValueError(f"{index!r} is no name of an index: use 1 to 64 of A-Z a-z 0-9 _ -")
        if not queries:
            raise ValueError("no queries: send at least one")
        if deadline is not None:  # nobody computes what nobody waits for
            left = max(1, int((deadline - time.monotonic()) * 1000))
            queries = [q if "timeout_ms" in q else cast(Query, {**q, "timeout_ms": left}) for q in queries]
        body = encode(self.codec, queries, batch)
        if len(body) > most:
            raise TooLarge("too_large", f"the body has {len(body)} bytes and may have {most}: send fewer queries at a time")
        return body, {**(headers or {}), "Content-Type": MEDIA[self.codec]}

    def _deadline(self, timeout: float | None) -> float:
        return time.monotonic() + (self.timeout if timeout is None else timeout)

    async def _search(self, index: str, queries: Sequence[Query], batch: bool, timeout: float | None, headers: Mapping[str, str] | None) -> list[Result]:
        began, deadline = time.monotonic(), self._deadline(timeout)
        body, header = self._message(index, queries, batch, large.room(self.nc.max_payload), deadline, headers)
        try:
            msg = await self.nc.request(f"{self.prefix}.search.{index}{self._of_user}", body, timeout=deadline - time.monotonic(), headers=header)
        except nats.errors.NoRespondersError:
            raise NotServed(f"no worker serves {index}") from None
        except nats.errors.TimeoutError:
            raise Timeout(f"index {index} did not answer in {_since(began)}") from None
        answer = Collector(len(queries), batch)
        if not answer.add(decode(msg.subject, msg.headers, msg.data)):
            raise BadAnswer(f"index {index} answered some of the queries only")
        return cast("list[Result]", answer.results)

    async def _publish(self, index: str, queries: Sequence[Query], batch: bool, reply: str | None, msg_id: str | None, timeout: float | None,
                       headers: Mapping[str, str] | None) -> Receipt:
        body, header = self._message(index, queries, batch, large.MAX_BODY, None, headers)
        if reply:
            header["Genie-Reply"] = reply
        header["Nats-Msg-Id"] = msg_id or uuid.uuid4().hex
        return await self._store(index, body, header, self._deadline(timeout))

    async def _store(self, index: str, body: bytes, header: dict[str, str], deadline: float) -> Receipt:
        """Publish until the stream confirms, with one message id for all tries. A body that is too large for a message is stored before."""
        subject = f"{self.prefix}.{'bulk' if self.bulk else 'query'}.{index}{self._of_user}"
        if len(body) <= large.room(self.nc.max_payload):
            return await _Publish(self, subject, body, header).confirmed(deadline)
        bucket = f"{self.prefix.upper()}_OBJECTS" + (f"_{self.user}" if self.user else "")
        stored = await large.put(self.nc, self.js, bucket, body, deadline)
        publish = _Publish(self, subject, b"", {**header, large.HEADER: stored.header})
        try:
            receipt = await publish.confirmed(min(deadline, time.monotonic() + large.PUBLISH_WITHIN))
        except (GenieError, nats.errors.Error):
            if not publish.doubtful:
                await large.remove(self.js, stored)
            raise
        if receipt.duplicate and not publish.doubtful:  # another message has this id, and an object of its own
            await large.remove(self.js, stored)
        return receipt

    async def _request(self, index: str, queries: Sequence[Query], batch: bool, timeout: float | None, msg_id: str | None, headers: Mapping[str, str] | None) -> list[Result]:
        began, deadline = time.monotonic(), self._deadline(timeout)
        body, header = self._message(index, queries, batch, large.MAX_BODY, None if msg_id else deadline, headers)
        self._asked += 1
        own = f"{self._id}.{self._asked}" if msg_id is None else "by." + hashlib.sha256(msg_id.encode()).hexdigest()[:32]
        reply = f"{self.prefix}.result.{index}{self._of_user}.{own}"
        header.update({"Genie-Reply": reply, "Genie-Accept": "parts", "Nats-Msg-Id": msg_id or uuid.uuid4().hex})
        box: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._boxes[reply] = box
        sub = None
        try:
            if msg_id is None:
                await self._listen(index)
            else:
                sub = await self.nc.subscribe(reply, cb=self._deliver)
            self._watch()
            receipt = await self._store(index, body, header, deadline)
            if receipt.duplicate or msg_id:
                box.put_nowait(None)
            stored = _StoredAnswer(self, reply, Collector(len(queries), batch))
            if not await stored.wait(box, deadline):
                raise Timeout(f"index {index} did not answer in {_since(began)}; {_told(receipt)}; {stored}")
            results = cast("list[Result]", stored.answer.results)
        finally:
            self._boxes.pop(reply, None)
            if sub:
                await sub.unsubscribe()
        if not batch and not queries[0].get("id") and msg_id is None:
            results[0].id = ""  # not the message id that this request made
        return results

    async def _listen(self, index: str) -> None:
        """See to it that the subscription for the answers of an index is there."""
        made = self._inboxes.get(index)
        if made is None:
            made = asyncio.ensure_future(self.nc.subscribe(f"{self.prefix}.result.{index}{self._of_user}.{self._id}.*", cb=self._deliver,
                                                           pending_msgs_limit=-1, pending_bytes_limit=-1))
            self._inboxes[index] = made
        await asyncio.shield(made)

    async def _deliver(self, msg: Msg) -> None:
        box = self._boxes.get(msg.subject)
        if box is not None:
            box.put_nowait(msg)

    def _watch(self) -> None:
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.ensure_future(self._watching())

    async def _watching(self) -> None:
        """While requests wait: when the connection was away, each of them looks into the stream."""
        seen = self.nc.stats["reconnects"]
        while self._boxes:
            await asyncio.sleep(PAUSE)
            now = self.nc.stats["reconnects"]
            if now != seen and self.nc.is_connected:
                try:
                    await self.nc.flush(timeout=2)  # the server has the subscriptions again
                except nats.errors.Error:
                    continue
                seen = now
                for box in self._boxes.values():
                    box.put_nowait(None)


class _Publish:
    """A message that is published until its stream confirms it. doubtful: a try may have stored it, though nobody said so."""

    def __init__(self, client: Client, subject: str, body: bytes, header: dict[str, str]) -> None:
        self.doubtful = False
        self._client, self._subject, self._body, self._header = client, subject, body, header

    async def confirmed(self, deadline: float) -> Receipt:
        client, subject = self._client, self._subject
        began = time.monotonic()
        unknown_since: float | None = None
        tries, last = 0, ""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout(f"publishing to {subject} was not confirmed in {_since(began)}; tries: {tries}{last}")
            tries += 1
            try:
                ack = await client.js.publish(subject, self._body, timeout=min(ATTEMPT, left), headers=self._header)
                return Receipt(self._header["Nats-Msg-Id"], ack.stream, ack.seq, bool(ack.duplicate))
            except nats.js.errors.NoStreamResponseError as e:
                last = f", last: {_reason(e)}"
                unknown_since = unknown_since or time.monotonic()
                if time.monotonic() - unknown_since > NO_STREAM:
                    raise NoStream(f"no stream takes {subject}: start geniemq there once, or check the prefix") from None
            except nats.js.errors.APIError as e:
                if e.err_code == STORE_FAILED and "maximum" in (e.description or ""):
                    raise QueueFull(f"{subject}: {e.description}") from None
                if e.code != 503:
                    raise GenieError(f"publishing to {subject}: {e}") from e
                last = f", last: {_reason(e)}"
            except nats.errors.Error as e:
                self.doubtful = True
                last = f", last: {_reason(e)}"
                if client.nc.is_closed or client.nc.is_draining:
                    raise
                unknown_since = None
            await asyncio.sleep(min(PAUSE, max(0.0, deadline - time.monotonic())))


class _StoredAnswer:
    """An answer that is awaited: from a mailbox and, when something may have been missed, from the stream of answers. It keeps what came of that for who waits in vain."""

    def __init__(self, client: Client, reply: str, answer: Collector) -> None:
        self.answer = answer
        self._client, self._reply = client, reply
        self._stream = f"{client.prefix.upper()}_RESULTS"
        self._next, self._looks, self._last = 1, 0, ""

    def __str__(self) -> str:
        return f"looks into {self._stream} for {self._reply}: {self._looks}{self._last}"

    async def wait(self, box: asyncio.Queue[Msg | None], deadline: float) -> bool:
        """Collect the answer. False: the time is over."""
        wait = FIRST_LOOK
        while True:
            try:
                msg = await asyncio.wait_for(box.get(), min(wait, deadline - time.monotonic())) if box.empty() else box.get_nowait()
            except asyncio.TimeoutError:
                wait, msg = min(2 * wait, LAST_LOOK), None
            if msg is not None:
                if self.answer.add(decode(msg.subject, msg.headers, msg.data)):
                    return True
            elif time.monotonic() >= deadline:
                return False
            elif await self._look():
                return True

    async def _look(self) -> bool:
        """Read what the stream has of the answer, each message once. A look that fails is noted only: the answer may still arrive, and the next look comes."""
        async with self._client._lookers:
            self._looks += 1
            try:
                while True:
                    raw = await self._client.js.get_msg(self._stream, seq=self._next, subject=self._reply, next=True)
                    self._next = (raw.seq or 0) + 1
                    if self.answer.add(decode(self._reply, raw.headers, raw.data or b"")):
                        return True
            except nats.errors.Error as e:
                if self._client.nc.is_closed:
                    raise
                self._last = f", last: {_reason(e)}"
                return False


def _told(receipt: Receipt) -> str:
    return f"published as {receipt.stream}:{receipt.sequence}, {'' if receipt.duplicate else 'not '}a duplicate"


def _reason(e: Exception) -> str:
    return getattr(e, "description", None) or str(e) or type(e).__name__


def _since(began: float) -> str:
    return f"{round(time.monotonic() - began, 1):g} s"


def _only(results: list[Result]) -> Result:
    if results[0].error:
        raise results[0].error
    return results[0]


__all__ = ["Answer", "Client"]
