import { merged } from "./merge.ts";
import { RESOURCE, SCOPE, type Message } from "./messages.ts";
import type { SHARED_COLUMNS } from "./shape.ts";
import { isText, TEXT, type Refusal, type ValueJson } from "./value-json.ts";
import { tagOf, WIRE, type WireReader } from "../protobuf/wire.ts";

export type SharedColumn = (typeof SHARED_COLUMNS)[number];

/** What all records of one resource, or of one scope, have in common. */
export type SharedValues = {
  /** Text by column; a column that is not here is NULL. */
  texts: ReadonlyMap<SharedColumn, Uint8Array>;
  droppedAttributes: number;
  /** Why none of the records can be kept, if they cannot. */
  refusal: Refusal | undefined;
};

/** Where a `ResourceLogs` or a `ScopeLogs` says something besides its records: tags of fields, and their columns. */
export type SharedKind = {
  message: Message;
  schemaUrl: SharedColumn;
  column: SharedColumn;
  attributes: number;
  dropped: number;
  texts: ReadonlyMap<number, SharedColumn>;
};

export const RESOURCE_VALUES: SharedKind = {
  message: RESOURCE,
  schemaUrl: "resource_schema_url",
  column: "resource",
  attributes: tagOf(1, WIRE.length),
  dropped: tagOf(2, WIRE.varint),
  texts: new Map(),
};

export const SCOPE_VALUES: SharedKind = {
  message: SCOPE,
  schemaUrl: "scope_schema_url",
  column: "scope",
  attributes: tagOf(3, WIRE.length),
  dropped: tagOf(4, WIRE.varint),
  texts: new Map([
    [tagOf(1, WIRE.length), "scope_name"],
    [tagOf(2, WIRE.length), "scope_version"],
  ]),
};

/** Fields of both `ResourceLogs` and `ScopeLogs`. */
const DESCRIBED = tagOf(1, WIRE.length);
const SCHEMA_URL = tagOf(3, WIRE.length);

const SERVICE_NAME = Buffer.from("service.name");

/** Reads what the `ResourceLogs` or `ScopeLogs` at `[start, end)` says besides its records. */
export function readShared(
  wire: WireReader,
  values: ValueJson,
  { start, end }: { start: number; end: number },
  kind: SharedKind,
): SharedValues {
  const reader = new SharedReader(wire, values, kind);
  reader.read(start, end);
  return { texts: reader.texts, droppedAttributes: reader.droppedAttributes, refusal: reader.refusal };
}

class SharedReader {
  readonly texts = new Map<SharedColumn, Uint8Array>();
  droppedAttributes = 0;
  refusal: Refusal | undefined;
  readonly #wire: WireReader;
  readonly #values: ValueJson;
  readonly #kind: SharedKind;

  constructor(wire: WireReader, values: ValueJson, kind: SharedKind) {
    this.#wire = wire;
    this.#values = values;
    this.#kind = kind;
  }

  read(start: number, end: number): void {
    const wire = this.#wire;
    const described: number[] = [];
    wire.enter(start, end);
    while (wire.next()) {
      if (wire.tag === DESCRIBED) described.push(wire.start, wire.stop);
      else if (wire.tag === SCHEMA_URL) this.#text(this.#kind.schemaUrl, wire.start, wire.stop);
    }
    const [from, to] = described;
    if (from === undefined || to === undefined) return;
    const isOne = described.length === 2;
    if (isOne) this.#describe(from, to);
    if (!isOne || this.#values.repeated) this.#describeMerged(described);
  }

  #describeMerged(ranges: readonly number[]): void {
    const wire = this.#wire;
    const { bytes } = wire;
    const whole = merged(wire, ranges, this.#kind.message);
    if (whole === undefined) {
      this.refusal ??= "nesting";
      return;
    }
    wire.open(whole);
    this.#describe(0, whole.length);
    wire.open(bytes);
  }

  /** Reads a `Resource` or an `InstrumentationScope`. */
  #describe(start: number, end: number): void {
    const wire = this.#wire;
    const values = this.#values;
    const { column, attributes, dropped, texts } = this.#kind;
    values.clear();
    wire.enter(start, end);
    while (wire.next()) {
      const text = texts.get(wire.tag);
      if (text !== undefined) this.#text(text, wire.start, wire.stop);
      else if (wire.tag === attributes) values.addMember(wire.start, wire.stop);
      else if (wire.tag === dropped) this.droppedAttributes = wire.low >>> 0;
    }
    if (values.pending === 0) return;
    if (column === "resource") this.#serviceName();
    const from = values.out.length;
    values.writeMembers(0, 1);
    this.texts.set(column, values.out.bytes.slice(from, values.out.length));
    this.refusal ??= values.refusal;
  }

  /** As a row of NDJSON would give it to a `string` column: text as it is, anything else as compact JSON. */
  #serviceName(): void {
    const values = this.#values;
    const member = values.findMember(SERVICE_NAME);
    if (member < 0) return;
    const { length } = values.out;
    const kind = values.writeMemberUnlessText(member, 2);
    if (kind === TEXT) this.texts.set("service_name", this.#wire.bytes.slice(values.textStart, values.textEnd));
    else if (kind !== 0) this.texts.set("service_name", unquoted(values.out.bytes.slice(length, values.out.length)));
    values.out.length = length;
  }

  /** A string of protobuf that is empty is not there. */
  #text(column: SharedColumn, start: number, end: number): void {
    const { bytes } = this.#wire;
    if (start === end) this.texts.delete(column);
    else this.texts.set(column, bytes.slice(start, end));
    if (!isText(bytes, start, end)) this.refusal ??= "utf8";
  }
}

const QUOTE = 0x22;

/** Of the JSON of a value that is no text: bytes and numbers that are not finite are strings, and need no escapes. */
export function unquoted(json: Uint8Array): Uint8Array {
  return json[0] === QUOTE ? json.subarray(1, -1) : json;
}
