import { copyBytes } from "../../core/buffer-pool.ts";
import type { ColumnBlock } from "../columns/column-block.ts";
import type { ColumnSet } from "../columns/column-set.ts";
import type { AnyColumn } from "../columns/create.ts";
import { TIME_STAND_INS } from "../types.ts";
import { BYTE } from "./json-bytes.ts";
import type { Slot } from "./key-table.ts";
import { giveUpModule, type RowModule } from "./row-module.ts";
import type { NdjsonBody } from "./scanner.ts";

/**
 * Reads rows by the module of `wasm/`, a block of the body at a time: the block is copied into the module's memory, read
 * there into columns of that block, and these are appended to the builders. So nothing crosses between JavaScript and
 * WebAssembly per value or per row, and a module that fails has written nothing.
 *
 * The module stops in front of a row that it does not read: see `wasm/rows.as`. The byte scanner reads that one, learns
 * its keys, and hands them on to the module.
 *
 * Memory: fixed areas, then slots of keys and areas of columns in the order of their first keys. The numbers are those of
 * `wasm/layout.as`.
 */
export class BlockReader {
  /** What the last `read` has read. */
  rows = 0;
  lines = 0;
  /** Whether it stopped in front of a row that the module does not read. */
  isStopped = false;
  readonly #module: RowModule;
  readonly #set: ColumnSet;
  readonly #blockBytes: number;
  readonly #maxRows: number;
  /** Columns that have a key, and the addresses of all columns, 0 without one. */
  readonly #active: AnyColumn[] = [];
  readonly #addressOf: Int32Array;
  readonly #columns: number;
  readonly #input: number;
  readonly #arrivals: number;
  readonly #block: ColumnBlock;
  #heap = HEAP;
  #keys = 0;
  #isFull = false;

  constructor(module: RowModule, set: ColumnSet) {
    this.#module = module;
    this.#set = set;
    this.#blockBytes = set.columns.length > MANY_COLUMNS ? SMALL_BLOCK_BYTES : BLOCK_BYTES;
    this.#maxRows = this.#blockBytes / BYTES_PER_ROW;
    this.#addressOf = new Int32Array(set.columns.length);
    const { bytes, ints, longs, reals } = module;
    const empty = { rows: 0, nulls: 0, nullBits: 0, values: 0, text: 0, textBytes: 0, least: -1, greatest: -1 };
    this.#block = { bytes, ints, longs, reals, ...empty };
    const table = this.#take(4 * TABLE_PLACES);
    const steps = this.#take(4 * TABLE_PLACES + STEP_BYTES * (TABLE_PLACES / 2));
    const waste = this.#take(this.#blockBytes);
    this.#columns = this.#take(COLUMN_BYTES * set.columns.length);
    this.#input = this.#take(this.#blockBytes);
    this.#arrivals = this.#take(8 * this.#maxRows);
    if (this.#isFull) return;
    module.functions.reset(table, steps, TABLE_PLACES - 1, waste, this.#maxRows);
    const [a, b] = TIME_STAND_INS.map((name) => this.#columnAt(set.find(name)));
    module.functions.setTimes(this.#columnAt(set.timeIndex), a ?? 0, b ?? 0);
  }

  /** False when there is no room for the table's columns and keys: the set is nothing for the module then. */
  get hasRoom(): boolean {
    return !this.#isFull;
  }

  /** How many keys it knows. */
  get keys(): number {
    return this.#keys;
  }

  addKey({ token, target: { kind, index } }: Slot<{ kind: number; index: number }>): void {
    if (this.#keys >= MAX_KEYS) this.#isFull = true;
    const slot = this.#take(SLOT_BYTES);
    const text = this.#take(token.length);
    const column = this.#columnAt(index);
    if (this.#isFull) return;
    const { bytes, ints } = this.#module;
    // What is compared is whole words: behind the token they must be what they were when it was added.
    bytes.fill(0, text, text + token.length + SLACK_BYTES);
    bytes.set(token, text);
    const word = slot >>> 2;
    ints[word + KEY_BYTES] = token.length;
    ints[word + KIND] = kind;
    ints[word + COLUMN] = column;
    ints[word + TOKEN] = text;
    this.#module.functions.addKey(slot);
    this.#keys++;
  }

  /**
   * Reads rows of the lines at `[start, end)` of the body, the first of which is its `line`th; returns where the first
   * line begins that it has not read. `source` goes on beyond `end`, or ends in a line feed there.
   */
  read(source: Uint8Array, start: number, end: number, line: number, body: NdjsonBody): number {
    this.rows = 0;
    this.lines = 0;
    this.isStopped = true;
    const blockEnd = end - start <= this.#blockBytes ? end : start + this.#blockBytes;
    const linesEnd = source.lastIndexOf(BYTE.lineFeed, blockEnd - 1) + 1;
    // A row that is larger than a block.
    if (linesEnd <= start) return start;
    const { bytes, functions } = this.#module;
    const input = this.#input;
    const inputEnd = input + linesEnd - start;
    copyBytes(source.subarray(start, linesEnd), bytes, input);
    this.isStopped = false;
    let next = input;
    while (next < inputEnd && !this.isStopped) {
      const arrivals = this.#putArrivals(body, line + this.lines);
      this.#putOffsets();
      try {
        const { rows } = this.#set;
        next = functions.scan(next, inputEnd, rows & 7, this.#columns, this.#active.length, body.arrivedAtNs, arrivals);
      } catch (error) {
        giveUpModule(error);
        this.#isFull = true;
        this.isStopped = true;
        break;
      }
      this.#takeColumns();
    }
    return start + next - input;
  }

  /** Appends what the module has read to the builders. */
  #takeColumns(): void {
    const { ints } = this.#module;
    const rows = ints[RESULT] as number;
    this.rows += rows;
    this.lines += ints[RESULT + 1] as number;
    this.isStopped = ints[RESULT + 2] !== 0;
    if (ints[RESULT + 3] !== 0) this.#set.metUnknownField = true;
    const block = this.#block;
    for (let i = 0, word = this.#columns >>> 2; i < this.#active.length; i++, word += COLUMN_BYTES >>> 2) {
      block.rows = ints[word + ROWS] as number;
      block.nulls = ints[word + NULLS] as number;
      if (block.rows === block.nulls) continue;
      const column = this.#active[i] as AnyColumn;
      block.nullBits = ints[word + NULL_BITS] as number;
      block.values = ints[word + VALUES] as number;
      block.text = ints[word + TEXT] as number;
      block.textBytes = (ints[word + TEXT_END] as number) - block.text;
      block.least = ints[word + LEAST] as number;
      block.greatest = ints[word + GREATEST] as number;
      this.#set.ready(column);
      column.appendBlock(block);
    }
    if (rows > 0) this.#set.endRows(rows);
  }

  /** Tells the module where the text of this block will be in the builders. */
  #putOffsets(): void {
    const { ints } = this.#module;
    for (let i = 0, word = this.#columns >>> 2; i < this.#active.length; i++, word += COLUMN_BYTES >>> 2) {
      const column = this.#active[i] as AnyColumn;
      if (column.storage === "text") ints[word + TEXT_SHIFT] = column.textBytes - (ints[word + TEXT] as number);
    }
  }

  /** Address of the times of arrival from that line on; 0 when all rows arrived at once. */
  #putArrivals({ arrivals, arrivedAtNs }: NdjsonBody, line: number): number {
    if (arrivals === undefined) return 0;
    const { longs } = this.#module;
    const first = this.#arrivals >>> 3;
    longs.fill(arrivedAtNs, first, first + this.#maxRows);
    longs.set(arrivals.subarray(line - 1, line - 1 + this.#maxRows), first);
    return this.#arrivals;
  }

  /** Address of the set's column; 0 where there is none. */
  #columnAt(index: number): number {
    const column = this.#set.columns[index];
    if (column === undefined) return 0;
    const known = this.#addressOf[index] as number;
    if (known !== 0) return known;
    const address = this.#columns + COLUMN_BYTES * this.#active.length;
    const isText = column.storage === "text";
    const values = this.#take(VALUE_BYTES * this.#maxRows);
    const nullBits = this.#take((this.#maxRows >>> 3) + 2);
    const text = isText ? this.#take(this.#blockBytes) : 0;
    if (this.#isFull) return 0;
    const { ints } = this.#module;
    const word = address >>> 2;
    ints[word + VALUES] = values;
    ints[word + NULL_BITS] = nullBits;
    ints[word + TEXT] = text;
    ints[word + WIDTH] = WIDTHS[column.storage];
    ints[word + HAS_BOUNDS] = Number(isText && column.spec.type.kind === "string");
    this.#active.push(column);
    this.#addressOf[index] = address;
    return address;
  }

  /** An area of that size and some slack, which is read and written in words of sixteen bytes. */
  #take(sizeBytes: number): number {
    const address = this.#heap;
    const end = (address + sizeBytes + SLACK_BYTES + ALIGNMENT) & -ALIGNMENT;
    this.#isFull ||= !this.#module.reserve(end);
    if (this.#isFull) return address;
    this.#heap = end;
    const { bytes, ints, longs, reals } = this.#module;
    Object.assign(this.#block, { bytes, ints, longs, reals });
    return address;
  }
}

/** Large enough that what a call costs does not count, small enough for the cache of a core. */
const BLOCK_BYTES = 128 * 1024;
/** With many columns, each of which needs an area as large as a block. */
const MANY_COLUMNS = 256;
const SMALL_BLOCK_BYTES = 32 * 1024;
/** Blocks of shorter rows are read in several calls. */
const BYTES_PER_ROW = 64;
const VALUE_BYTES = 8;
const SLACK_BYTES = 64;
/** Areas that all began at the same address modulo a power of two would share few places of the cache. */
const ALIGNMENT = 64;

/** As `wasm/layout.as` has it; positions of words, and sizes in bytes. */
const RESULT = 0x800 >>> 2;
const HEAP = 0x1_0000;
const COLUMN_BYTES = 64;
const ROWS = 0;
const NULLS = 1;
const VALUES = 2;
const TEXT = 3;
const TEXT_END = 4;
const NULL_BITS = 5;
const TEXT_SHIFT = 6;
const WIDTH = 7;
const HAS_BOUNDS = 8;
const LEAST = 9;
const GREATEST = 10;
const WIDTHS = { bool: 0, text: 1, int: 4, long: 8, real: 8, vector: 8 } as const;
const SLOT_BYTES = 64;
const KEY_BYTES = 0;
const KIND = 1;
const COLUMN = 2;
const TOKEN = 5;
const STEP_BYTES = 32;
/** Places of the module's tables of keys and of steps, of which at most half are taken. */
const TABLE_PLACES = 8_192;
const MAX_KEYS = 4_096;
