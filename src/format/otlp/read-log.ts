import { LogRecord } from "./record.ts";
import { isText, ValueJson, type Refusal } from "./value-json.ts";
import type { WireReader } from "../protobuf/wire.ts";

/** One record at a time, read and checked whole before anything of it is written. */
export class ReadLog {
  readonly record = new LogRecord();
  readonly values: ValueJson;
  /** The source that the ranges of the record are of. */
  bytes: Uint8Array = new Uint8Array(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  /** `values.out` has the attributes first, up to here, and then a body that is no text. Nothing when there are none. */
  attributesEnd = 0;
  /** The tag of the body's value; 0 without one. A text is at `bodyStart` and `bodyEnd`. */
  bodyKind = 0;
  bodyStart = 0;
  bodyEnd = 0;
  readonly #wire: WireReader;

  constructor(wire: WireReader) {
    this.#wire = wire;
    this.values = new ValueJson(wire);
  }

  /** Reads the `LogRecord` at `[start, end)`; says why it cannot be kept. Look at `values.repeated` first. */
  read(start: number, end: number): Refusal | undefined {
    const { record, values } = this;
    values.clear();
    record.read(this.#wire, values, start, end);
    this.bytes = this.#wire.bytes;
    this.view = this.#wire.view;
    if (values.pending > 0) values.writeMembers(0, 1);
    this.attributesEnd = values.out.length;
    this.#readBody();
    const { bytes } = this;
    const areTexts =
      isText(bytes, record.severityStart, record.severityEnd) && isText(bytes, record.eventStart, record.eventEnd);
    return values.refusal ?? (areTexts ? undefined : "utf8");
  }

  #readBody(): void {
    const { record, values } = this;
    this.bodyKind = 0;
    if (record.bodyStart < 0) return;
    // A body is there for people to read: better a part of it than none.
    values.repairs = true;
    this.bodyKind = values.writeUnlessText(record.bodyStart, record.bodyEnd, 1);
    values.repairs = false;
    this.bodyStart = values.textStart;
    this.bodyEnd = values.textEnd;
  }
}
