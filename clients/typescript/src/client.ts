import { createHash } from "node:crypto";
import { jetstream, jetstreamManager, JetStreamApiError, type JetStreamClient, type JetStreamManager, type MsgRequest } from "@nats-io/jetstream";
import { createInbox, headers as newHeaders, nuid, RequestError, TimeoutError, ClosedConnectionError, DrainingConnectionError, NoRespondersError } from "@nats-io/nats-core";
import type { Msg, MsgHdrs, NatsConnection, Subscription as Sub } from "@nats-io/nats-core";
import { Collector, decode, encode, media, type Codec } from "./codec.js";
import { BadAnswer, GenieError, NoStream, NotServed, QueryError, QueueFull, Timeout } from "./errors.js";
import { Bodies, checkUser, maxBody, objectHeader, publishWithin, room } from "./large.js";
import type { Query, Receipt, Result } from "./model.js";
import { subscribe, type SubscribeOptions, type Subscription } from "./subscription.js";

/** How long one try of a publish waits for its acknowledgement, and the pause between tries; in milliseconds like all times here. */
const attempt = 2_000;
const pause = 250;
/** For so long a connected server may not know the stream: one that recovers, or elects a leader. */
const noStream = 5_000;
/** When a request looks into the stream though nothing seems wrong; the time doubles up to the second. */
const firstLook = 2_000;
const lastLook = 30_000;
/** The server's code for a stream that has reached a limit. */
const storeFailed = 10_077;
/** How many requests read the stream at a time. */
const lookers = 16;

const indexName = /^[A-Za-z0-9_-]{1,64}$/;

export interface ClientOptions {
  /** The first token of every subject, and of the streams' names. Default "genie". */
  prefix?: string;
  /** How bodies are written. Default "msgpack". */
  codec?: Codec;
  /** How long calls wait that say nothing else, in milliseconds. Default 30,000. */
  timeout?: number;
  /** The user's token of subjects: queries go to genie.query.<index>.<user>, and answers come to subjects that this user alone may read. Default none. */
  user?: string;
  /** Stores queries as work that nobody waits for, which all others go before. Default false. */
  bulk?: boolean;
}

export interface AskOptions {
  timeout?: number;
  /** Headers that are sent too, such as traceparent. */
  headers?: { [name: string]: string };
}

export interface StoreOptions extends AskOptions {
  /** The Nats-Msg-Id: within two minutes the stream takes one once. It must be unique among all queries of the deployment. Default a new one. */
  msgId?: string;
}

export interface PublishOptions extends StoreOptions {
  /** The subject that the answer goes to. Default genie.result.<index>. */
  reply?: string;
}

type Mail = Msg | "look";

/** What a request has done for its answer; a Timeout tells it. */
class Looks {
  private times = 0;
  private last = "";

  constructor(private readonly receipt: Receipt, private readonly stream: string, private readonly reply: string) {}

  /** Keeps what came of a look: how many messages, or the error. */
  note(outcome: unknown): void {
    this.times++;
    this.last = typeof outcome === "number" ? `${outcome} new messages` : reason(outcome);
  }

  toString(): string {
    const { stream, sequence, duplicate } = this.receipt;
    const published = `published as ${stream}:${sequence}, ${duplicate ? "" : "not "}a duplicate`;
    return `${published}; looks into ${this.stream} for ${this.reply}: ${this.times}` + (this.times > 0 ? `, last: ${this.last}` : "");
  }
}

/**
 * Asks geniemq over a connection that the application brings, keeps and closes.
 *
 * There are three ways to ask, each for one query and for a batch of queries in one message:
 *
 * - search asks a worker directly: the lowest latency, nothing stored, and a QueryError "overloaded" where there is no room.
 * - request puts the query into a stream and waits for its answer, which is stored too: neither a lost connection nor a
 *   worker or server that is killed loses it. It tries for as long as its timeout.
 * - publish puts the query into the stream and returns. Whoever subscribes to the subject of the answers gets them.
 *
 * request and publish take queries of up to 8 MiB: what does not fit a message goes into the server's object store, where
 * workers have made a bucket for that.
 *
 * Connect with maxReconnectAttempts: -1 if requests shall outlive a server that restarts. In a batch the error of a query is
 * its result's.
 */
export class Client {
  readonly prefix: string;
  readonly codec: Codec;
  readonly timeout: number;
  readonly user?: string;
  readonly bulk: boolean;
  /** What subjects have after the index. */
  private readonly ofUser: string;
  private readonly bodies: Bodies;
  private readonly js: JetStreamClient;
  private readonly manager: Promise<JetStreamManager>;
  private readonly id = nuid.next();
  private asked = 0;
  private readonly boxes = new Map<string, Mailbox>();
  private readonly inboxes = new Map<string, Sub>();
  private looking = 0;
  private readonly places: (() => void)[] = [];
  private status?: { return?: (value?: unknown) => unknown };

  constructor(private readonly nc: NatsConnection, options: ClientOptions = {}) {
    this.prefix = options.prefix ?? "genie";
    this.codec = options.codec ?? "msgpack";
    this.timeout = options.timeout ?? 30_000;
    if (options.user !== undefined) checkUser((this.user = options.user));
    this.bulk = options.bulk ?? false;
    this.ofUser = this.user ? `.${this.user}` : "";
    this.js = jetstream(nc, { checkAPI: false });
    this.manager = jetstreamManager(nc, { checkAPI: false });
    this.bodies = new Bodies(nc, this.js, this.manager);
    void this.watch();
  }

  /** Ends the client. The connection stays open, and queries that were published stay in the stream. */
  close(): void {
    for (const sub of this.inboxes.values()) if (!sub.isClosed()) sub.unsubscribe();
    this.inboxes.clear();
    for (const box of this.boxes.values()) box.fail(new GenieError("the client is closed"));
    void this.status?.return?.();
  }

  /** Asks a worker directly. Nothing is stored and nothing is repeated. */
  async search(index: string, query: Query, options: AskOptions = {}): Promise<Result> {
    return only(await this.direct(index, [query], false, options));
  }

  /** Asks many queries directly, in one message. The answer is one message too: ask for less at a time when it is too_large. */
  async searchBatch(index: string, queries: Query[], options: AskOptions = {}): Promise<Result[]> {
    return this.direct(index, queries, true, options);
  }

  /**
   * Stores a query and waits for its answer, whatever crashes in between. With a msgId of its own the call may be repeated, by
   * another process too: it is asked once, and the answer is found for as long as it is stored, an hour.
   */
  async request(index: string, query: Query, options: StoreOptions = {}): Promise<Result> {
    return only(await this.durable(index, [query], false, options));
  }

  /** request for many queries in one message. Long answers come in parts, which are put together here. */
  async requestBatch(index: string, queries: Query[], options: StoreOptions = {}): Promise<Result[]> {
    return this.durable(index, queries, true, options);
  }

  /**
   * Stores a query. It tries until the stream has confirmed it, or the timeout: after a Timeout the query may have been stored
   * or not, and publishing it again with the same msgId is safe.
   */
  async publish(index: string, query: Query, options: PublishOptions = {}): Promise<Receipt> {
    return this.stored(index, [query], false, options);
  }

  /** Stores many queries in one message, whose answers come together, in their order. */
  async publishBatch(index: string, queries: Query[], options: PublishOptions = {}): Promise<Receipt> {
    return this.stored(index, queries, true, options);
  }

  /**
   * Reads answers: of an index's subject, or the user's, for which its name is enough, or of any other, with wildcards. Those of genie.result.>
   * are read from their stream, each once. Other subjects are plain subscriptions, which drop a message whose id came before.
   */
  async subscribe(subject: string, options: SubscribeOptions = {}): Promise<Subscription> {
    if (indexName.test(subject)) subject = `${this.prefix}.result.${subject}${this.ofUser}` + (this.user ? ".answers" : "");
    return subscribe(this.nc, this.js, await this.manager, this.prefix, subject, options);
  }

  /** The fields of a query that all workers of an index understand. It needs the right to publish to $SRV.INFO.geniemq. */
  async understood(index: string): Promise<string[]> {
    const inbox = createInbox();
    const sub = this.nc.subscribe(inbox);
    let fields: string[] | undefined;
    let timer = setTimeout(() => sub.unsubscribe(), this.timeout);
    this.nc.publish("$SRV.INFO.geniemq", undefined, { reply: inbox });
    for await (const m of sub) {
      if (m.data.length === 0) break; // nobody is there
      for (const e of m.json<{ endpoints: { metadata: { [name: string]: string } }[] }>().endpoints) {
        if (e.metadata["index"] !== index) continue;
        const has = (e.metadata["query_fields"] ?? "").split(" ");
        fields = fields ? fields.filter((f) => has.includes(f)) : has;
      }
      clearTimeout(timer);
      timer = setTimeout(() => sub.unsubscribe(), pause);
    }
    clearTimeout(timer);
    if (!fields) throw new NotServed(`no worker serves ${index}`);
    return fields;
  }

  private message(index: string, queries: Query[], batch: boolean, most: number, options: AskOptions, deadline?: number): { body: Uint8Array; headers: MsgHdrs } {
    if (!indexName.test(index)) throw new RangeError(`${JSON.stringify(index)} is no name of an index: use 1 to 64 of A-Z a-z 0-9 _ -`);
    if (queries.length === 0) throw new RangeError("no queries: send at least one");
    if (deadline !== undefined) {
      const left = Math.max(1, Math.floor(deadline - Date.now())); // nobody computes what nobody waits for
      queries = queries.map((q) => (q.timeout_ms === undefined ? { ...q, timeout_ms: left } : q));
    }
    const body = encode(this.codec, queries, batch);
    if (body.length > most) throw new QueryError("too_large", `the body has ${body.length} bytes and may have ${most}: send fewer queries at a time`);
    const headers = newHeaders();
    for (const [name, value] of Object.entries(options.headers ?? {})) headers.set(name, value);
    headers.set("Content-Type", media[this.codec]);
    return { body, headers };
  }

  private deadline(options: AskOptions): number {
    return Date.now() + (options.timeout ?? this.timeout);
  }

  private async direct(index: string, queries: Query[], batch: boolean, options: AskOptions): Promise<Result[]> {
    const began = Date.now();
    const deadline = this.deadline(options);
    const { body, headers } = this.message(index, queries, batch, room(this.nc), options, deadline);
    let m: Msg;
    try {
      m = await this.nc.request(`${this.prefix}.search.${index}${this.ofUser}`, body, { timeout: Math.max(1, deadline - Date.now()), headers });
    } catch (e) {
      if (unanswered(e)) throw new NotServed(`no worker serves ${index}`, { cause: e });
      if (e instanceof TimeoutError) throw new Timeout(`index ${index} did not answer in ${since(began)}`, { cause: e });
      throw e;
    }
    const answer = new Collector(queries.length, batch);
    if (!answer.add(decode(m.subject, m.headers, m.data))) throw new BadAnswer(`index ${index} answered some of the queries only`);
    return answer.results;
  }

  private async stored(index: string, queries: Query[], batch: boolean, options: PublishOptions): Promise<Receipt> {
    const { body, headers } = this.message(index, queries, batch, maxBody, options);
    if (options.reply !== undefined) headers.set("Genie-Reply", options.reply);
    return this.store(index, body, headers, options.msgId ?? nuid.next(), this.deadline(options));
  }

  /** Publishes until the stream confirms, with one message id for all tries. A body that is too large for a message is stored before. */
  private async store(index: string, body: Uint8Array, headers: MsgHdrs, msgID: string, deadline: number): Promise<Receipt> {
    const subject = `${this.prefix}.${this.bulk ? "bulk" : "query"}.${index}${this.ofUser}`;
    if (body.length <= room(this.nc)) return this.confirmed(subject, body, headers, msgID, deadline, () => {});
    const stored = await this.bodies.put(`${this.prefix.toUpperCase()}_OBJECTS` + (this.user ? `_${this.user}` : ""), body, deadline);
    headers.set(objectHeader, stored.header);
    let doubtful = false; // a try may have stored the message, though nobody said so
    try {
      const receipt = await this.confirmed(subject, new Uint8Array(), headers, msgID, Math.min(deadline, Date.now() + publishWithin), () => (doubtful = true));
      if (receipt.duplicate && !doubtful) await this.bodies.remove(stored); // another message has this id, and an object of its own
      return receipt;
    } catch (e) {
      if (!doubtful) await this.bodies.remove(stored);
      throw e;
    }
  }

  private async confirmed(subject: string, body: Uint8Array, headers: MsgHdrs, msgID: string, deadline: number, doubt: () => void): Promise<Receipt> {
    const began = Date.now();
    let unknownSince: number | undefined;
    let last: unknown;
    for (let tries = 0; ; tries++) {
      const left = deadline - Date.now();
      if (left <= 0) {
        throw new Timeout(`publishing to ${subject} was not confirmed in ${since(began)}; tries: ${tries}` + (last ? `, last: ${reason(last)}` : ""), { cause: last });
      }
      try {
        const ack = await this.js.publish(subject, body, { msgID, headers, timeout: Math.min(attempt, left), retries: 0 });
        return { msgId: msgID, stream: ack.stream, sequence: ack.seq, duplicate: ack.duplicate };
      } catch (e) {
        last = e;
        const absent = unanswered(e) || (e instanceof Error && e.name === "JetStreamNotEnabled");
        if (!absent && !(e instanceof JetStreamApiError)) doubt();
        if (e instanceof ClosedConnectionError || e instanceof DrainingConnectionError) throw e;
        if (e instanceof JetStreamApiError) {
          if (e.code === storeFailed && e.message.includes("maximum")) throw new QueueFull(`${subject}: ${e.message}`, { cause: e });
          if (e.status !== 503) throw new GenieError(`publishing to ${subject}: ${e.message}`, { cause: e });
        }
        if (!absent) unknownSince = undefined;
        else if (Date.now() - (unknownSince ??= Date.now()) > noStream) {
          throw new NoStream(`no stream takes ${subject}: start geniemq there once, or check the prefix`, { cause: e });
        }
      }
      await sleep(Math.min(pause, Math.max(0, deadline - Date.now())));
    }
  }

  private async durable(index: string, queries: Query[], batch: boolean, options: StoreOptions): Promise<Result[]> {
    const began = Date.now();
    const deadline = this.deadline(options);
    const own = options.msgId !== undefined;
    const { body, headers } = this.message(index, queries, batch, maxBody, options, own ? undefined : deadline);
    const asker = own ? "by." + createHash("sha256").update(options.msgId!).digest("hex").slice(0, 32) : `${this.id}.${++this.asked}`;
    const reply = `${this.prefix}.result.${index}${this.ofUser}.${asker}`;
    headers.set("Genie-Reply", reply);
    headers.set("Genie-Accept", "parts");
    const box = new Mailbox();
    this.boxes.set(reply, box);
    const sub = own ? this.nc.subscribe(reply, { callback: this.deliver }) : undefined;
    try {
      if (!own) this.listen(index);
      const receipt = await this.store(index, body, headers, options.msgId ?? nuid.next(), deadline);
      if (receipt.duplicate || own) box.put("look");
      const looks = new Looks(receipt, `${this.prefix.toUpperCase()}_RESULTS`, reply);
      const results = await this.collect(index, reply, box, new Collector(queries.length, batch), began, deadline, looks);
      if (!batch && !own && (queries[0]!.id === undefined || queries[0]!.id === "")) results[0]!.id = ""; // not the message id that this request made
      return results;
    } finally {
      this.boxes.delete(reply);
      if (sub && !sub.isClosed()) sub.unsubscribe();
    }
  }

  /** Collects the answer from the mailbox and, when something may have been missed, from the stream. */
  private async collect(index: string, reply: string, box: Mailbox, answer: Collector, began: number, deadline: number, looks: Looks): Promise<Result[]> {
    const stored = this.storedOf(reply, answer, looks);
    let wait = firstLook;
    for (;;) {
      const mail = await box.next(Math.max(0, Math.min(wait, deadline - Date.now())));
      if (mail !== undefined && mail !== "look") {
        if (answer.add(decode(mail.subject, mail.headers, mail.data))) return answer.results;
        continue;
      }
      if (Date.now() >= deadline) throw new Timeout(`index ${index} did not answer in ${since(began)}; ${looks}`);
      if (mail === undefined) wait = Math.min(2 * wait, lastLook);
      if (await stored()) return answer.results;
    }
  }

  /** Reads the messages that the stream has of a subject into an answer, each once. It says whether that completed it. A look that fails is noted only: the next comes. */
  private storedOf(reply: string, answer: Collector, looks: Looks): () => Promise<boolean> {
    const stream = `${this.prefix.toUpperCase()}_RESULTS`;
    let next = 1;
    return async () => {
      await this.place();
      try {
        for (let found = 0; ; found++) {
          const query = { seq: next, next_by_subj: reply } as unknown as MsgRequest; // which the server knows, and the types do not
          const m = await (await this.manager).streams.getMessage(stream, query);
          if (!m) {
            looks.note(found);
            return false;
          }
          next = m.seq + 1;
          if (answer.add(decode(reply, m.header, m.data))) return true;
        }
      } catch (e) {
        if (e instanceof ClosedConnectionError || e instanceof GenieError) throw e;
        looks.note(e);
        return false;
      } finally {
        this.looking--;
        this.places.shift()?.();
      }
    };
  }

  private async place(): Promise<void> {
    while (this.looking >= lookers) await new Promise<void>((free) => this.places.push(free));
    this.looking++;
  }

  private listen(index: string): void {
    if (this.inboxes.has(index)) return;
    this.inboxes.set(index, this.nc.subscribe(`${this.prefix}.result.${index}${this.ofUser}.${this.id}.*`, { callback: this.deliver }));
  }

  private readonly deliver = (error: Error | null, m: Msg): void => {
    if (!error) this.boxes.get(m.subject)?.put(m);
  };

  /** When the connection was away, each request that waits looks into the stream. */
  private async watch(): Promise<void> {
    const status = this.nc.status();
    this.status = status[Symbol.asyncIterator]();
    for await (const s of { [Symbol.asyncIterator]: () => this.status as AsyncIterator<{ type: string }> }) {
      if (s.type !== "reconnect") continue;
      this.bodies.reconnected();
      await this.nc.flush().catch(() => {}); // the server has the subscriptions again
      for (const box of this.boxes.values()) box.put("look");
    }
  }
}

/** Takes in what comes for a request, until it fetches it. */
class Mailbox {
  private readonly mail: Mail[] = [];
  private wake?: () => void;
  private error?: Error;

  put(m: Mail): void {
    this.mail.push(m);
    this.wake?.();
  }

  fail(e: Error): void {
    this.error = e;
    this.wake?.();
  }

  /** What came first, or undefined when nothing comes in time. */
  async next(timeout: number): Promise<Mail | undefined> {
    if (this.mail.length === 0 && !this.error) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((wake) => {
        this.wake = wake;
        timer = setTimeout(wake, timeout);
      });
      clearTimeout(timer);
      this.wake = undefined;
    }
    if (this.error) throw this.error;
    return this.mail.shift();
  }
}

function unanswered(e: unknown): boolean {
  return e instanceof NoRespondersError || (e instanceof RequestError && e.isNoResponders());
}

function only(results: Result[]): Result {
  const [r] = results;
  if (r!.error) throw r!.error;
  return r!;
}

/** What an error says, and what it came from: that of nats.js often says the less. */
function reason(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  const said = e.message || e.name;
  return e.cause instanceof Error && e.cause.message !== said ? `${said} (${reason(e.cause)})` : said;
}

const since = (began: number) => `${Math.round((Date.now() - began) / 100) / 10} s`;

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
