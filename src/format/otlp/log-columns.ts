import { ExtentFull, type ColumnSet } from "../columns/column-set.ts";
import type { AnyColumn } from "../columns/create.ts";
import type { IntColumn } from "../columns/int-column.ts";
import type { LongColumn } from "../columns/long-column.ts";
import type { TextColumn } from "../columns/text-column.ts";
import { sameColumnType } from "../types.ts";
import type { ReadLog } from "./read-log.ts";
import { DEFAULT_LABEL, OTLP_LOGS_SHAPE, SHARED_COLUMNS, type OtlpColumn } from "./shape.ts";
import { unquoted, type SharedValues } from "./shared-values.ts";
import { repairedText, TEXT } from "./value-json.ts";

/**
 * Most bytes of text that the rows of an extent may have from their resources and scopes: a request names those once, and
 * every row repeats them, so that a small request could grow without end.
 */
export const MAX_SHARED_BYTES = 256 * 1024 * 1024;

/** Whether every column of logs is there, with the type that logs have for it. */
export function hasLogColumns(set: ColumnSet): boolean {
  return (
    set.vectors.length === 0 &&
    OTLP_LOGS_SHAPE.every(({ name, type }) => {
      const spec = set.columns[set.find(name)]?.spec;
      return spec !== undefined && sameColumnType(spec.type, type) && spec.inferred !== true;
    })
  );
}

/** The columns of a table of logs, where `hasLogColumns`: records go straight into them. */
export class LogColumns {
  readonly #set: ColumnSet;
  readonly #at: LongColumn;
  readonly #label: TextColumn;
  readonly #body: TextColumn;
  readonly #props: TextColumn;
  readonly #observedAt: LongColumn;
  readonly #severityNumber: IntColumn;
  readonly #severityText: TextColumn;
  readonly #traceId: TextColumn;
  readonly #spanId: TextColumn;
  readonly #flags: LongColumn;
  readonly #attributes: TextColumn;
  readonly #droppedAttributes: LongColumn;
  /** Of the current resource and scope. Their first row has them; those behind it get them together, by `settle`. */
  readonly #shared: { column: TextColumn; text: Uint8Array }[] = [];
  #isFirstRow = true;
  #rowsToSettle = 0;
  #sharedRowBytes = 0;
  #sharedBytes: number;
  #ownProps: Uint8Array | undefined;

  constructor(set: ColumnSet) {
    this.#set = set;
    this.#at = set.time;
    this.#label = columnOf(set, "label") as TextColumn;
    this.#body = columnOf(set, "body") as TextColumn;
    this.#props = columnOf(set, "props") as TextColumn;
    this.#observedAt = columnOf(set, "observed_at") as LongColumn;
    this.#severityNumber = columnOf(set, "severity_number") as IntColumn;
    this.#severityText = columnOf(set, "severity_text") as TextColumn;
    this.#traceId = columnOf(set, "trace_id") as TextColumn;
    this.#spanId = columnOf(set, "span_id") as TextColumn;
    this.#flags = columnOf(set, "flags") as LongColumn;
    this.#attributes = columnOf(set, "attributes") as TextColumn;
    this.#droppedAttributes = columnOf(set, "dropped_attributes") as LongColumn;
    this.#sharedBytes = SHARED_COLUMNS.reduce(
      (sum, name) => sum + (columnOf(set, name) as TextColumn).bytes().length,
      0,
    );
  }

  /** The records that follow are of these; `props` is what of them has no column. */
  begin(shared: readonly SharedValues[], props: Uint8Array | undefined): void {
    this.settle();
    this.#shared.length = 0;
    this.#isFirstRow = true;
    this.#sharedRowBytes = props?.length ?? 0;
    this.#ownProps = props;
    for (const { texts } of shared) {
      for (const [name, text] of texts) {
        this.#shared.push({ column: columnOf(this.#set, name) as TextColumn, text });
        this.#sharedRowBytes += text.length;
      }
    }
  }

  /**
   * Appends a row. `arrivedAtNs` is for a record without a time; the times it has must be in 63 bits. Throws `ExtentFull`.
   */
  write(log: ReadLog, arrivedAtNs: bigint): void {
    this.#sharedBytes += this.#sharedRowBytes;
    if (this.#sharedBytes > MAX_SHARED_BYTES) throw new ExtentFull(MAX_SHARED_BYTES);
    this.#writeTimes(log, arrivedAtNs);
    this.#writeTexts(log);
    this.#writeNumbers(log);
    this.#writeValues(log);
    if (this.#isFirstRow) this.#writeShared();
    else this.#rowsToSettle++;
    this.#set.endRow();
  }

  #writeShared(): void {
    this.#isFirstRow = false;
    for (const { column: shared, text } of this.#shared) {
      this.#ready(shared);
      shared.appendBytes(text, 0, text.length);
    }
  }

  /** Writes what rows share, before anybody else writes a row, or looks at them. */
  settle(): void {
    const rows = this.#rowsToSettle;
    this.#rowsToSettle = 0;
    if (rows === 0) return;
    for (const { column: shared, text } of this.#shared) shared.appendRepeated(text, rows);
  }

  /** The row that comes next is written by somebody else. */
  interrupt(): void {
    this.settle();
    this.#isFirstRow = true;
  }

  #writeTimes({ record }: ReadLog, arrivedAtNs: bigint): void {
    const at = this.#at;
    this.#ready(at);
    const hasTime = (record.timeLow | record.timeHigh) !== 0;
    const isObserved = (record.observedLow | record.observedHigh) !== 0;
    if (hasTime) at.appendWords(record.timeHigh, record.timeLow);
    else if (isObserved) at.appendWords(record.observedHigh, record.observedLow);
    else at.appendLong(arrivedAtNs);
    if (!isObserved) return;
    this.#ready(this.#observedAt);
    this.#observedAt.appendWords(record.observedHigh, record.observedLow);
  }

  #writeTexts({ record, bytes }: ReadLog): void {
    const { severityStart, severityEnd, eventStart, eventEnd } = record;
    this.#ready(this.#label);
    if (eventEnd > eventStart) this.#label.appendBytes(bytes, eventStart, eventEnd);
    else this.#label.appendBytes(DEFAULT_LABEL_BYTES, 0, DEFAULT_LABEL_BYTES.length);
    if (severityEnd > severityStart) {
      this.#ready(this.#severityText);
      this.#severityText.appendBytes(bytes, severityStart, severityEnd);
    }
    const { traceStart, traceEnd, spanStart, spanEnd } = record;
    if (traceEnd > traceStart) {
      this.#ready(this.#traceId);
      this.#traceId.appendHex(bytes, traceStart, traceEnd);
    }
    if (spanEnd > spanStart) {
      this.#ready(this.#spanId);
      this.#spanId.appendHex(bytes, spanStart, spanEnd);
    }
  }

  #writeNumbers({ record }: ReadLog): void {
    const { severityNumber, flags, droppedAttributes } = record;
    if (severityNumber !== 0) {
      this.#ready(this.#severityNumber);
      this.#severityNumber.appendInt(severityNumber);
    }
    if (flags !== 0) {
      this.#ready(this.#flags);
      this.#flags.appendWords(0, flags);
    }
    if (droppedAttributes === 0) return;
    this.#ready(this.#droppedAttributes);
    this.#droppedAttributes.appendWords(0, droppedAttributes);
  }

  #writeValues(log: ReadLog): void {
    const { values, attributesEnd } = log;
    if (attributesEnd > 0) {
      this.#ready(this.#attributes);
      this.#attributes.appendUtf8(values.out.view, 0, attributesEnd);
    }
    if (this.#ownProps !== undefined) {
      this.#ready(this.#props);
      this.#props.appendBytes(this.#ownProps, 0, this.#ownProps.length);
    }
    if (log.bodyKind === 0) return;
    this.#ready(this.#body);
    if (log.bodyKind !== TEXT) {
      const json = unquoted(values.out.bytes.subarray(attributesEnd, values.out.length));
      this.#body.appendBytes(json, 0, json.length);
    } else if (!this.#body.appendUtf8(log.view, log.bodyStart, log.bodyEnd)) {
      this.#body.appendText(repairedText(log.bytes, log.bodyStart, log.bodyEnd));
    }
  }

  /** Makes the column end at the current row. */
  #ready(ready: AnyColumn): void {
    const { rows } = this.#set;
    if (ready.rows !== rows || rows === ready.nullCount) this.#set.ready(ready);
  }
}

const DEFAULT_LABEL_BYTES = Buffer.from(DEFAULT_LABEL);

/** The column of that name, which `hasLogColumns` has seen to be of that type. */
function columnOf(set: ColumnSet, name: OtlpColumn): AnyColumn {
  return set.columns[set.find(name)] as AnyColumn;
}
