// Bodies of messages: queries into JSON or MessagePack, answers back, and the parts of long answers together.

import { decode as unpack, encode as pack } from "@msgpack/msgpack";
import type { MsgHdrs } from "@nats-io/nats-core";
import { BadAnswer, QueryError } from "./errors.js";
import { Columns, type Answer, type Hit, type Query, type Real, type Result, type Unsigned } from "./model.js";

export type Codec = "json" | "msgpack";
export const media: Record<Codec, string> = { json: "application/json", msgpack: "application/msgpack" };

export function encode(codec: Codec, queries: Query[], batch: boolean): Uint8Array {
  const plain = queries.map((q) => {
    const { vector, ...rest } = q;
    return vector === undefined ? rest : { ...rest, vector: Array.from(vector) };
  });
  const message = batch ? { queries: plain } : plain[0];
  return codec === "json" ? new TextEncoder().encode(JSON.stringify(message)) : pack(message, { ignoreUndefined: true });
}

type Doc = { [field: string]: any };

/** Reads an answer. BadAnswer: it is none, such as another service's message. */
export function decode(subject: string, header: MsgHdrs | undefined, body: Uint8Array, ack: () => void = () => {}): Answer {
  const headers: { [name: string]: string } = {};
  for (const [name, values] of header ?? []) headers[name] = values[0] ?? "";
  const type = (headers["Content-Type"] ?? "").split(";")[0]!.trim();
  let doc: Doc;
  try {
    if (type === media.msgpack) doc = unpack(body) as Doc;
    else if (type === "" || type === media.json) doc = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Doc;
    else throw new BadAnswer(`it is ${type}`);
    if (typeof doc !== "object" || doc === null) throw new BadAnswer("it is no object");
    const batch = "results" in doc;
    const list = batch ? doc["results"] : [doc];
    if (!Array.isArray(list)) throw new BadAnswer("its results are no list");
    return {
      subject, headers, batch, ack, results: list.map(result), first: Number(doc["first"] ?? 0), msgId: headers["Nats-Msg-Id"] ?? "",
      queryId: headers["Genie-Query-Id"] ?? "", querySeq: Number(headers["Genie-Query-Seq"] ?? 0),
    };
  } catch (e) {
    throw new BadAnswer(`a message on ${subject} is no answer: ${(e as Error).message}`, { cause: e });
  }
}

function result(doc: Doc): Result {
  if (typeof doc !== "object" || doc === null || !("hits" in doc || "error" in doc)) throw new BadAnswer("it has neither hits nor an error");
  const r: Result = { id: "", index: "", version: "", mc_k: 0, exact: false, warnings: [], took_us: {}, first_hit: 0, all_hits: 0, ...doc, hits: [], error: undefined };
  if ("error" in doc) {
    r.error = new QueryError(String(doc["error"].code), String(doc["error"].message));
  } else if (Array.isArray(doc["hits"])) {
    r.hits = doc["hits"] as Hit[];
  } else if (typeof doc["hits"] === "object" && doc["hits"] !== null) {
    r.hits = columns(doc["hits"] as Doc);
  } else {
    throw new BadAnswer("its hits are neither a list nor columns");
  }
  return r;
}

function columns(doc: Doc): Columns {
  const packed = (name: string): Uint8Array | undefined => (typeof doc[name] === "string" ? new Uint8Array(Buffer.from(doc[name], "base64")) : doc[name]);
  const ids = packed("ids");
  if (!ids || ids.length % 4) throw new BadAnswer("columns without ids, or with broken ones");
  const n = ids.length / 4;
  const numbers = (name: string, read: { [width: number]: (v: DataView, at: number) => number }, make: (width: number) => Unsigned | Real) => {
    const raw = packed(name);
    if (!raw || raw.length === 0) return undefined;
    const width = raw.length / n;
    const of = read[width];
    if (!of) throw new BadAnswer(`${name} has ${raw.length} bytes for ${n} hits`);
    const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
    const to = make(width);
    for (let i = 0; i < n; i++) to[i] = of(view, i * width);
    return to;
  };
  const values = <T>(name: string): T[] | undefined => {
    const list = doc[name] as T[] | undefined;
    if (list && list.length !== n) throw new BadAnswer(`${name} has ${list.length} elements for ${n} hits`);
    return list;
  };
  const integers = { 1: (v: DataView, at: number) => v.getUint8(at), 2: (v: DataView, at: number) => v.getUint16(at, true), 4: (v: DataView, at: number) => v.getUint32(at, true) };
  const float = (v: DataView, at: number) => v.getFloat32(at, true);
  const floats = { 4: float, 8: (v: DataView, at: number) => v.getFloat64(at, true) };
  const unsigned = (width: number): Unsigned => (width === 1 ? new Uint8Array(n) : width === 2 ? new Uint16Array(n) : new Uint32Array(n));
  const real = (width: number): Real => (width === 4 ? new Float32Array(n) : new Float64Array(n));
  const c = new Columns();
  c.ids = (numbers("ids", integers, unsigned) as Uint32Array<ArrayBuffer> | undefined) ?? new Uint32Array(0);
  c.counts = (numbers("counts", integers, unsigned) as Unsigned | undefined) ?? new Uint8Array(n);
  c.similarities = numbers("similarities", { 4: float }, real) as Float32Array | undefined;
  c.distances = numbers("distances", floats, real) as Real | undefined;
  c.scores = numbers("scores", floats, real) as Real | undefined;
  c.keys = values("keys");
  c.matched = values("matched");
  c.columns = values("columns");
  c.payloads = values("payloads");
  return c;
}

/** Puts the messages of an answer together, by the positions of results and hits: they may come twice, in any order, and from two workers. */
export class Collector {
  readonly results: Result[];
  private missing: number;
  private readonly parts = new Map<string, Map<number, Result>>();

  constructor(queries: number, private readonly batch: boolean) {
    this.results = new Array<Result>(queries);
    this.missing = queries;
  }

  /** Takes a message in; true when the answer is complete. What is wrong with the message as a whole is thrown. */
  add(answer: Answer): boolean {
    if (this.batch && !answer.batch) throw answer.results[0]?.error ?? new BadAnswer("a batch was answered by a single result");
    answer.results.forEach((r, i) => {
      const at = answer.first + i;
      if (at >= this.results.length || this.results[at]) return;
      const whole = this.joined(at, r);
      if (whole) {
        this.results[at] = whole;
        this.missing--;
      }
    });
    return this.missing === 0;
  }

  private joined(at: number, part: Result): Result | undefined {
    if (part.all_hits === 0 || part.error) return part;
    const of = `${at} ${part.all_hits} ${part.version}`;
    const parts = this.parts.get(of) ?? new Map<number, Result>();
    this.parts.set(of, parts);
    const known = parts.get(part.first_hit);
    if (!known || known.hits.length < part.hits.length) parts.set(part.first_hit, part);
    const pieces: [Hit[] | Columns, number][] = [];
    let whole: Result | undefined;
    let reach = 0;
    for (const [first, piece] of [...parts].sort(([a], [b]) => a - b)) {
      if (first > reach) return undefined;
      whole ??= piece; // what is told beside hits is the first part's
      if (first + piece.hits.length > reach) {
        pieces.push([piece.hits, reach - first]);
        reach = first + piece.hits.length;
      }
    }
    if (!whole || reach < part.all_hits) return undefined;
    this.parts.delete(of);
    return { ...whole, hits: concatenated(pieces, reach), all_hits: 0 };
  }
}

/** Hits from a position of each piece on. Columns stay columns. */
function concatenated(pieces: [Hit[] | Columns, number][], n: number): Hit[] | Columns {
  if (!pieces.every(([p]) => p instanceof Columns)) return pieces.flatMap(([p, at]) => [...p].slice(at));
  const parts = pieces as [Columns, number][];
  const whole = new Columns();
  whole.ids = new Uint32Array(n);
  whole.counts = new Uint32Array(n);
  let to = 0;
  for (const [p, at] of parts) {
    whole.ids.set(p.ids.subarray(at), to);
    whole.counts.set(p.counts.subarray(at), to);
    to += p.length - at;
  }
  const reals = (name: "similarities" | "distances" | "scores", make: () => Real) => {
    if (parts.every(([p]) => !p[name])) return undefined;
    const all = make().fill(NaN);
    let to = 0;
    for (const [p, at] of parts) {
      if (p[name]) all.set(p[name].subarray(at), to);
      to += p.length - at;
    }
    return all;
  };
  const lists = <T>(of: (p: Columns) => T[] | undefined, missing: T): T[] | undefined =>
    parts.every(([p]) => !of(p)) ? undefined : parts.flatMap(([p, at]) => (of(p) ?? new Array<T>(p.length).fill(missing)).slice(at));
  whole.similarities = reals("similarities", () => new Float32Array(n)) as Float32Array | undefined;
  whole.distances = reals("distances", () => new Float64Array(n));
  whole.scores = reals("scores", () => new Float64Array(n));
  whole.keys = lists((p) => p.keys, "");
  whole.matched = lists((p) => p.matched, null);
  whole.columns = lists((p) => p.columns, null);
  whole.payloads = lists((p) => p.payloads, null);
  return whole;
}
