// Bodies of queries that are too large for a message. They go through the server's object store, in which workers have made a bucket for that.

import { createHash } from "node:crypto";
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { ClosedConnectionError, DrainingConnectionError, nuid, type NatsConnection } from "@nats-io/nats-core";
import { Objm } from "@nats-io/obj";
import { BucketFull, GenieError, QueryError, Timeout } from "./errors.js";

export const objectHeader = "Genie-Query-Object";
/** Bytes of a body, wherever it lies. */
export const maxBody = 8 << 20;
/** Milliseconds after which an object without a query may be swept away. */
export const publishWithin = 12 * 3_600_000;
/** What is left of a message for its headers. */
const margin = 64 << 10;
const maxChunk = 128 << 10;
/** Tries on a connection that stays: a server answers nothing to whom it does not permit to store. */
const attempts = 3;
const pause = 250;
/** The server's codes for what has no room: of the server, of its disk, and of a stream. */
const serverRoom = 10_023;
const noStorage = 10_047;
const storeFailed = 10_077;

const userName = /^[A-Za-z0-9_-]{1,64}$/;

export function checkUser(user: string): void {
  if (!userName.test(user)) throw new RangeError(`${JSON.stringify(user)} cannot be a user's token: use 1 to 64 of A-Z a-z 0-9 _ -`);
}

/** How many bytes a body may have that goes in a message of the server. */
export function room(nc: NatsConnection): number {
  const most = nc.info?.max_payload;
  return most ? Math.min(maxBody, Math.max(most - margin, Math.floor(most / 2))) : maxBody;
}

/** A body in the object store, which one query names. */
export interface StoredBody {
  bucket: string;
  name: string;
  header: string;
  /** The subject of its pieces. */
  chunks: string;
}

/** The buckets of queries that are too large for a message. */
export class Bodies {
  private reconnects = 0;

  constructor(private readonly nc: NatsConnection, private readonly js: JetStreamClient, private readonly manager: Promise<JetStreamManager>) {}

  /** Says that the connection was away: a try that failed is none. */
  reconnected(): void {
    this.reconnects++;
  }

  /** Stores a body under a name of its own, until the deadline. */
  async put(bucket: string, body: Uint8Array, deadline: number): Promise<StoredBody> {
    let last: unknown;
    for (let tries = 0; ; ) {
      const left = deadline - Date.now();
      if (left <= 0) throw new Timeout(`storing a query of ${body.length} bytes took longer than there was time` + (last ? `, last: ${String(last)}` : ""), { cause: last });
      const before = this.reconnects;
      try {
        return await this.store(bucket, body, left);
      } catch (e) {
        last = e;
        if (e instanceof GenieError || e instanceof ClosedConnectionError || e instanceof DrainingConnectionError) throw e;
        if (full(e)) {
          throw new BucketFull(`bucket ${bucket} has no room for ${body.length} bytes: wait until workers have answered what is in it, or give it more room (stream-bytes objects=…)`, { cause: e });
        }
        tries = this.reconnects === before ? tries + 1 : 0;
        if (tries >= attempts) {
          throw new GenieError(`storing a query of ${body.length} bytes, which is too large for a message (docs/security.md says what to permit for that): ${String(e)}`, { cause: e });
        }
      }
      await new Promise<void>((done) => setTimeout(done, Math.min(pause, Math.max(0, deadline - Date.now()))));
    }
  }

  private async store(bucket: string, body: Uint8Array, left: number): Promise<StoredBody> {
    await (await this.manager).streams.info(`OBJ_${bucket}`).catch((e: unknown) => {
      if (!(e instanceof JetStreamApiError && e.status === 404)) throw e;
      throw new QueryError("too_large", `the body has ${body.length} bytes, a message of this server holds ${room(this.nc)}, and there is no bucket ${bucket}: ` +
        "send fewer queries per message, or start a worker that makes the bucket (of users, with object-users)");
    });
    const objects = await new Objm(this.js).open(bucket, false);
    const name = nuid.next();
    const chunk = Math.min(maxChunk, Math.max(1, Math.floor((this.nc.info?.max_payload ?? 2 * maxChunk) / 2)));
    const stored = await objects.putBlob({ name, options: { max_chunk_size: chunk } }, body, { timeout: Math.min(5_000, left) });
    const digest = createHash("sha256").update(body).digest("base64").replaceAll("+", "-").replaceAll("/", "_");
    return { bucket, name, header: `${name} ${body.length} SHA-256=${digest}`, chunks: `$O.${bucket}.C.${stored.nuid}` };
  }

  /** Removes an object whose query is in no stream: its pieces, then its description. What cannot be removed is left to the workers' sweep. */
  async remove(stored: StoredBody): Promise<void> {
    const description = `$O.${stored.bucket}.M.${Buffer.from(stored.name).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`;
    try {
      for (const filter of [stored.chunks, description]) { // the library's delete leaves a marker for each object there ever was
        await (await this.manager).streams.purge(`OBJ_${stored.bucket}`, { filter });
      }
    } catch {
      // the sweep does it
    }
  }
}

function full(e: unknown): boolean {
  return e instanceof JetStreamApiError && (e.code === serverRoom || e.code === noStorage || (e.code === storeFailed && e.message.includes("maximum")));
}
