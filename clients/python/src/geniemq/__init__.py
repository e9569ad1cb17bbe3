"""Asks geniemq, top-k similarity queries over NATS JetStream, from asyncio.

    import nats, geniemq

    nc = await nats.connect("nats://127.0.0.1:4222", max_reconnect_attempts=-1)
    async with geniemq.Client(nc) as client:
        result = await client.request("people", {"k": 3, "row": {"age": {"min": 30, "max": 40}}})
        for hit in result.hits:
            print(hit.key, hit.count)
"""

from .client import Client
from .errors import (BadAnswer, BadRequest, BucketFull, DeadlineExceeded, GenieError, Internal, NoStream, NotServed, ObjectMissing, Overloaded,
                     QueryError, QueueFull, Timeout,
                     TooLarge, UnknownIndex, Unsupported)
from .model import Answer, Columns, Condition, Conditions, Hit, Query, Receipt, Rescore, Result
from .subscription import Subscription

__all__ = ["Answer", "BadAnswer", "BadRequest", "BucketFull", "Client", "Columns", "Condition", "Conditions", "DeadlineExceeded", "GenieError", "Hit", "Internal",
           "NoStream", "NotServed", "ObjectMissing", "Overloaded", "Query", "QueryError", "QueueFull", "Receipt", "Rescore", "Result", "Subscription", "Timeout",
           "TooLarge", "UnknownIndex", "Unsupported"]
