"""Subscriptions to answers. See Client.subscribe."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

import nats.errors
import nats.js.errors
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from .codec import decode
from .errors import BadAnswer, NoStream
from .model import Answer

FETCH = 64  # answers that are on their way at a time
REMEMBERED = 4096  # ids of messages
PAUSE = 0.25


class Subscription(AsyncIterator[Answer]):
    """Answers, one after the other: `async for answer in subscription`, until stop. Messages that are no answers are skipped."""

    def __init__(self) -> None:
        self._stopped = asyncio.Event()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Answer:
        while not self._stopped.is_set():
            msg = await self._next()
            if msg is None:
                break
            try:
                return decode(msg.subject, msg.headers, msg.data)
            except BadAnswer:
                continue
        raise StopAsyncIteration

    async def stop(self) -> None:
        """End the subscription. A durable stays, and goes on where it was when it is subscribed to again."""
        self._stopped.set()

    async def _next(self) -> Any:
        raise NotImplementedError

    async def _or_stopped(self, waiting: Any) -> Any:
        """What a coroutine returns, or None when the subscription is stopped first."""
        task = asyncio.ensure_future(waiting)
        stop = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


class Plain(Subscription):
    """A subscription of NATS. Workers may send a message again, with the same id, which is dropped."""

    def __init__(self, sub: Any) -> None:
        super().__init__()
        self._sub = sub
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def _next(self) -> Any:
        while True:
            try:
                msg = await self._or_stopped(self._sub.next_msg(timeout=3600))
            except nats.errors.TimeoutError:
                continue
            if msg is None:
                return None
            name = (msg.headers or {}).get("Nats-Msg-Id")
            if name in self._seen:
                continue
            if name:
                self._seen[name] = None
                if len(self._seen) > REMEMBERED:
                    self._seen.popitem(last=False)
            return msg

    async def stop(self) -> None:
        await super().stop()
        await self._sub.unsubscribe()


class Stored(Subscription):
    """A consumer of the stream of answers. One that is lost with its server is made again, where it was."""

    def __init__(self, js: Any, stream: str, subject: str, durable: str | None, after: int, ack_wait: float) -> None:
        super().__init__()
        self._js, self._stream, self._subject, self._durable, self._after, self._ack_wait = js, stream, subject, durable, after, ack_wait
        self._sub: Any = None
        self._fetched: list[Any] = []
        self._given: Any = None

    async def open(self) -> None:
        config = ConsumerConfig(filter_subject=self._subject, deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._after + 1)
        if self._durable:
            config.ack_policy, config.ack_wait = AckPolicy.EXPLICIT, self._ack_wait
            try:  # as it is: it may begin elsewhere
                await self._js.consumer_info(self._stream, self._durable)
                self._sub = await self._js.pull_subscribe_bind(consumer=self._durable, stream=self._stream)
                return
            except nats.js.errors.NotFoundError:
                pass
        else:
            config.ack_policy, config.inactive_threshold = AckPolicy.NONE, 300.0
        self._sub = await self._js.pull_subscribe(self._subject, durable=self._durable, stream=self._stream, config=config)

    async def _next(self) -> Any:
        if self._given is not None:
            try:
                await self._given.ack()
            except nats.errors.Error:
                pass  # it is delivered again
            self._given = None
        while not self._fetched:
            if self._stopped.is_set():
                return None
            try:
                if self._sub is None:
                    await self.open()
                self._fetched = await self._or_stopped(self._sub.fetch(1 if self._durable else FETCH, timeout=5)) or []
            except nats.errors.TimeoutError:
                # Quiet, or the consumer was lost with its server.
                await self._look()
            except nats.errors.ConnectionClosedError:
                raise
            except nats.errors.Error:
                self._sub = None
                await asyncio.sleep(PAUSE)
        msg = self._fetched.pop(0)
        if self._durable:
            self._given = msg
        else:
            self._after = msg.metadata.sequence.stream
        return msg

    async def _look(self) -> None:
        try:
            await self._sub.consumer_info()
        except nats.js.errors.NotFoundError:
            self._sub = None
        except nats.errors.Error:
            pass

    async def stop(self) -> None:
        await super().stop()
        try:
            for msg in [self._given, *self._fetched] if self._durable else []:
                if msg is not None:
                    await msg.nak()  # for whoever goes on, at once
            if self._sub is not None:
                await self._sub.unsubscribe()
        except nats.errors.Error:
            pass  # the connection is closed, or away: they are delivered again later
        self._given, self._fetched = None, []


async def subscribe(nc: Any, js: Any, prefix: str, subject: str, durable: str | None, all: bool, ack_wait: float) -> Subscription:
    if not subject.startswith(f"{prefix}.result."):
        return Plain(await nc.subscribe(subject))
    stream = f"{prefix.upper()}_RESULTS"
    try:
        info = await js.stream_info(stream)
    except nats.js.errors.NotFoundError:
        raise NoStream(f"{stream} is missing: start geniemq there once, or check the prefix") from None
    stored = Stored(js, stream, subject, durable, 0 if all else info.state.last_seq, ack_wait)
    await stored.open()
    return stored
