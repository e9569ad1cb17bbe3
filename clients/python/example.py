"""Asks the index of the README: python example.py nats://127.0.0.1:4222"""

import asyncio
import sys

import nats
from geniemq import BadRequest, Client, Query


async def main(url: str) -> None:
    nc = await nats.connect(url, max_reconnect_attempts=-1)
    async with Client(nc) as client:
        query: Query = {"k": 2, "row": {"age": {"min": 30, "max": 40}, "sex": "Female"}}
        result = await client.request("people", query)
        for hit in result.hits:
            print(hit.key, hit.count)
        for result in await client.search_batch("people", [query, {"row": {"agee": 30}}]):
            print(result.error.code if isinstance(result.error, BadRequest) else len(result.hits))
        answers = await client.subscribe("people")
        receipt = await client.publish("people", query, msg_id="order-17")
        async for answer in answers:
            print(answer.results[0].id, answer.query_seq == receipt.sequence)
            break
        await answers.stop()
    await nc.close()


asyncio.run(main(sys.argv[1]))
