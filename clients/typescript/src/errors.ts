/** Anything that this package throws, but for errors of the NATS packages themselves. */
export class GenieError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No worker listens for direct search of this index. The durable calls would wait for one. */
export class NotServed extends GenieError {}

/** geniemq's streams are not there: it has never run here, or runs with another prefix or in another account. */
export class NoStream extends GenieError {}

/** The stream of queries has no room for this index. Nothing was published; try again later. */
export class QueueFull extends GenieError {}

/** The query is too large for a message, and the bucket for such queries has no room. Nothing was published; try again when workers have answered what is in it. */
export class BucketFull extends GenieError {}

/** The time ran out. A query that was published may be stored, and be answered later. */
export class Timeout extends GenieError {}

/** A message is no answer of geniemq. */
export class BadAnswer extends GenieError {}

/** The error codes of the protocol. Later versions may have more. */
export const codes = ["bad_request", "unknown_index", "too_large", "deadline_exceeded", "overloaded", "unsupported", "object_missing", "internal"] as const;
export type Code = (typeof codes)[number];

/** What the service answered instead of hits: `code` is for programs, `reason` for people. */
export class QueryError extends GenieError {
  readonly code: Code;
  readonly reason: string;

  constructor(code: string, reason: string) {
    super(`${code}: ${reason}`);
    this.code = (codes as readonly string[]).includes(code) ? (code as Code) : "internal";
    this.reason = reason;
  }

  /** Sending the same query again is useless. */
  get final(): boolean {
    return this.code === "bad_request" || this.code === "too_large" || this.code === "unsupported";
  }
}
