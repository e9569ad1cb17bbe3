export { Client, type AskOptions, type ClientOptions, type PublishOptions, type StoreOptions } from "./client.js";
export type { Codec } from "./codec.js";
export { BadAnswer, BucketFull, codes, GenieError, NoStream, NotServed, QueryError, QueueFull, Timeout, type Code } from "./errors.js";
export { Columns, type Answer, type Condition, type Conditions, type Estimate, type Hit, type Item, type Query, type Range, type Receipt, type Result } from "./model.js";
export type { Subscription, SubscribeOptions } from "./subscription.js";
