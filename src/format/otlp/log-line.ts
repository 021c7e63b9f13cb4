import { nsToRfc3339 } from "../time-text.ts";
import { JsonOut } from "./json-out.ts";
import type { ReadLog } from "./read-log.ts";
import { DEFAULT_LABEL } from "./shape.ts";
import type { SharedValues } from "./shared-values.ts";
import { repairedText, TEXT } from "./value-json.ts";

/**
 * A record as the line of NDJSON that comes to the same row. Tables whose columns are not those of logs get their rows
 * this way: what a value becomes in a column of another type is then decided where it is for every other row.
 */
export class LogLine {
  readonly #out = new JsonOut();

  /** `atNs` is the time that the record tells, if it tells one; `props` has what no column is for. */
  textOf(
    log: ReadLog,
    shared: readonly SharedValues[],
    { atNs, props }: { atNs?: bigint; props?: Uint8Array },
  ): string {
    const out = this.#out;
    out.clear();
    out.ascii("{");
    if (atNs !== undefined) this.#member("at", () => out.quotedAscii(nsToRfc3339(atNs)));
    this.#texts(log);
    this.#numbers(log);
    if (log.attributesEnd > 0) {
      this.#member("attributes", () => out.json(log.values.out.bytes, 0, log.attributesEnd));
    }
    if (log.bodyKind !== 0) this.#member("body", () => this.#body(log));
    for (const { texts } of shared) {
      for (const [name, text] of texts) {
        const isJson = name === "resource" || name === "scope";
        this.#member(name, () =>
          isJson ? out.json(text, 0, text.length) : out.quotedText(Buffer.from(text).toString()),
        );
      }
    }
    if (props !== undefined) this.#member("props", () => out.json(props, 0, props.length));
    out.ascii("}");
    return Buffer.from(out.bytes.buffer, 0, out.length).toString("utf8");
  }

  #texts({ record, bytes, view }: ReadLog): void {
    const out = this.#out;
    const { eventStart, eventEnd, severityStart, severityEnd } = record;
    this.#member("label", () => {
      if (eventEnd > eventStart) out.quoted(view, eventStart, eventEnd);
      else out.quotedAscii(DEFAULT_LABEL);
    });
    if (severityEnd > severityStart) {
      this.#member("severity_text", () => out.quoted(view, severityStart, severityEnd));
    }
    this.#hex("trace_id", bytes, record.traceStart, record.traceEnd);
    this.#hex("span_id", bytes, record.spanStart, record.spanEnd);
  }

  #numbers({ record }: ReadLog): void {
    const observedNs = unsigned(record.observedHigh, record.observedLow);
    // One beyond 2^63 fits no time, and its digits go where such values go.
    if (record.observedHigh < 0) this.#number("observed_at", observedNs);
    else if (observedNs > 0n) this.#member("observed_at", () => this.#out.quotedAscii(nsToRfc3339(observedNs)));
    if (record.severityNumber !== 0) this.#number("severity_number", record.severityNumber);
    if (record.flags !== 0) this.#number("flags", record.flags);
    if (record.droppedAttributes !== 0) this.#number("dropped_attributes", record.droppedAttributes);
  }

  #body({ bytes, view, values, attributesEnd, bodyKind, bodyStart, bodyEnd }: ReadLog): void {
    const out = this.#out;
    if (bodyKind !== TEXT) {
      out.json(values.out.bytes, attributesEnd, values.out.length);
      return;
    }
    const { length } = out;
    if (out.quoted(view, bodyStart, bodyEnd)) return;
    out.length = length;
    out.quotedText(repairedText(bytes, bodyStart, bodyEnd));
  }

  #hex(name: string, bytes: Uint8Array, start: number, end: number): void {
    if (end === start) return;
    this.#member(name, () => this.#out.quotedAscii(Buffer.from(bytes.slice(start, end)).toString("hex")));
  }

  #number(name: string, value: number | bigint): void {
    this.#member(name, () => this.#out.ascii(String(value)));
  }

  #member(name: string, write: () => void): void {
    if (this.#out.length > 1) this.#out.ascii(",");
    this.#out.quotedAscii(name);
    this.#out.ascii(":");
    write();
  }
}

/** An unsigned integer of 64 bits from its halves. */
export function unsigned(high: number, low: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
