import { isUtf8 } from "node:buffer";
import { foldName } from "../../core/names.ts";
import type { BoolColumn } from "../columns/bool-column.ts";
import type { ColumnSet } from "../columns/column-set.ts";
import type { AnyColumn } from "../columns/create.ts";
import type { IntColumn } from "../columns/int-column.ts";
import type { LongColumn } from "../columns/long-column.ts";
import type { RealColumn } from "../columns/real-column.ts";
import type { TextColumn } from "../columns/text-column.ts";
import type { VectorColumn } from "../columns/vector-column.ts";
import { TIME_STAND_INS } from "../types.ts";
import { toExactReal, toFinite, toInt32, toInt64 } from "../decimal.ts";
import { BlockReader } from "./block-reader.ts";
import { BodyLines } from "./body-lines.ts";
import { BYTE, copyCompact, decodeString, JsonReader, literalEnd, quotedEnd, skipSpaceBytes } from "./json-bytes.ts";
import { Guesses } from "./infer-types.ts";
import { hasToken, KeyTable, type Slot } from "./key-table.ts";
import {
  exactReal,
  isExact,
  longReal,
  newNumberToken,
  plainInteger,
  readLongDigits,
  readNumber,
  Words,
  type LongDigits,
} from "./number-bytes.ts";
import { rowModule } from "./row-module.ts";
import { allOrNothing, arrivalOf, type BodyScanner, type NdjsonBody, type Scanned } from "./scanner.ts";
import { TimeReader } from "./time-bytes.ts";

/** Shorter bodies are read faster than the module is told of a table's keys. */
const MIN_MODULE_BYTES = 8 * 1024;

/**
 * The scanner of the hot path: from bytes straight into column builders. No object per row, no string per value.
 *
 * It knows the table's columns by the bytes of their keys, expects keys in the order of the row before, and writes each
 * value while it reads it. It makes no decision that `json-scanner.ts` does not make: a row that needs one (a field
 * without a column, a value that does not fit, a key twice, an odd escape, anything that may not be JSON) is taken back
 * and given to the line reader there, which is also what tests hold this scanner against. So the rules have one home,
 * and every row that is ordinary, after the first of its kind, is read here.
 */
export const byteScanner: BodyScanner = newByteScanner(MIN_MODULE_BYTES);

/** The same, but bodies from another size on are read by the module of `wasm/`; none of them with `Infinity`. */
export function newByteScanner(minModuleBytes: number): BodyScanner {
  return { scan: (body, into) => allOrNothing(into, () => scanBody(body, into, minModuleBytes)) };
}

/**
 * New columns get the type of their first values, which is right for most bodies. Where a later value calls for another,
 * the body is scanned again under that. Ordinary data shows it within a few rows; where more than the body's size was read
 * in vain, a scan goes on to the end to find all that is left.
 */
function scanBody(body: NdjsonBody, into: ColumnSet, minModuleBytes: number): Scanned {
  const text = textOf(body.bytes);
  const usesModule = body.bytes.length >= minModuleBytes;
  if (body.inferTypes !== true) return scannerFor(into).scan(body, text, usesModule);
  const guesses = new Guesses();
  const guessing = { ...body, guesses };
  for (let readBytes = 0; ;) {
    const scanner = scannerFor(into);
    try {
      const scanned = scanner.scan(guessing, text, usesModule, readBytes > body.bytes.length);
      if (!guesses.haveFailed) return scanned;
    } catch (error) {
      // What fails in a scan that is in vain fails again in the next, or it was for the wrong types.
      if (!guesses.haveFailed) throw error;
    }
    into.rollback();
    body.misfits?.clear();
    guesses.haveFailed = false;
    readBytes += scanner.readBytes;
  }
}

/** The scanner of the set that was scanned into last: what it learned from one body serves the next. */
let latest: RowScanner | undefined;

/** Whose columns and keys the module's memory has. */
let moduleUser: BlockReader | undefined;

function scannerFor(set: ColumnSet): RowScanner {
  if (latest?.set !== set) latest = new RowScanner(set);
  return latest;
}

/** What becomes of the value of a key. */
const DROPPED = 0;
const TEXT = 1;
const DYNAMIC = 2;
const BOOL = 3;
const INT = 4;
const LONG = 5;
const REAL = 6;
const TIMESTAMP = 7;
const VECTOR = 8;
/** A field that tells the time when there is no `at`, and that no column is named for. */
const STAND_IN = 9;
/** As above, of columns whose type was inferred: they take only what they give back exactly. */
const EXACT_REAL = 10;
const UTC = 11;
/** A string column that the body itself has brought: another value makes it `dynamic`. */
const ONLY_TEXT = 12;
/** A field that gets a column with its first value. */
const NULL = 13;

type Target = { readonly kind: number; readonly index: number; readonly column: AnyColumn | undefined };

/** Instead of a position: the row is not for this scanner. */
const REFUSED = -1;
const NO_COLUMN = -1;
const UPPER_T = 0x54;
const UPPER_Z = 0x5a;
const FIRST_PRINTABLE = 0x20;
/** Bytes below are white space between tokens, or wrong. */
const FIRST_TOKEN = 0x21;
/**
 * A scan that is in vain reads on as far as it has come, for other columns whose guess fails, but not beyond so many rows
 * that the line reader must read.
 */
const MAX_VAIN_ROWS = 16;
/** A block of fewer rows costs more than the module saves. */
const WORTHWHILE_ROWS = 8;
const MAX_WAIT_ROWS = 512;
/** Keys remembered at a time; the one after that makes the scanner forget them all. */
const MAX_KEYS = 8_192;
/** Keys longer than this are not remembered; no column has one. */
const MAX_KEY_BYTES = 1_024;

/** One per thread: they hold nothing from one value to the next. */
const number = newNumberToken();
const time = new TimeReader();
const json = new JsonReader();
const longDigits: LongDigits = { billions: 0, rest: 0 };
const words = new Words();

class RowScanner {
  readonly set: ColumnSet;
  /** How far into the body the last scan came, or further. */
  readBytes = 0;
  #body: NdjsonBody = { bytes: new Uint8Array(0), evolve: true, arrivedAtNs: 0n };
  /** The body and at least `SLACK_BYTES` beyond. */
  #view: DataView = new DataView(new ArrayBuffer(0));
  #keys = new KeyTable<Target>();
  /** The slot of the first key of the row before. */
  #firstSlot: Slot<Target> | undefined;
  /** Columns of the set when the keys were learned: a new one changes what keys mean. */
  #knownColumns = -1;
  /** Columns of the set before the body. */
  #tableColumns = -1;
  /** Columns named like a stand-in for `at`. */
  #standInColumns: number[] = [];
  /** The current row's line in the body. */
  #line = 0;
  /** The current row's number, over all bodies and failed attempts. */
  #stamp = 0;
  /** By column: the stamp of the row that had its key last. */
  #stamps = new Int32Array(0);
  /** Columns whose keys the current row has had. */
  #touched = new Int32Array(0);
  #touchedCount = 0;
  /** Where the value of a stand-in for `at` starts; 0 without one (a row starts with its brace). */
  #standIn = 0;
  #vector = new Float32Array(0);
  /** What reads blocks of rows by the module, with the keys as of some row; made when it is first needed. */
  #blocks: BlockReader | undefined;
  /** Rows to be read here before the module gets the next block, and how many the last time. */
  #wait = 1;
  #lastWait = 1;

  constructor(set: ColumnSet) {
    this.set = set;
  }

  /** A scan that is in vain ends early, unless it is to go on to the end; see `Guesses`. */
  scan(body: NdjsonBody, { source, end }: BodyText, usesModule: boolean, goesOn = false): Scanned {
    const isOtherwise = body.evolve !== this.#body.evolve || body.inferTypes !== this.#body.inferTypes;
    const { length } = this.set.columns;
    // Columns that were the last body's own are taken for those of the table from now on.
    if (isOtherwise || this.#knownColumns !== length || this.#tableColumns !== length) this.#forgetKeys();
    this.#body = body;
    this.#tableColumns = length;
    const lines = new BodyLines(body, this.set);
    this.#view = new DataView(source.buffer, source.byteOffset);
    let at = 0;
    let line = 1;
    let stopAt = end;
    let vainRows = 0;
    while (at < stopAt) {
      const blocks = usesModule && this.#wait === 0 ? this.#readyBlocks() : undefined;
      if (blocks !== undefined) {
        at = blocks.read(source, at, stopAt, line, body);
        line += blocks.lines;
        if (!blocks.isStopped) continue;
        this.#waitAfter(blocks.rows);
      }
      if (this.#wait > 0) this.#wait--;
      this.#line = line;
      const next = this.#row(source, at);
      if (next !== REFUSED) {
        at = next;
      } else {
        this.readBytes = at;
        const start = at;
        at = this.#readSlowly(lines, start, line);
        if (!goesOn && body.guesses?.haveFailed === true) {
          vainRows++;
          if (vainRows === 1) stopAt = Math.min(stopAt, 2 * start);
          if (vainRows === MAX_VAIN_ROWS) stopAt = at;
        }
      }
      line++;
    }
    this.readBytes = at;
    if (body.guesses?.haveFailed === true && !goesOn) return { rows: 0, lines: 0 };
    this.readBytes = body.bytes.length;
    return lines.finish(lines.readFrom(at, line));
  }

  /** The reader of blocks, knowing all keys that are known here; undefined when there is none for this set. */
  #readyBlocks(): BlockReader | undefined {
    const module = this.set.vectors.length === 0 ? rowModule() : undefined;
    if (module === undefined) return undefined;
    const blocks =
      this.#blocks !== undefined && moduleUser === this.#blocks ? this.#blocks : new BlockReader(module, this.set);
    this.#blocks = blocks;
    moduleUser = blocks;
    const { slots } = this.#keys;
    while (blocks.hasRoom && blocks.keys < slots.length) blocks.addKey(slots[blocks.keys] as Slot<Target>);
    return blocks.hasRoom ? blocks : undefined;
  }

  /** After the module stopped: where it read few rows, the next ones are read here, more each time. */
  #waitAfter(rows: number): void {
    this.#lastWait = rows < WORTHWHILE_ROWS ? Math.min(2 * this.#lastWait, MAX_WAIT_ROWS) : 1;
    this.#wait = this.#lastWait;
  }

  /** Gives the line at `start` to the line reader; returns where the next begins. */
  #readSlowly(lines: BodyLines, start: number, line: number): number {
    for (let i = 0; i < this.#touchedCount; i++) {
      const column = this.set.columns[this.#touched[i] as number];
      if (column !== undefined) this.set.takeBack(column);
    }
    const next = lines.readLine(start, line);
    if (this.set.columns.length !== this.#knownColumns || this.#keys.size >= MAX_KEYS) this.#forgetKeys();
    return next;
  }

  #forgetKeys(): void {
    this.#keys = new KeyTable();
    this.#blocks = undefined;
    this.#wait = Math.max(this.#wait, 1);
    this.#firstSlot = undefined;
    this.#knownColumns = this.set.columns.length;
    this.#standInColumns = TIME_STAND_INS.map((name) => this.set.find(name)).filter((index) => index >= 0);
    this.#stamps = new Int32Array(this.#knownColumns);
    this.#touched = new Int32Array(this.#knownColumns);
    this.#touchedCount = 0;
  }

  /** Reads the row at `start` and returns where the next line begins, or `REFUSED` with the row half written. */
  #row(source: Uint8Array, start: number): number {
    this.#stamp++;
    this.#touchedCount = 0;
    this.#standIn = 0;
    let at = skipSpaceBytes(source, start);
    // Blank lines come here too, and the line reader skips them.
    if (source[at] !== BYTE.openBrace) return REFUSED;
    at = skipSpaceBytes(source, at + 1);
    at = source[at] === BYTE.closeBrace ? at + 1 : this.#fields(source, at);
    if (at === REFUSED) return REFUSED;
    at = skipSpaceBytes(source, at);
    return source[at] === BYTE.lineFeed && this.#finishRow(source) ? at + 1 : REFUSED;
  }

  /** Reads the fields from the first key at `start` on, and the closing brace. */
  #fields(source: Uint8Array, start: number): number {
    let at = start;
    let previous: Slot<Target> | undefined;
    for (;;) {
      let slot = previous === undefined ? this.#firstSlot : previous.next;
      if (slot !== undefined && hasToken(this.#view, at, slot.words, slot.lastMask)) {
        at += slot.token.length;
      } else {
        const keyEnd = plainKeyEnd(source, at);
        if (keyEnd === REFUSED) return REFUSED;
        slot = this.#slotOf(source, at + 1, keyEnd);
        at = skipSpaceBytes(source, keyEnd + 1);
        if (slot === undefined || source[at] !== BYTE.colon) return REFUSED;
        at++;
        if (previous === undefined) this.#firstSlot = slot;
        else previous.next = slot;
      }
      if ((source[at] as number) < FIRST_TOKEN) at = skipSpaceBytes(source, at);
      at = this.#value(source, at, slot.target);
      if (at === REFUSED) return REFUSED;
      if ((source[at] as number) < FIRST_TOKEN) at = skipSpaceBytes(source, at);
      const byte = source[at++];
      if (byte !== BYTE.comma) return byte === BYTE.closeBrace ? at : REFUSED;
      if ((source[at] as number) < FIRST_TOKEN) at = skipSpaceBytes(source, at);
      previous = slot;
    }
  }

  /** The vectors, the time and the count. False, with nothing written, when the line reader must decide. */
  #finishRow(source: Uint8Array): boolean {
    const { set } = this;
    for (const index of set.vectors) if (!this.#isTouched(index)) return false;
    if (this.#isTouched(set.timeIndex)) {
      if (this.#standIn !== 0) return false;
    } else {
      // Which of several stand-ins tells the time is the line reader's to say.
      for (const index of this.#standInColumns) if (this.#isTouched(index)) return false;
      if (this.#standIn !== 0) return this.#finishWithStandIn(source, this.#standIn);
      this.#ready(set.time, set.rows);
      set.time.appendLong(arrivalOf(this.#body, this.#line));
    }
    set.endRow();
    return true;
  }

  #finishWithStandIn(source: Uint8Array, at: number): boolean {
    const { set } = this;
    if (this.#timestamp(source, at) === REFUSED) return false;
    this.#ready(set.time, set.rows);
    set.time.appendWords(time.high, time.low);
    set.endRow();
    return true;
  }

  #isTouched(index: number): boolean {
    return this.#stamps[index] === this.#stamp;
  }

  /** The slot of a key that was not expected; learns it. Undefined when the line reader must see the row. */
  #slotOf(source: Uint8Array, start: number, end: number): Slot<Target> | undefined {
    const known = this.#keys.find(source, start, end);
    if (known !== undefined) return known;
    if (this.#keys.size >= MAX_KEYS || end - start > MAX_KEY_BYTES) return undefined;
    const target = this.#targetOf(Buffer.from(source.subarray(start, end)).toString("utf8"));
    return target === undefined ? undefined : this.#keys.add(source, start, end, target);
  }

  #targetOf(name: string): Target | undefined {
    const index = this.set.find(name);
    const column = this.set.columns[index];
    if (column !== undefined) return { kind: this.#kindOf(column, index), index, column };
    if ((TIME_STAND_INS as readonly string[]).includes(name)) return { kind: STAND_IN, index: NO_COLUMN, column };
    // Another spelling of a stand-in is for the line reader, like everything that may become a column.
    const isSpelling = (TIME_STAND_INS as readonly string[]).includes(foldName(name));
    if (isSpelling) return undefined;
    if (!this.#body.evolve) return { kind: DROPPED, index: NO_COLUMN, column };
    return this.#body.inferTypes === true ? { kind: NULL, index: NO_COLUMN, column } : undefined;
  }

  #kindOf(column: AnyColumn, index: number): number {
    const kind = kindOf(column);
    const isOwn = index >= this.#tableColumns && column.spec.inferred === true;
    return kind === TEXT && isOwn ? ONLY_TEXT : kind;
  }

  /** Notes that the row has the column's key. False when it had it before, in this spelling or another. */
  #touch(index: number): boolean {
    if (this.#isTouched(index)) return false;
    this.#stamps[index] = this.#stamp;
    this.#touched[this.#touchedCount++] = index;
    return true;
  }

  /** Reads the value at `at` into its column; returns where it ends, or `REFUSED`. */
  #value(source: Uint8Array, at: number, target: Target): number {
    const { kind, index } = target;
    if (kind === DROPPED) return this.#droppedValue(source, at);
    if (kind === STAND_IN) return this.#standInValue(source, at);
    if (kind === NULL) return this.#nullValue(source, at);
    if (!this.#touch(index)) return REFUSED;
    if (source[at] !== BYTE.n) return this.#write(source, at, target);
    // null writes nothing. What it means for the time and for a vector is the line reader's to say.
    return kind === VECTOR || index === this.set.timeIndex ? REFUSED : literalEnd(source, at);
  }

  #write(source: Uint8Array, at: number, { kind, column }: Target): number {
    const { rows } = this.set;
    switch (kind) {
      case TEXT:
        return this.#text(source, at, column as TextColumn, rows);
      case DYNAMIC:
        return this.#jsonInto(source, at, column as TextColumn, rows);
      case BOOL: {
        const end = literalEnd(source, at);
        if (end !== REFUSED) {
          this.#ready(column as BoolColumn, rows);
          (column as BoolColumn).appendBool(source[at] === BYTE.t);
        }
        return end;
      }
      case INT:
        return this.#int(source, at, column as IntColumn, rows);
      case LONG:
        return this.#long(source, at, column as LongColumn, rows);
      case REAL:
      case EXACT_REAL:
        return this.#real(source, at, column as RealColumn, rows);
      case ONLY_TEXT:
        return source[at] === BYTE.quote ? this.#text(source, at, column as TextColumn, rows) : REFUSED;
      case UTC:
      case TIMESTAMP: {
        const end = this.#timestamp(source, at);
        if (kind === UTC && !isUtc(source, at, end)) return REFUSED;
        if (end !== REFUSED) {
          this.#ready(column as LongColumn, rows);
          (column as LongColumn).appendWords(time.high, time.low);
        }
        return end;
      }
      case VECTOR:
        return this.#vectorInto(source, at, column as VectorColumn, rows);
      default:
        return REFUSED;
    }
  }

  #text(source: Uint8Array, start: number, column: TextColumn, rows: number): number {
    const first = source[start] as number;
    if (first === BYTE.quote) {
      this.#ready(column, rows);
      const close = column.appendQuoted(this.#view, start + 1);
      return close === REFUSED ? this.#escapedText(source, start, column, rows) : close + 1;
    }
    if (first > BYTE.nine) return this.#jsonInto(source, start, column, rows);
    const end = this.#numberEnd(source, start);
    if (end === REFUSED) return REFUSED;
    this.#ready(column, rows);
    column.appendBytes(source, start, end);
    return end;
  }

  #escapedText(source: Uint8Array, start: number, column: TextColumn, rows: number): number {
    const end = quotedEnd(this.#view, start + 1);
    if (end === REFUSED) return REFUSED;
    this.#ready(column, rows);
    const { target, from } = column.room(end - start + SLACK_BYTES);
    const decoded = decodeString(source, this.#view, start + 1, end - 1, target, from);
    if (decoded < 0) return REFUSED;
    column.endText(decoded);
    return end;
  }

  #jsonInto(source: Uint8Array, start: number, column: TextColumn, rows: number): number {
    if (!json.read(source, start, 1)) return REFUSED;
    const { end } = json;
    this.#ready(column, rows);
    if (json.compact) {
      column.appendBytes(source, start, end);
    } else {
      const { target, from } = column.room(end - start);
      column.endText(copyCompact(source, start, end, target, from));
    }
    return end;
  }

  #int(source: Uint8Array, at: number, column: IntColumn, rows: number): number {
    const end = this.#numberEnd(source, at);
    if (end === REFUSED) return REFUSED;
    const value = plainInteger(number) ?? toInt32(latin1(source, at, end));
    if (value === undefined || value !== (value | 0)) return REFUSED;
    this.#ready(column, rows);
    column.appendInt(value | 0);
    return end;
  }

  #long(source: Uint8Array, at: number, column: LongColumn, rows: number): number {
    const end = this.#numberEnd(source, at);
    if (end === REFUSED) return REFUSED;
    const value = plainInteger(number);
    this.#ready(column, rows);
    if (value !== undefined) {
      column.appendWords(Math.floor(value / 0x1_0000_0000), value % 0x1_0000_0000);
      return end;
    }
    if (number.plain && readLongDigits(source, at, number, longDigits)) {
      if (!words.setLong(longDigits, number.negative)) return REFUSED;
      column.appendWords(words.high, words.low);
      return end;
    }
    const exact = toInt64(latin1(source, at, end));
    if (exact === undefined) return REFUSED;
    column.appendLong(exact);
    return end;
  }

  #real(source: Uint8Array, at: number, column: RealColumn, rows: number): number {
    const end = this.#numberEnd(source, at);
    if (end === REFUSED) return REFUSED;
    const value = this.#finite(source, at, end);
    if (value === undefined) return REFUSED;
    if (column.spec.inferred === true && !isExact(number) && toExactReal(latin1(source, at, end)) === undefined) {
      return REFUSED;
    }
    this.#ready(column, rows);
    column.appendReal(value);
    return end;
  }

  /** The number last read, which stands at `[start, end)`, as a finite double. */
  #finite(source: Uint8Array, start: number, end: number): number | undefined {
    const value = exactReal(number);
    if (value !== undefined) return value;
    const long = readLongDigits(source, start, number, longDigits) ? longReal(longDigits, number) : undefined;
    return long ?? toFinite(latin1(source, start, end));
  }

  /** Reads a time into `time`: a string in a usual form, or a number, in quotes or not. */
  #timestamp(source: Uint8Array, start: number): number {
    if (source[start] === BYTE.quote) {
      let at = start + 1;
      while ((source[at] as number) >= FIRST_PRINTABLE && source[at] !== BYTE.quote) at++;
      if (source[at] !== BYTE.quote) return REFUSED;
      if (time.read(source, start + 1, at)) return at + 1;
      return this.#numberEnd(source, start + 1) === at && time.readEpoch(number) ? at + 1 : REFUSED;
    }
    const end = this.#numberEnd(source, start);
    return end !== REFUSED && time.readEpoch(number) ? end : REFUSED;
  }

  #nullValue(source: Uint8Array, at: number): number {
    this.set.metUnknownField = true;
    return source[at] === BYTE.n ? literalEnd(source, at) : REFUSED;
  }

  #droppedValue(source: Uint8Array, at: number): number {
    this.set.metUnknownField = true;
    return json.read(source, at, 1) ? json.end : REFUSED;
  }

  /** Steps over the value of a stand-in, and remembers where it is. */
  #standInValue(source: Uint8Array, at: number): number {
    this.set.metUnknownField = true;
    if (this.#standIn !== 0) return REFUSED;
    this.#standIn = at;
    return this.#timestamp(source, at);
  }

  #vectorInto(source: Uint8Array, start: number, column: VectorColumn, rows: number): number {
    const { dimensions } = column;
    if (source[start] !== BYTE.openBracket) return REFUSED;
    if (this.#vector.length < dimensions) this.#vector = new Float32Array(dimensions);
    let at = skipSpaceBytes(source, start + 1);
    for (let i = 0; i < dimensions; i++) {
      const end = this.#numberEnd(source, at);
      if (end === REFUSED) return REFUSED;
      const value = Math.fround(this.#finite(source, at, end) ?? Infinity);
      if (!Number.isFinite(value)) return REFUSED;
      this.#vector[i] = value;
      at = skipSpaceBytes(source, end);
      if (source[at] !== (i === dimensions - 1 ? BYTE.closeBracket : BYTE.comma)) return REFUSED;
      at = skipSpaceBytes(source, at + 1);
    }
    this.#ready(column, rows);
    column.appendVector(this.#vector);
    return at;
  }

  /** Makes the column end at the current row. */
  #ready(column: AnyColumn, rows: number): void {
    if (column.rows !== rows || rows === column.nullCount) this.set.ready(column);
  }

  #numberEnd(source: Uint8Array, at: number): number {
    readNumber(source, at, number);
    return number.end;
  }
}

function kindOf(column: AnyColumn): number {
  switch (column.storage) {
    case "text":
      return column.spec.type.kind === "string" ? TEXT : DYNAMIC;
    case "bool":
      return BOOL;
    case "int":
      return INT;
    case "long":
      if (column.spec.type.kind !== "timestamp") return LONG;
      return column.spec.inferred === true ? UTC : TIMESTAMP;
    case "real":
      return column.spec.inferred === true ? EXACT_REAL : REAL;
    case "vector":
      return VECTOR;
  }
}

/** Where `T` stands in a time. */
const SEPARATOR_AT = 10;

/** Whether the time at `[start, end)`, quotes included, is written in UTC as RFC 3339 has it. */
function isUtc(source: Uint8Array, start: number, end: number): boolean {
  if (end === REFUSED || source[start] !== BYTE.quote) return false;
  return source[end - 2] === UPPER_Z && source[start + 1 + SEPARATOR_AT] === UPPER_T;
}

/** Words are read whole, so that a token or a string at the very end reaches past it. */
const SLACK_BYTES = 8;

/** A body as the scanner reads it. */
type BodyText = {
  /** The body and at least `SLACK_BYTES` beyond. */
  source: Uint8Array;
  /** Past the last line feed nothing stops the scanner's loops; and a body that is not UTF-8 fails at some line. */
  end: number;
};

function textOf(bytes: Uint8Array): BodyText {
  return { source: withSlack(bytes), end: isUtf8(bytes) ? bytes.lastIndexOf(BYTE.lineFeed) + 1 : 0 };
}

/** The same bytes in a buffer that goes on for at least `SLACK_BYTES`; a copy only where it does not. */
function withSlack(bytes: Uint8Array): Uint8Array {
  if (bytes.byteOffset + bytes.byteLength + SLACK_BYTES <= bytes.buffer.byteLength) return bytes;
  const copy = new Uint8Array(bytes.byteLength + SLACK_BYTES);
  copy.set(bytes);
  return copy.subarray(0, bytes.byteLength);
}

/** Position of the closing quote of the key at `at`; `REFUSED` when it has an escape, or is none. */
function plainKeyEnd(source: Uint8Array, start: number): number {
  if (source[start] !== BYTE.quote) return REFUSED;
  let at = start + 1;
  for (;;) {
    const byte = source[at] as number;
    if (byte === BYTE.quote) return at;
    if (byte === BYTE.backslash || byte < FIRST_PRINTABLE) return REFUSED;
    at++;
  }
}

function latin1(source: Uint8Array, start: number, end: number): string {
  return Buffer.from(source.buffer, source.byteOffset + start, end - start).toString("latin1");
}
