"""The client against a real worker with an embedded server."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, cast

import nats
from geniemq import (BadRequest, BucketFull, Client, Columns, GenieError, NoStream, NotServed, Query, QueryError, Result, Timeout, TooLarge, UnknownIndex)
from geniemq.codec import Collector, decode, encode
from geniemq.errors import CODES
from .worker import ROWS, Server, Worker, build

PROTOCOL = Path(__file__).parents[3] / "docs" / "protocol"
FOLDER = Path(tempfile.mkdtemp(prefix="geniemq-client-"))
FEMALES: Query = {"k": 3, "row": {"sex": "Female", "age": {"min": 30, "max": 35}}}


def setUpModule() -> None:
    build(FOLDER)


def tearDownModule() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)


def four(answer: Result) -> list[tuple[str | None, int]]:
    return [(h.key, h.count) for h in answer.hits]


class TestClient(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        self.worker = Worker(FOLDER)
        self.addAsyncCleanup(self.worker.close)
        await self.worker.start()
        self.nc = await nats.connect(self.worker.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05, error_cb=_quiet)
        self.addAsyncCleanup(self.nc.close)

    async def test_asking(self) -> None:
        for codec in ("json", "msgpack"):
            async with Client(self.nc, codec=cast(Any, codec)) as c:
                want = [("ann", 2), ("cyd", 2), ("bob", 1)]
                self.assertEqual(four(await c.search("people", FEMALES)), want)
                result = await c.request("people", {**FEMALES, "id": 7, "with_payload": True, "matched": True})
                self.assertEqual((four(result), result.id, result.index), (want, "7", "people"))
                self.assertEqual(result.hits[0].payload, {"note": "note of ann"})
                self.assertEqual(sorted(result.hits[0].matched or []), ["age", "sex"])
                self.assertEqual((await c.request("people", FEMALES)).id, "")
                for ask in (c.search_batch, c.request_batch):
                    good, bad = await ask("people", [FEMALES, {"row": {"nobody": 1}}])
                    self.assertEqual(four(good), want)
                    self.assertIsInstance(bad.error, BadRequest)
                columns = (await c.search("people", {**FEMALES, "form": "columns", "keys": True, "with_payload": True})).hits
                assert isinstance(columns, Columns)
                self.assertEqual((list(columns.ids), list(columns.counts), columns.keys), ([0, 2, 1], [2, 2, 1], ["ann", "cyd", "bob"]))
                self.assertEqual((columns[2].key, columns[2].payload, columns[2].distance), ("bob", {"note": "note of bob"}, None))
                for ask_one in (c.search, c.request):
                    with self.assertRaises(BadRequest) as raised:
                        await ask_one("people", {"row": {"agee": 1}})
                    self.assertTrue(raised.exception.final and "agee" in raised.exception.message)
                self.assertIn("filter", await c.understood("people"))

    async def test_errors(self) -> None:
        async with Client(self.nc) as c:
            with self.assertRaises(NotServed):
                await c.search("nobody", FEMALES)
            with self.assertRaises(NotServed):
                await c.understood("nobody")
            with self.assertRaises(ValueError):
                await c.search("no body", FEMALES)
            with self.assertRaises(TooLarge):
                await c.request("people", {"text": "x" * (self.nc.max_payload + 1)})
            with self.assertRaises((UnknownIndex, Timeout)):
                await c.request("nobody", FEMALES, timeout=0.5)
            with self.assertRaisesRegex(Timeout, "not confirmed in 0 s; tries: 0"):
                await c.request("people", FEMALES, timeout=0)
        async with Client(self.nc, prefix="other") as other:
            with self.assertRaises(NoStream):
                await other.publish("people", FEMALES)

    async def test_not_answered(self) -> None:
        """A request that is not answered tells what it did. Nobody takes what is in these streams."""
        js = self.nc.jetstream()
        await js.add_stream(name="IDLE_QUERIES", subjects=["idle.query.>"])
        async with Client(self.nc, prefix="idle") as c:
            async def ask(*said: str) -> None:
                timeout = 1.0  # or as long as it takes to be stored
                while True:
                    with self.assertRaises(Timeout) as raised:
                        await c.request("people", FEMALES, msg_id="stuck", timeout=timeout)
                    if "not confirmed" not in str(raised.exception):
                        break
                    timeout *= 2
                # A timer that ends early looks once more.
                for part in (r"^index people did not answer in \S+ s; published as IDLE_QUERIES:1, (not )?a duplicate; looks into IDLE_RESULTS for idle\.result\.people\.\S+: [1-9]\d*, last: ", *said):
                    self.assertRegex(str(raised.exception), part)

            await ask(": stream not found$")
            await js.add_stream(name="IDLE_RESULTS", subjects=["idle.result.>"])
            await ask("IDLE_QUERIES:1, a duplicate; .* no message found$")

    async def test_publish_and_subscribe(self) -> None:
        async with Client(self.nc) as c:
            subscriptions = [await c.subscribe("people"), await c.subscribe("people", durable="reader"), await c.subscribe("genie.result.people.>")]
            inbox = self.nc.new_inbox()
            subscriptions.append(await c.subscribe(inbox))
            for reply, mine in ((None, subscriptions[:2]), ("genie.result.people.me", subscriptions[2:3]), (inbox, subscriptions[3:])):
                name = f"order-{reply}"
                receipt = await c.publish("people", FEMALES, msg_id=name, reply=reply)
                again = await c.publish("people", FEMALES, msg_id=name, reply=reply)
                self.assertEqual((receipt.duplicate, again.duplicate, again.sequence), (False, True, receipt.sequence))
                for s in mine:
                    answer = await anext(s)
                    self.assertEqual((answer.results[0].id, answer.query_seq, four(answer.results[0])), (name, receipt.sequence, [("ann", 2), ("cyd", 2), ("bob", 1)]))
            await c.publish_batch("people", [FEMALES, FEMALES])
            answer = await anext(subscriptions[0])
            self.assertEqual((answer.batch, len(answer.results)), (True, 2))
            for s in subscriptions:
                await s.stop()
                with self.assertRaises(StopAsyncIteration):
                    await anext(s)
            # A durable goes on where it was: the single answer was acknowledged only if another one was asked for.
            durable = await c.subscribe("people", durable="reader")
            self.assertEqual({(await anext(durable)).results[0].id for _ in range(2)}, {"order-None", ""})
            await durable.stop()
            stored = await c.subscribe("people", all=True)
            self.assertEqual((await anext(stored)).results[0].id, "order-None")
            await stored.stop()

    async def test_repeated(self) -> None:
        """A request with an id of its own is asked once, and answered as often as it is made, by whomever."""
        async with Client(self.nc) as one, Client(self.nc) as two:
            first = await one.request("people", FEMALES, msg_id="order-1")
            for c in (one, two):
                again = await c.request("people", FEMALES, msg_id="order-1")
                self.assertEqual((again.hits, again.took_us, again.id), (first.hits, first.took_us, "order-1"))

    async def test_parts(self) -> None:
        """Results that are larger than a message, as objects and as columns."""
        big: Query = {"k": 3004, "filter": {"age": {"min": 0}}, "with_payload": True}
        async with Client(self.nc, codec="json") as c:
            queries: list[Query] = [{**big, "id": "a"}, {**FEMALES, "id": "b"}, {**big, "id": "c", "form": "columns", "keys": True}]
            results = await c.request_batch("people", queries)
            self.assertEqual([r.id for r in results], ["a", "b", "c"])
            self.assertEqual([h.key for h in results[0].hits], [r[0] for r in ROWS] + [f"p{i}" for i in range(3000)])
            self.assertEqual(list(results[0].hits), list(cast(Columns, results[2].hits)[:]))
            stored = await c.subscribe("genie.result.people.>", all=True)
            answers = [await anext(stored) for _ in range(5)]  # two parts, one result, two parts
            self.assertEqual(sum("Genie-Hits" in a.headers for a in answers), 4)
            await stored.stop()

    async def test_killed(self) -> None:
        """Every query is answered once and right, though the worker and its server are killed twice. GENIEMQ_QUERIES says how many."""
        n = int(os.environ.get("GENIEMQ_QUERIES", "300"))
        rng = random.Random(n)
        table = [(key, age, sex) for key, age, sex, _ in ROWS] + [(f"p{i}", 60 + i % 37, "Male" if i % 3 else "Female") for i in range(3000)]

        def expected(low: int, high: int, sex: str, k: int) -> list[tuple[str, int]]:
            counted = [(key, (low <= age <= high) + (s == sex)) for key, age, s in table]
            return sorted((h for h in counted if h[1]), key=lambda h: -h[1])[:k]

        done = 0
        places = asyncio.Semaphore(100)
        quarters = [asyncio.Event() for _ in range(3)]

        async def ask(c: Client, i: int) -> None:
            nonlocal done
            low, sex, k = rng.randrange(25, 90), rng.choice(["Male", "Female"]), rng.randrange(1, 9)
            async with places:
                result = await c.request("people", {"id": f"q{i}", "k": k, "row": {"age": {"min": low, "max": low + 7}, "sex": sex}}, timeout=300)
            self.assertEqual((result.id, four(result)), (f"q{i}", expected(low, low + 7, sex, k)))
            done += 1
            for q, event in enumerate(quarters, 1):
                if done >= q * n // 4:
                    event.set()

        began = time.monotonic()
        async with Client(self.nc) as c:
            stored = await c.subscribe("genie.result.people.>", all=True)
            asked = asyncio.gather(*(ask(c, i) for i in range(n)))
            for event in quarters[:2]:
                await event.wait()
                await self.worker.kill()
                await self.worker.start()
            await asked
            print(f"{n} queries in {time.monotonic() - began:.1f} s, killed twice", flush=True)
            # The stream has each answer once.
            seen: dict[str, int] = {}
            while len(seen) < n:
                name = (await anext(stored)).results[0].id
                seen[name] = seen.get(name, 0) + 1
            await c.publish("people", {**FEMALES, "id": "last"}, reply="genie.result.people.last")
            while (name := (await anext(stored)).results[0].id) != "last":
                seen[name] = seen.get(name, 0) + 1
            self.assertEqual({name: times for name, times in seen.items() if times > 1}, {})
            await stored.stop()


class TestTables(unittest.TestCase):
    def test_as_the_protocol(self) -> None:
        """The types have the fields and codes of the JSON Schemas."""
        query = json.loads((PROTOCOL / "query.schema.json").read_text())["$defs"]["query"]["properties"]
        self.assertEqual(sorted(Query.__annotations__), sorted(query))
        answer = json.loads((PROTOCOL / "answer.schema.json").read_text())["$defs"]
        self.assertEqual(sorted(CODES), sorted(answer["error"]["properties"]["code"]["examples"]))
        self.assertEqual(sorted(Result.__annotations__), sorted(answer["result"]["properties"]))
        self.assertEqual(sorted(Columns.__annotations__), sorted(answer["columns"]["properties"]))

    def test_no_answers(self) -> None:
        for body in (b"", b"{}", b"[]", b"7", b"{", b'{"hits":{}}', b'{"hits":{"ids":"AgAA"}}', b'{"hits":{"ids":"AgAAAA==","counts":"AAAA"}}', b'{"results":[{}]}', b'{"hits":7}'):
            with self.assertRaises(GenieError):
                decode("x", None, body)

    def test_parts_in_any_order(self) -> None:
        rng = random.Random(1)
        for _ in range(200):
            n = rng.randrange(1, 30)
            cuts = sorted(rng.sample(range(1, n), min(n - 1, rng.randrange(4)))) if n > 1 else []
            parts = []
            for version in ("v1", "v2"):
                for low, high in zip([0] + cuts, cuts + [n]):
                    hits = [{"id": i, "key": str(i), "count": 1} for i in range(low, high)]
                    parts.append(json.dumps({"version": version, "first_hit": low, "all_hits": n, "hits": hits, "mc_k": 0, "exact": True}).encode())
            rng.shuffle(parts)
            answer = Collector(1, False)
            for i, part in enumerate(parts + parts):
                if answer.add(decode("x", None, part)):
                    break
            result = answer.results[0]
            assert result
            self.assertEqual([h.id for h in result.hits], list(range(n)))
        whole = Collector(2, True)
        with self.assertRaises(QueryError):
            whole.add(decode("x", None, b'{"error":{"code":"new_code","message":"x"}}'))


@unittest.skipUnless("GENIEMQ_NATS_SERVER" in os.environ, "$GENIEMQ_NATS_SERVER is not set: go build github.com/nats-io/nats-server/v2 makes one")
class TestLarge(unittest.IsolatedAsyncioTestCase):
    """Queries that are too large for a message, at a server whose messages are small."""

    PAYLOAD = 64 << 10

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        server = Server(self.PAYLOAD)
        self.addAsyncCleanup(server.close)
        await server.start()
        self.nc = await nats.connect(server.url, error_cb=_quiet)
        self.addAsyncCleanup(self.nc.close)
        self.worker = Worker(FOLDER, server.url, "--object-users", "bob", "--stream-bytes", "objects=2MiB")
        self.addAsyncCleanup(self.worker.close)
        await self.worker.start()

    def many(self, size: int, seed: int) -> tuple[list[Query], list[list[tuple[str | None, int]]]]:
        """Queries of so many bytes and their answers."""
        rng = random.Random(seed)
        ages = {30: [("ann", 1)], 35: [("bob", 1), ("cyd", 1)], 52: [("dan", 1)]}
        asked = [rng.choice([30, 35, 52, 1]) for _ in range(size // len(encode("msgpack", [{"row": {"age": 30}}], False)))]
        return [{"row": {"age": age}} for age in asked], [list(ages.get(age, [])) for age in asked]

    async def stored(self, bucket: str) -> int:
        info = await self.nc.jetstream().stream_info(f"OBJ_{bucket}")
        return info.state.messages

    async def none_left(self, *buckets: str) -> None:
        patience = time.monotonic() + 60
        while any([await self.stored(b) for b in buckets]):  # workers remove an object when its query is gone
            self.assertLess(time.monotonic(), patience)
            await asyncio.sleep(0.05)

    async def test_large(self) -> None:
        for n, (codec, user, bulk) in enumerate((c, u, b) for c in ("json", "msgpack") for u in (None, "bob") for b in (False, True)):
            async with Client(self.nc, codec=cast(Any, codec), user=user, bulk=bulk, timeout=120) as c:
                queries, want = self.many(3 * self.PAYLOAD, n)
                results = await c.request_batch("people", queries)
                self.assertEqual([four(r) for r in results], want, f"{codec} {user} {bulk}, seed {n}")
                one: Query = {"k": 1, "row": {"age": {"in": [1000.5 + i for i in range(60_000)] + [52]}}}
                self.assertEqual(four(await c.request("people", one)), [("dan", 1)])
                with self.assertRaises(TooLarge):
                    await c.search_batch("people", queries)
                self.assertEqual(four(await c.search("people", FEMALES))[0], ("ann", 2))
                # The same again is one query, whose object is the first one's.
                name, reply = f"twice-{n}", f"genie.result.people.{user or 'me'}.twice{n}"
                answers = await c.subscribe(reply)
                receipts = [await c.publish_batch("people", queries, msg_id=name, reply=reply) for _ in range(2)]
                self.assertEqual([r.duplicate for r in receipts], [False, True])
                answered = 0
                while answered < len(queries):  # in parts
                    answered += len((await anext(answers)).results)
                self.assertEqual(answered, len(queries))
                await answers.stop()
        await self.none_left("GENIE_OBJECTS", "GENIE_OBJECTS_bob")

    async def test_refused(self) -> None:
        queries, _ = self.many(2 * self.PAYLOAD, 1)
        async with Client(self.nc, user="eve") as eve:
            with self.assertRaisesRegex(TooLarge, "GENIE_OBJECTS_eve"):
                await eve.request_batch("people", queries)
        with self.assertRaises(ValueError):
            Client(self.nc, user="e.ve")
        async with Client(self.nc) as c:
            with self.assertRaisesRegex(TooLarge, "8388608"):
                await c.publish("people", {"vector": [0.5] * 1_200_000})
            await self.worker.kill()  # nobody removes what is stored
            each = 2 + len(encode("msgpack", queries, True)) // (self.PAYLOAD // 2)  # pieces, and a description
            same = [await c.publish_batch("people", queries, msg_id="same") for _ in range(2)]
            self.assertEqual(([r.duplicate for r in same], await self.stored("GENIE_OBJECTS")), ([False, True], each))
            published = 1
            with self.assertRaises(BucketFull):
                while True:
                    await c.publish_batch("people", queries)
                    published += 1
            self.assertEqual(await self.stored("GENIE_OBJECTS"), published * each)
            self.assertEqual((await self.nc.jetstream().stream_info("GENIE_QUERIES")).state.messages, published)
            # Of what no stream takes nothing is left.
            await self.nc.jetstream().delete_stream("GENIE_QUERIES")
            await self.nc.jetstream().purge_stream("OBJ_GENIE_OBJECTS")
            with self.assertRaises(NoStream):
                await c.publish_batch("people", queries)
            self.assertEqual(await self.stored("GENIE_OBJECTS"), 0)


async def _quiet(_: Exception) -> None:
    """nats-py prints a stack for each lost connection otherwise."""

@unittest.skipUnless("GENIEMQ_NATS_SERVER" in os.environ, "$GENIEMQ_NATS_SERVER is not set: go build github.com/nats-io/nats-server/v2 makes one")
class TestPermissions(unittest.IsolatedAsyncioTestCase):
    """Queries that are too large for a message, of those who may do what docs/security.md permits them and nothing else."""

    PAYLOAD = 64 << 10

    @staticmethod
    def permitted(name: str, bucket: str, publish: list[str], subscribe: list[str]) -> str:
        """A line of the server's configuration: those of docs/security.md whose queries may be too large, besides what they may otherwise."""
        publish = [*publish, f"$O.{bucket}.>", *(f"$JS.API.STREAM.{what}.OBJ_{bucket}" for what in ("INFO", "MSG.GET", "PURGE"))]
        return f'{{ user: {name}, password: p, permissions: {{ publish: {json.dumps(publish)}, subscribe: {json.dumps([*subscribe, "_INBOX.>"])} }} }}'

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        results = ["$JS.API.STREAM.INFO.GENIE_RESULTS", "$JS.API.DIRECT.GET.GENIE_RESULTS.>", "$JS.API.STREAM.MSG.GET.GENIE_RESULTS"]
        users = [
            "{ user: worker, password: p }",
            self.permitted("bob", "GENIE_OBJECTS_bob", [f"genie.{way}.people.bob" for way in ("query", "search", "bulk")], ["genie.result.people.bob.>"]),
            self.permitted("ann", "GENIE_OBJECTS", ["genie.query.people", *results], ["genie.result.people.>"]),
        ]
        self.server = Server(self.PAYLOAD, f"authorization {{ users: [ {', '.join(users)} ] }}\n")
        self.addAsyncCleanup(self.server.close)
        await self.server.start()
        worker = Worker(FOLDER, self.server.url.replace("//", "//worker:p@"), "--object-users", "bob")
        self.addAsyncCleanup(worker.close)
        await worker.start()

    async def test_large(self) -> None:
        for name, user in (("ann", None), ("bob", "bob")):
            denied: list[Exception] = []

            async def note(e: Exception, denied: list[Exception] = denied) -> None:
                denied.append(e)

            nc = await nats.connect(self.server.url, user=name, password="p", error_cb=note)
            self.addAsyncCleanup(nc.close)
            for bulk in (False, True) if user else (False,):
                async with Client(nc, user=user, bulk=bulk, timeout=60) as c:
                    queries: list[Query] = [{"row": {"age": 52}}] * 10_000
                    results = await c.request_batch("people", queries)
                    self.assertEqual([four(r) for r in results], [[("dan", 1)]] * len(queries), name)
            self.assertEqual(denied, [])
            if user:  # and may not reach the bucket of others
                async with Client(nc, timeout=5) as c:
                    with self.assertRaises(GenieError):
                        await c.request_batch("people", queries)


if __name__ == "__main__":
    unittest.main()
