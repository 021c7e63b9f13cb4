/**
 * Rows of a block of NDJSON into columns of that block: see `../block-reader.ts`, which is the host. It makes no decision
 * that the scanners of the host do not make: where a row needs one it stops, with nothing written of that row.
 */

import {
  COLUMN,
  COLUMN_BYTES,
  HASH,
  HEAD,
  HEAD_MASK,
  KEY,
  KEY_BYTES,
  KIND,
  LIKELY,
  NULL_BITS,
  NULLS,
  RESULT,
  ROWS,
  TEXT,
  TEXT_END,
  TEXT_SHIFT,
  TOKEN,
  VALUES,
  WIDTH,
  WIDTH_4,
  WIDTH_8,
  WIDTH_BIT,
  WIDTH_TEXT,
} from "./layout";
import { findBounds } from "./bounds";
import { resetSteps, rowStart, stepTo, take } from "./key-order";
import { copyEnd, literalEnd, readJson } from "./json";
import { readInt, readLong, readNumber, readRealInto } from "./numbers";
import { copied, endText, readText, skipRun, skipSpace } from "./text";
import { isUtc, readTime, time } from "./times";

/** What becomes of the value of a key: as in `../byte-scanner.ts`. */
const DROPPED: u32 = 0;
const TEXT_VALUE: u32 = 1;
const DYNAMIC: u32 = 2;
const BOOL: u32 = 3;
const INT: u32 = 4;
const LONG: u32 = 5;
const REAL: u32 = 6;
const TIMESTAMP: u32 = 7;
const STAND_IN: u32 = 9;
const EXACT_REAL: u32 = 10;
const UTC: u32 = 11;
const ONLY_TEXT: u32 = 12;
const NULL: u32 = 13;

/** The host's table of keys: addresses of slots by hash, `keyMask + 1` of them. */
let keyTable: usize = 0;
let keyMask: u32 = 0;
let columns: usize = 0;
let columnsEnd: usize = 0;
/** The column of `at`, and those that are named like a stand-in for it; 0 without one. */
let timeColumn: usize = 0;
let standInA: usize = 0;
let standInB: usize = 0;
/** Where values go that nobody wants. */
let waste: usize = 0;
/** The bit of bitmaps that the block's first row has. */
let firstBit: u32 = 0;
let bitmapBytes: usize = 0;
let maxRows: u32 = 0;
let metUnknownField: bool = false;

/** Forgets all keys. Their table and that of steps have `mask + 1` places; `wasteAt` has room for a block. */
export function reset(table: usize, steps: usize, mask: u32, wasteAt: usize, rows: u32): void {
  keyTable = table;
  keyMask = mask;
  waste = wasteAt;
  maxRows = rows;
  bitmapBytes = (<usize>rows >> 3) + 2;
  timeColumn = standInA = standInB = 0;
  memory.fill(table, 0, (<usize>mask + 1) << 2);
  resetSteps(steps, mask);
}

/** Says which columns tell the time. */
export function setTimes(at: usize, a: usize, b: usize): void {
  timeColumn = at;
  standInA = a;
  standInB = b;
}

/** Adds the key whose slot the host has made but for its hash and head. */
export function addKey(slot: usize): void {
  const length = load<u32>(slot, KEY_BYTES);
  const token = <usize>load<u32>(slot, TOKEN);
  const hash = hashOf(token + 1, length - 3);
  store<u32>(slot, hash, HASH);
  v128.store(slot, v128.load(token), HEAD);
  for (let i: u32 = 0; i < 16; i++) store<u8>(slot + <usize>i, i < length ? 0xff : 0, HEAD_MASK);
  let at = hash & keyMask;
  while (load<u32>(keyTable + (<usize>at << 2)) != 0) at = (at + 1) & keyMask;
  store<u32>(keyTable + (<usize>at << 2), <u32>slot);
}

function hashOf(start: usize, length: u32): u32 {
  let hash: u64 = 0x9e3779b97f4a7c15 ^ <u64>length;
  let at = start;
  let left = length;
  for (; left >= 8; left -= 8, at += 8) hash = mixed(hash ^ load<u64>(at));
  if (left > 0) hash = mixed(hash ^ (load<u64>(at) & ((<u64>1 << (<u64>left << 3)) - 1)));
  return <u32>(hash >> 32);
}

@inline
function mixed(hash: u64): u64 {
  const product = hash * 0xff51afd7ed558ccd;
  return product ^ (product >> 32);
}

/** Whether the slot's key, with its quotes and colon, stands at `at`. */
@inline
function hasToken(at: usize, slot: usize, length: usize): bool {
  const head = v128.and(v128.xor(v128.load(at), v128.load(slot, HEAD)), v128.load(slot, HEAD_MASK));
  if (v128.any_true(head)) return false;
  return length <= 16 || hasRest(at, <usize>load<u32>(slot, TOKEN), length);
}

/** The same behind the first sixteen bytes. */
function hasRest(at: usize, token: usize, length: usize): bool {
  const last = length - 16;
  for (let i: usize = 16; i < last; i += 16) {
    if (v128.any_true(v128.xor(v128.load(at + i), v128.load(token + i)))) return false;
  }
  return !v128.any_true(v128.xor(v128.load(at + last), v128.load(token + last)));
}

/** Position of the value of the key last looked up. */
let valueAt: usize = 0;

/** The slot of the key at `start` that was not expected, 0 when it is none or not known. */
function lookUp(start: usize): usize {
  if (load<u8>(start) != 0x22) return 0;
  const end = skipRun(start + 1);
  if (load<u8>(end) != 0x22) return 0;
  const length = <u32>(end - start - 1);
  const hash = hashOf(start + 1, length);
  for (let i = hash & keyMask; ; i = (i + 1) & keyMask) {
    const slot = <usize>load<u32>(keyTable + (<usize>i << 2));
    if (slot == 0) return 0;
    if (load<u32>(slot, HASH) != hash || load<u32>(slot, KEY_BYTES) != length + 3) continue;
    if (memory.compare(start + 1, <usize>load<u32>(slot, TOKEN) + 1, length) != 0) continue;
    const colon = skipSpace(end + 1);
    if (load<u8>(colon) != 0x3a) return 0;
    valueAt = colon + 1;
    return slot;
  }
}

/**
 * Appends NULLs up to `row`, exclusive. Where rows are of several kinds this is a good part of all there is to do, so it
 * writes by words; values behind the row may be written too, and are written again when their rows come.
 */
function pad(column: usize, row: u32): void {
  const from = load<u32>(column, ROWS);
  const nulls = load<u32>(column, NULLS);
  const bits = <usize>load<u32>(column, NULL_BITS);
  const width = load<u32>(column, WIDTH);
  if (nulls == 0) memory.fill(bits, 0, bitmapBytes);
  for (let bit = from + firstBit, end = row + firstBit; bit < end; ) {
    // With the bits before it in its first byte, a word holds so many at any rate.
    const count = min<u32>(end - bit, 56);
    const word = bits + <usize>(bit >> 3);
    store<u64>(word, load<u64>(word) | (((<u64>1 << <u64>count) - 1) << <u64>(bit & 7)));
    bit += count;
  }
  const values = <usize>load<u32>(column, VALUES);
  if (width == WIDTH_TEXT) {
    const end = i32x4.splat(load<u32>(column, TEXT_END) + load<u32>(column, TEXT_SHIFT));
    fill(values + (<usize>from << 2), values + (<usize>row << 2), end);
  } else if (width == WIDTH_4) {
    fill(values + (<usize>from << 2), values + (<usize>row << 2), i64x2.splat(0));
  } else if (width == WIDTH_8) {
    fill(values + (<usize>from << 3), values + (<usize>row << 3), i64x2.splat(0));
  }
  store<u32>(column, nulls + row - from, NULLS);
  store<u32>(column, row, ROWS);
}

/** Fills `[start, end)` and what is left of the last sixteen bytes. */
@inline
function fill(start: usize, end: usize, pattern: v128): void {
  for (let at = start; at < end; at += 16) v128.store(at, pattern);
}

/** Takes the row back from the columns that have it already. */
function takeBack(row: u32): void {
  for (let column = columns; column < columnsEnd; column += COLUMN_BYTES) {
    if (load<u32>(column, ROWS) <= row) continue;
    store<u32>(column, row, ROWS);
    const values = <usize>load<u32>(column, VALUES);
    const bit = row + firstBit;
    const nulls = load<u32>(column, NULLS);
    const place = <usize>load<u32>(column, NULL_BITS) + <usize>(bit >> 3);
    const mask: u32 = 1 << (bit & 7);
    if (nulls > 0 && (<u32>load<u8>(place) & mask) != 0) {
      store<u8>(place, <u32>load<u8>(place) & ~mask);
      store<u32>(column, nulls - 1, NULLS);
      continue;
    }
    const width = load<u32>(column, WIDTH);
    if (width == WIDTH_BIT) {
      const byte = values + <usize>(bit >> 3);
      store<u8>(byte, <u32>load<u8>(byte) & ~mask);
    } else if (width == WIDTH_TEXT) {
      const before = row == 0 ? load<u32>(column, TEXT) : load<u32>(values + (<usize>(row - 1) << 2)) - load<u32>(column, TEXT_SHIFT);
      store<u32>(column, before, TEXT_END);
    }
  }
}

/** Makes the column end at the row. False when it has the row already. */
@inline
function ready(column: usize, row: u32): bool {
  const rows = load<u32>(column, ROWS);
  if (rows == row) return true;
  if (rows > row) return false;
  pad(column, row);
  return true;
}

/** Any JSON value into a text column, compact. */
function readJsonInto(at: usize, column: usize, row: u32): usize {
  const end = readJson(at, <usize>load<u32>(column, TEXT_END));
  if (end != 0) endText(column, row, copyEnd);
  return end;
}

/** A value that is no string into a column of strings. */
function readOther(at: usize, column: usize, row: u32): usize {
  return readJsonInto(at, column, row);
}

function readBool(at: usize, column: usize, row: u32): usize {
  const end = literalEnd(at);
  if (end == 0) return 0;
  if (load<u8>(at) == 0x74) {
    const bit = row + firstBit;
    const byte = <usize>load<u32>(column, VALUES) + <usize>(bit >> 3);
    store<u8>(byte, <u32>load<u8>(byte) | (1 << (bit & 7)));
  }
  store<u32>(column, row + 1, ROWS);
  return end;
}

@inline
function endTime(column: usize, row: u32, ns: i64): void {
  store<i64>(<usize>load<u32>(column, VALUES) + (<usize>row << 3), ns);
  store<u32>(column, row + 1, ROWS);
}

/** The position of the stand-in's value in the current row, 0 without one, and the time that it tells. */
let standInTime: i64 = 0;
let hasStandIn: bool = false;

/** Reads the value at `at` of a key that is no column's. */
function readUnknown(at: usize, kind: u32): usize {
  metUnknownField = true;
  if (kind == NULL) return load<u32>(at) == 0x6c6c756e ? at + 4 : 0;
  if (kind == DROPPED) return readJson(at, waste);
  if (kind != STAND_IN || hasStandIn) return 0;
  const end = readTime(at);
  hasStandIn = true;
  standInTime = time;
  return end;
}

/** A null writes nothing. What it means for the time is the host's to say. */
function readNull(at: usize, column: usize, row: u32): usize {
  if (column == timeColumn || load<u32>(at) != 0x6c6c756e) return 0;
  pad(column, row + 1);
  return at + 4;
}

/** Reads the fields from the first key at `start` on, and the closing brace; 0 where the host must see the row. */
@inline
function readFields(start: usize, row: u32): usize {
  let at = start;
  let step = rowStart();
  while (true) {
    const next = <usize>load<u32>(step, LIKELY);
    let slot: usize = 0;
    let length: usize = 0;
    if (next != 0) {
      slot = <usize>load<u32>(next, KEY);
      length = <usize>load<u32>(slot, KEY_BYTES);
    }
    if (next != 0 && hasToken(at, slot, length)) {
      at += length;
      take(step, next);
      step = next;
    } else {
      slot = lookUp(at);
      if (slot == 0) return 0;
      at = valueAt;
      step = stepTo(step, slot);
    }
    let byte = <u32>load<u8>(at);
    if (byte <= 0x20) {
      at = skipSpace(at);
      byte = <u32>load<u8>(at);
    }
    const kind = load<u32>(slot, KIND);
    const column = <usize>load<u32>(slot, COLUMN);
    if (column == 0) {
      at = readUnknown(at, kind);
    } else if (!ready(column, row)) {
      return 0;
    } else if (byte == 0x6e) {
      at = readNull(at, column, row);
    } else {
      switch (kind) {
        case TEXT_VALUE:
          at = byte == 0x22 ? readText(at + 1, column, row) : readOther(at, column, row);
          break;
        case DYNAMIC:
          at = readJsonInto(at, column, row);
          break;
        case BOOL:
          at = readBool(at, column, row);
          break;
        case INT:
          at = readInt(at, column, row);
          break;
        case LONG:
          at = readLong(at, column, row);
          break;
        case REAL:
          at = readRealInto(at, column, row, false);
          break;
        case EXACT_REAL:
          at = readRealInto(at, column, row, true);
          break;
        case UTC:
        case TIMESTAMP:
          at = readTime(at);
          if (kind == UTC && !isUtc) return 0;
          if (at != 0) endTime(column, row, time);
          break;
        case ONLY_TEXT:
          at = byte == 0x22 ? readText(at + 1, column, row) : 0;
          break;
        default:
          return 0;
      }
    }
    if (at == 0) return 0;
    byte = <u32>load<u8>(at);
    if (byte <= 0x20) {
      at = skipSpace(at);
      byte = <u32>load<u8>(at);
    }
    at++;
    if (byte != 0x2c) return byte == 0x7d ? at : 0;
    if (<u32>load<u8>(at) <= 0x20) at = skipSpace(at);
  }
}

/** Whether the row has the column's key. */
@inline
function isTouched(column: usize, row: u32): bool {
  return column != 0 && load<u32>(column, ROWS) > row;
}

/** Gives the row its time, if its fields did not; false when the host must decide. */
function finishRow(row: u32, arrival: i64): bool {
  if (isTouched(timeColumn, row)) return !hasStandIn;
  if (isTouched(standInA, row) || isTouched(standInB, row)) return false;
  if (!ready(timeColumn, row)) return false;
  endTime(timeColumn, row, hasStandIn ? standInTime : arrival);
  return true;
}

/**
 * Reads the rows at `[start, end)`, which ends in a line feed, until one is for the host or the block is full; returns
 * where the first line begins that was not read. Rows arrived at `arrivalNs`, or by line at the times that `arrivals` has.
 *
 * Leaves for the host: rows, lines, whether it is to read the next line, whether there were fields that no column has.
 */
export function scan(
  start: usize,
  end: usize,
  bit: u32,
  firstColumn: usize,
  columnCount: u32,
  arrivalNs: i64,
  arrivals: usize,
): usize {
  firstBit = bit;
  columns = firstColumn;
  columnsEnd = firstColumn + <usize>columnCount * COLUMN_BYTES;
  metUnknownField = false;
  for (let column = columns; column < columnsEnd; column += COLUMN_BYTES) {
    store<u64>(column, 0, ROWS);
    store<u32>(column, load<u32>(column, TEXT), TEXT_END);
    if (load<u32>(column, WIDTH) == WIDTH_BIT) memory.fill(<usize>load<u32>(column, VALUES), 0, bitmapBytes);
  }
  let at = start;
  let row: u32 = 0;
  let line: u32 = 0;
  let isRefused = false;
  while (at < end && line < maxRows) {
    hasStandIn = false;
    let next = at;
    let byte = <u32>load<u8>(next);
    if (byte <= 0x20) {
      next = skipSpace(next);
      byte = <u32>load<u8>(next);
      if (byte == 0x0a) {
        at = next + 1;
        line++;
        continue;
      }
    }
    next++;
    if (byte == 0x7b) {
      if (<u32>load<u8>(next) <= 0x20) next = skipSpace(next);
      next = load<u8>(next) == 0x7d ? next + 1 : readFields(next, row);
      if (next != 0) {
        if (<u32>load<u8>(next) != 0x0a) next = skipSpace(next);
        if (
          <u32>load<u8>(next) == 0x0a &&
          finishRow(row, arrivals == 0 ? arrivalNs : load<i64>(arrivals + (<usize>line << 3)))
        ) {
          at = next + 1;
          row++;
          line++;
          continue;
        }
      }
    }
    takeBack(row);
    isRefused = true;
    break;
  }
  for (let column = columns; column < columnsEnd; column += COLUMN_BYTES) findBounds(column, firstBit);
  store<u32>(RESULT, row);
  store<u32>(RESULT, line, 4);
  store<u32>(RESULT, <u32>isRefused, 8);
  store<u32>(RESULT, <u32>metUnknownField, 12);
  return at;
}
