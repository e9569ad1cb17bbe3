// Queries and answers. docs/protocol.md of geniemq has every field with its type, limits and default.

import type { QueryError } from "./errors.js";

export type Scalar = number | string | boolean;

/** The conditions that every column knows. Types of columns know others, such as {missing: true}. */
export interface Range {
  value?: Scalar;
  min?: number | string;
  max?: number | string;
  in?: Scalar[];
  unit?: "bucket";
  weight?: number;
}

export type Condition = Scalar | Range | { [field: string]: unknown } | unknown[] | null;
export type Conditions = { [attribute: string]: Condition };
export type Item = { attr: string } & (Range | { [field: string]: unknown });

/** A query as it goes over the wire. One of row, text, vector, set, items and point; or none, with a filter. */
export interface Query {
  id?: string | number;
  k?: number;
  row?: Conditions;
  text?: string;
  vector?: number[] | Float32Array;
  set?: (number | string)[];
  items?: Item[];
  point?: [number, number] | { lat: number; lon: number };
  radius?: number;
  column?: string;
  method?: string;
  fraction?: number;
  recall?: number;
  filter?: Conditions | Conditions[];
  exclude?: Conditions | Conditions[];
  total?: boolean;
  idf?: boolean;
  weights?: { [column: string]: number };
  rescore?: { by: string; column?: string };
  candidates?: number;
  certify?: boolean;
  min_count?: number;
  matched?: boolean;
  explain?: boolean;
  with_payload?: boolean;
  form?: "columns";
  keys?: boolean;
  timeout_ms?: number;
}

export interface Estimate {
  similarity: number;
  bound: number;
}

/** One object that matched. */
export interface Hit {
  /** Its position in the index, the same only within one version. */
  id: number;
  /** Its name; undefined where hits came as columns without keys. */
  key?: string;
  count: number;
  similarity?: number;
  distance?: number;
  score?: number;
  matched?: string[];
  columns?: { [column: string]: Estimate };
  payload?: { [column: string]: unknown };
}

export type Unsigned = Uint8Array | Uint16Array | Uint32Array;
export type Real = Float32Array | Float64Array;

/**
 * Hits as arrays, all in the order of the hits: for a query with form "columns". A hit without a similarity, distance or
 * score has a NaN there; an array of which no hit has a value is undefined.
 */
export class Columns implements Iterable<Hit> {
  ids = new Uint32Array(0);
  counts: Unsigned = new Uint8Array(0);
  similarities?: Float32Array;
  distances?: Real;
  scores?: Real;
  keys?: string[];
  matched?: (string[] | null)[];
  columns?: ({ [column: string]: Estimate } | null)[];
  payloads?: ({ [column: string]: unknown } | null)[];

  get length(): number {
    return this.ids.length;
  }

  at(i: number): Hit {
    const hit: Hit = { id: this.ids[i]!, count: this.counts[i]! };
    const put = <N extends keyof Hit>(name: N, value: Hit[N] | null | undefined) => {
      if (value !== null && value !== undefined && !Number.isNaN(value)) hit[name] = value;
    };
    put("key", this.keys?.[i]);
    put("similarity", this.similarities?.[i]);
    put("distance", this.distances?.[i]);
    put("score", this.scores?.[i]);
    put("matched", this.matched?.[i]);
    put("columns", this.columns?.[i]);
    put("payload", this.payloads?.[i]);
    return hit;
  }

  *[Symbol.iterator](): Iterator<Hit> {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }
}

/** The answer to one query: hits, best first, or an error. */
export interface Result {
  id: string;
  index: string;
  version: string;
  /** Hits, or Columns if the query asked for these. Both are iterable and have a length. */
  hits: Hit[] | Columns;
  error?: QueryError;
  mc_k: number;
  exact: boolean;
  total?: number;
  in_range?: number;
  method?: string;
  fraction?: number;
  expected_recall?: number;
  warnings: string[];
  explain?: { [field: string]: unknown };
  took_us: { [part: string]: number };
  first_hit: number;
  /** Of a part: how many hits the whole result has. 0: these are all. */
  all_hits: number;
}

/** One message of results. */
export interface Answer {
  subject: string;
  results: Result[];
  /** The position of the first result among the queries of the message. */
  first: number;
  batch: boolean;
  /** Its Nats-Msg-Id: whoever may see a message twice tells by it. */
  msgId: string;
  queryId: string;
  /** Receipt.sequence of the query message; 0 of direct answers. */
  querySeq: number;
  headers: { [name: string]: string };
  /** Of durables: ends the delivery. An answer that is not acknowledged is delivered again. */
  ack(): void;
}

/** Where a query was stored. */
export interface Receipt {
  msgId: string;
  stream: string;
  sequence: number;
  /** The stream had a message with this id already, and sequence is that one's. */
  duplicate: boolean;
}
