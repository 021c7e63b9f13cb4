import { EngineError } from "../../core/errors.ts";
import { ExtentFull, type ColumnSet } from "../columns/column-set.ts";
import { newRow, readRow } from "../ndjson/json-row.ts";
import { RowRefused } from "../ndjson/row-refused.ts";
import { RowWriter } from "../ndjson/row-writer.ts";
import {
  allOrNothing,
  arrivalOf,
  type BodyScanner,
  type NdjsonBody,
  type Rejected,
  type Scanned,
} from "../ndjson/scanner.ts";
import { logsJsonToWire, MalformedJson } from "./json-form.ts";
import { hasLogColumns, LogColumns, MAX_SHARED_BYTES } from "./log-columns.ts";
import { LogLine, unsigned } from "./log-line.ts";
import { merged } from "./merge.ts";
import { LOG_RECORD } from "./messages.ts";
import { ReadLog } from "./read-log.ts";
import { OTLP_LOGS_SHAPE } from "./shape.ts";
import { readShared, RESOURCE_VALUES, SCOPE_VALUES, type SharedValues } from "./shared-values.ts";
import type { Refusal } from "./value-json.ts";
import { MalformedWire, tagOf, WIRE, WireReader } from "../protobuf/wire.ts";

/**
 * Scans an `ExportLogsServiceRequest` (opentelemetry/proto/collector/logs/v1/logs_service.proto): each `LogRecord` becomes a
 * row of the columns in `shape.ts`, which are added where the table lacks them.
 *
 * Bytes that are no such message refuse the body, wherever they are. A record that no row can have, for it is nested too
 * deep or has text that is no UTF-8, is left out and counted: that depends on nothing but its bytes, so it is the same
 * records whenever the body is read again.
 *
 * A body's lines are its records, those left out among them.
 */
export const logsScanner: BodyScanner = {
  scan: (body, into) => allOrNothing(into, () => refusingMalformed(() => new LogsScan(body, into).run())),
};

/** The same for a request in the JSON form. */
export const logsJsonScanner: BodyScanner = {
  scan: (body, into) => logsScanner.scan({ ...body, bytes: refusingMalformed(() => logsJsonToWire(body.bytes)) }, into),
};

function refusingMalformed<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof MalformedWire) && !(error instanceof MalformedJson)) throw error;
    const form = error instanceof MalformedWire ? "protobuf" : "OTLP JSON";
    throw new EngineError("bad_request_body", `the request is not valid ${form}: ${error.message}`);
  }
}

/** One per thread: they hold nothing from one body to the next. */
const wire = new WireReader();
const log = new ReadLog(wire);
const line = new LogLine();
const row = newRow();

/** The only field of the request; the records of a `ScopeLogs`, and its like of a `ResourceLogs`. */
const RESOURCE_LOGS = tagOf(1, WIRE.length);
const SCOPE_LOGS = tagOf(2, WIRE.length);
const LOG_RECORDS = tagOf(2, WIRE.length);

const REASONS: Readonly<Record<Refusal, string>> = {
  nesting: "its values are nested deeper than 1000 levels",
  utf8: "text outside its body is not valid UTF-8",
};

class LogsScan {
  readonly #body: NdjsonBody;
  readonly #set: ColumnSet;
  readonly #rowsBefore: number;
  /** Undefined where the columns are not those of logs. */
  #columns: LogColumns | undefined;
  #writer: RowWriter | undefined;
  #isReady = false;
  /** The resource of the current records, and their scope. */
  #shared: SharedValues[] = [];
  #props: Uint8Array | undefined;
  /** Bytes that each record has of them, and of all that were written as lines. */
  #sharedBytes = 0;
  #lineBytes = 0;
  #records = 0;
  #rejected: Rejected | undefined;

  constructor(body: NdjsonBody, set: ColumnSet) {
    this.#body = body;
    this.#set = set;
    this.#rowsBefore = set.rows;
  }

  run(): Scanned {
    wire.open(this.#body.bytes);
    each(RESOURCE_LOGS, (start, end) => this.#resourceLogs(start, end));
    this.#columns?.settle();
    const rows = this.#set.rows - this.#rowsBefore;
    const rejected = this.#rejected;
    return { rows, lines: this.#records, ...(rejected === undefined ? {} : { rejected }) };
  }

  #resourceLogs(start: number, end: number): void {
    const resource = readShared(wire, log.values, { start, end }, RESOURCE_VALUES);
    wire.enter(start, end);
    each(SCOPE_LOGS, (from, to) => this.#scopeLogs(resource, from, to));
  }

  #scopeLogs(resource: SharedValues, start: number, end: number): void {
    const scope = readShared(wire, log.values, { start, end }, SCOPE_VALUES);
    this.#shared = [resource, scope];
    this.#props = propsOf(resource, scope);
    this.#sharedBytes = this.#props?.length ?? 0;
    for (const { texts } of this.#shared) for (const [, text] of texts) this.#sharedBytes += text.length;
    this.#columns?.begin(this.#shared, this.#props);
    wire.enter(start, end);
    each(LOG_RECORDS, (from, to) => this.#record(from, to));
  }

  #record(start: number, end: number): void {
    this.#records++;
    const { bytes } = wire;
    let refusal = log.read(start, end);
    if (log.values.repeated) {
      const whole = merged(wire, [start, end], LOG_RECORD);
      if (whole === undefined) {
        refusal = "nesting";
      } else {
        wire.open(whole);
        refusal = log.read(0, whole.length);
        wire.open(bytes);
      }
    }
    refusal = this.#shared[0]?.refusal ?? this.#shared[1]?.refusal ?? refusal;
    if (refusal === undefined) this.#write();
    else this.#reject(refusal);
  }

  #reject(refusal: Refusal): void {
    this.#rejected ??= { rows: 0, reason: `record ${this.#records} is not stored: ${REASONS[refusal]}` };
    this.#rejected.rows++;
  }

  #write(): void {
    if (!this.#isReady) this.#prepare();
    const { record } = log;
    if (this.#columns !== undefined && record.timeHigh >= 0 && record.observedHigh >= 0) {
      this.#columns.write(log, arrivalOf(this.#body, this.#records));
    } else {
      this.#writeLine();
    }
  }

  /** Adds the columns that the table lacks, when there is a row for them. */
  #prepare(): void {
    this.#isReady = true;
    const set = this.#set;
    for (const spec of OTLP_LOGS_SHAPE) {
      if (set.find(spec.name) >= 0) continue;
      set.metUnknownField = true;
      set.addColumn(spec);
    }
    if (!hasLogColumns(set)) return;
    this.#columns = new LogColumns(set);
    this.#columns.begin(this.#shared, this.#props);
  }

  #writeLine(): void {
    // As `LogColumns` counts it: a small request could say the same long text for each of very many records.
    this.#lineBytes += this.#sharedBytes;
    if (this.#lineBytes > MAX_SHARED_BYTES) throw new ExtentFull(MAX_SHARED_BYTES);
    this.#columns?.interrupt();
    const { atNs, unreadable } = timesOf(log);
    const props = unreadable === undefined ? this.#props : withMember(this.#props, unreadable);
    const more = { ...(atNs === undefined ? {} : { atNs }), ...(props === undefined ? {} : { props }) };
    try {
      readRow(line.textOf(log, this.#shared, more), row);
      this.#writer ??= new RowWriter(this.#set, row, { ...this.#body, evolve: true, inferTypes: false });
      this.#writer.write(this.#records);
    } catch (error) {
      throw error instanceof RowRefused ? refusalOf(error, this.#records) : error;
    }
    if (unreadable !== undefined && atNs === undefined) this.#body.misfits?.addTime(this.#records);
  }
}

/** Reads every payload of that tag of the message that the reader is in. */
function each(tag: number, read: (start: number, end: number) => void): void {
  while (wire.next()) {
    if (wire.tag !== tag) continue;
    const { at, end } = wire;
    read(wire.start, wire.stop);
    wire.enter(at, end);
  }
}

/** The time that the record tells, if it does, and the digits of one that is beyond what a time can be. */
function timesOf({ record }: ReadLog): { atNs?: bigint; unreadable?: string } {
  const timeNs = unsigned(record.timeHigh, record.timeLow);
  const observedNs = unsigned(record.observedHigh, record.observedLow);
  const isReadable = record.timeHigh >= 0;
  const unreadable = isReadable ? {} : { unreadable: `"time_unix_nano":${timeNs}` };
  if (isReadable && timeNs > 0n) return { atNs: timeNs };
  return record.observedHigh >= 0 && observedNs > 0n ? { ...unreadable, atNs: observedNs } : unreadable;
}

/** What a resource and a scope say that no column is for. */
function propsOf(resource: SharedValues, scope: SharedValues): Uint8Array | undefined {
  const members = [
    ...(resource.droppedAttributes === 0 ? [] : [`"resource_dropped_attributes":${resource.droppedAttributes}`]),
    ...(scope.droppedAttributes === 0 ? [] : [`"scope_dropped_attributes":${scope.droppedAttributes}`]),
  ];
  return members.length === 0 ? undefined : Buffer.from(`{${members.join(",")}}`);
}

function withMember(props: Uint8Array | undefined, member: string): Uint8Array {
  const others = props === undefined ? "" : `${Buffer.from(props).toString().slice(1, -1)},`;
  return Buffer.from(`{${others}${member}}`);
}

function refusalOf({ message, column }: RowRefused, record: number): EngineError {
  const where = column === undefined ? `record ${record}` : `record ${record}, column ${JSON.stringify(column)}`;
  const details = { line: record, ...(column === undefined ? {} : { column }) };
  return new EngineError("bad_request_body", `${where}: ${message}`, details);
}
