// Asks the index of the README: node dist/example.js nats://127.0.0.1:4222

import { connect } from "@nats-io/transport-node";
import { Client, type Query } from "geniemq";

const nc = await connect({ servers: process.argv[2], maxReconnectAttempts: -1 });
const client = new Client(nc);
const query: Query = { k: 2, row: { age: { min: 30, max: 40 }, sex: "Female" } };
const result = await client.request("people", query);
for (const hit of result.hits) console.log(hit.key, hit.count);
for (const { error, hits } of await client.searchBatch("people", [query, { row: { agee: 30 } }])) {
  console.log(error?.code ?? hits.length);
}
const answers = await client.subscribe("people");
const receipt = await client.publish("people", query, { msgId: "order-18" });
for await (const answer of answers) {
  console.log(answer.results[0]?.id, answer.querySeq === receipt.sequence);
  break;
}
client.close();
await nc.close();
