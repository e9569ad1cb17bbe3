import { AckPolicy, DeliverPolicy, JetStreamApiError, type ConsumerMessages, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection, Subscription as Sub } from "@nats-io/nats-core";
import { decode } from "./codec.js";
import { NoStream } from "./errors.js";
import type { Answer } from "./model.js";

export interface SubscribeOptions {
  /**
   * Names a durable consumer of the stream of answers: it goes on where it was when the application is started again, and several
   * processes with the same name share the answers. Each answer has to be acknowledged: answer.ack().
   */
  durable?: string;
  /** Begins with the oldest answer that is stored, instead of the next. It applies when a durable is made, not when one is found. */
  all?: boolean;
  /** How long a durable waits for ack before it delivers an answer again, in milliseconds. Default 30,000. */
  ackWait?: number;
}

/** Answers, one after the other: for await (const answer of subscription), until stop. Messages that are no answers are skipped. */
export interface Subscription extends AsyncIterable<Answer> {
  stop(): Promise<void>;
}

/** How many ids of messages a plain subscription remembers. */
const remembered = 4096;

export async function subscribe(nc: NatsConnection, js: JetStreamClient, manager: JetStreamManager, prefix: string, subject: string, options: SubscribeOptions): Promise<Subscription> {
  if (!subject.startsWith(`${prefix}.result.`)) {
    const sub = nc.subscribe(subject);
    await nc.flush();
    return plain(sub);
  }
  const stream = `${prefix.toUpperCase()}_RESULTS`;
  const info = await manager.streams.info(stream).catch((e: unknown) => {
    if (e instanceof JetStreamApiError && e.status === 404) throw new NoStream(`${stream} is missing: start geniemq there once, or check the prefix`, { cause: e });
    throw e;
  });
  const start = options.all ? 1 : info.state.last_seq + 1;
  if (options.durable !== undefined) {
    const durable = options.durable;
    await manager.consumers.info(stream, durable).catch(async (e: unknown) => {
      if (!(e instanceof JetStreamApiError && e.status === 404)) throw e;
      await manager.consumers.add(stream, {
        durable_name: durable, filter_subject: subject, ack_policy: AckPolicy.Explicit, ack_wait: (options.ackWait ?? 30_000) * 1e6,
        deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start,
      });
    });
    return stored(await (await js.consumers.get(stream, durable)).consume(), true);
  }
  // An ordered consumer is made again where it was when it is lost with its server.
  const ordered = await js.consumers.get(stream, { filter_subjects: subject, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start });
  return stored(await ordered.consume(), false);
}

function stored(messages: ConsumerMessages, durable: boolean): Subscription {
  return {
    async *[Symbol.asyncIterator]() {
      for await (const m of messages) {
        const answer = read(() => decode(m.subject, m.headers, m.data, durable ? () => m.ack() : undefined));
        if (answer) yield answer;
        else if (durable) m.term("no answer");
      }
    },
    async stop() {
      await messages.close();
    },
  };
}

/** A subscription of NATS. Workers may send a message again, with the same id, which is dropped. */
function plain(sub: Sub): Subscription {
  const seen = new Set<string>();
  return {
    async *[Symbol.asyncIterator]() {
      for await (const m of sub) {
        const answer = read(() => decode(m.subject, m.headers, m.data));
        if (!answer || seen.has(answer.msgId)) continue;
        if (answer.msgId !== "") seen.add(answer.msgId);
        if (seen.size > remembered) seen.delete(seen.values().next().value!);
        yield answer;
      }
    },
    async stop() {
      if (!sub.isClosed()) sub.unsubscribe();
    },
  };
}

function read(decode: () => Answer): Answer | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
