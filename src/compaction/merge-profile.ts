import { isBitSet } from "../format/columns/bits.ts";
import { looksLikeIds } from "../format/columns/column-filters.ts";
import { GramFilterBuilder } from "../format/filter/gram-filter.ts";
import { hashRange, mixed } from "../format/filter/hash.ts";
import type { ColumnSpec } from "../format/types.ts";
import { TEXT_SLACK_BYTES, type TlmBatch, type TlmColumn } from "../io/duckdb/tlm-file.ts";
import { DistinctCounter } from "./distinct-counter.ts";
import { GRAM_LIMIT, isLongText, looksLikeText, type TextProfile } from "./merge-filters.ts";

/**
 * What is in the extents that an output file has rows of, gathered while they are open: to read the file again for it
 * takes about as long as to write it. An extent whose rows lie in two files counts for both: numbers of values and of
 * different ones are then a little high, and filters let a little more pass; they never miss anything.
 */
export type ColumnProfile = {
  name: string;
  /** Not NULL. */
  values: number;
  distinct: number;
  /** Of columns of strings. */
  text: TextProfile | undefined;
};

export class FileProfile {
  readonly #columns: readonly ColumnSpec[];
  readonly #found: (ColumnFinder | undefined)[];
  readonly #shared: Shared = { hashesLeft: MAX_HASHES, gramBuildersLeft: MAX_GRAM_BUILDERS };

  constructor(columns: readonly ColumnSpec[]) {
    this.#columns = columns;
    this.#found = columns.map(() => undefined);
  }

  /** Looks at all rows of an extent. */
  add(batches: readonly TlmBatch[]): void {
    for (const [i, spec] of this.#columns.entries()) {
      for (const { rows, columns } of batches) {
        const column = columns[i];
        if (column === undefined || column.nullCount === rows) continue;
        const finder = (this.#found[i] ??= new ColumnFinder(spec, this.#shared));
        finder.add(column, rows);
      }
    }
  }

  /** Of every column, in order. */
  columns(): ColumnProfile[] {
    return this.#columns.map(
      ({ name }, i) => this.#found[i]?.profile() ?? { name, values: 0, distinct: 0, text: undefined },
    );
  }
}

/** 64 MiB for all columns of a file together. */
const MAX_HASHES = 16 * 1024 * 1024;
/** Each takes 12 MiB. */
const MAX_GRAM_BUILDERS = 4;
/** One value in so many is looked into for spaces. */
const SPACE_SAMPLE = 32;
const SPACE = 0x20;
/** From so many values on it shows whether a column holds ids. */
const FIRST_CHECK = 32_768;

/** What the columns of a file share. */
type Shared = { hashesLeft: number; gramBuildersLeft: number };

class ColumnFinder {
  readonly #spec: ColumnSpec;
  readonly #shared: Shared;
  readonly #distinct = new DistinctCounter();
  #values = 0;
  #textBytes = 0;
  #sampled = 0;
  #spaced = 0;
  #hashes: Int32Array[] | undefined = [];
  #nextCheck = FIRST_CHECK;
  /** Undefined before the first value; false where values do not look like text, or no builder was left. */
  #grams: GramFilterBuilder | false | undefined;
  /** Long texts are told apart by the hash that comes with their grams; those are no ids, whose hashes would be wanted. */
  #isHashedByGrams = false;

  constructor(spec: ColumnSpec, shared: Shared) {
    this.#spec = spec;
    this.#shared = shared;
  }

  add(column: TlmColumn, rows: number): void {
    const values = rows - column.nullCount;
    this.#values += values;
    if (column.offsets === undefined) {
      hashWords(this.#distinct, column, rows, this.#spec);
      return;
    }
    const texts = textsOf(column, column.offsets, rows);
    if (this.#spec.type.kind !== "string") {
      hashTexts(this.#distinct, texts, undefined);
      return;
    }
    const textBytes = (column.offsets[rows] as number) - (column.offsets[0] as number);
    const { sampled, spaced } = sampleSpaces(texts);
    this.#textBytes += textBytes;
    this.#sampled += sampled;
    this.#spaced += spaced;
    if (this.#grams === undefined) {
      const isText = looksLikeText({ values: sampled, textBytes: (textBytes * sampled) / values, spaced });
      this.#grams = isText && this.#newBuilder();
      this.#isHashedByGrams = this.#grams !== false && isLongText(textBytes, values);
      if (this.#isHashedByGrams) this.#hashes = undefined;
    }
    if (!this.#isHashedByGrams) this.#hash(texts, values);
    if (this.#grams !== false) this.#addGrams(this.#grams, texts);
  }

  profile(): ColumnProfile {
    const { name, type } = this.#spec;
    const counted = { name, values: this.#values, distinct: Math.min(Math.max(this.#distinct.count, 1), this.#values) };
    if (type.kind !== "string") return { ...counted, text: undefined };
    const spaced = this.#sampled === 0 ? 0 : Math.round((this.#spaced * this.#values) / this.#sampled);
    const grams = this.#grams || undefined;
    return { ...counted, text: { ...counted, textBytes: this.#textBytes, spaced, hashes: this.#hashes, grams } };
  }

  #newBuilder(): GramFilterBuilder | false {
    if (this.#shared.gramBuildersLeft === 0) return false;
    this.#shared.gramBuildersLeft--;
    return new GramFilterBuilder(GRAM_LIMIT);
  }

  #hash(texts: Texts, values: number): void {
    const isKept = this.#hashes !== undefined && this.#shared.hashesLeft >= values;
    const hashes = isKept ? new Int32Array(values) : undefined;
    hashTexts(this.#distinct, texts, hashes);
    this.#keep(hashes);
  }

  #keep(hashes: Int32Array | undefined): void {
    if (hashes === undefined) {
      this.#dropHashes();
      return;
    }
    this.#hashes?.push(hashes);
    this.#shared.hashesLeft -= hashes.length;
    if (this.#values < this.#nextCheck) return;
    this.#nextCheck = this.#values * 2;
    const counts = { values: this.#values, distinct: this.#distinct.count, textBytes: this.#textBytes };
    if (!looksLikeIds(counts)) this.#dropHashes();
  }

  #dropHashes(): void {
    this.#shared.hashesLeft += this.#hashes?.reduce((sum, { length }) => sum + length, 0) ?? 0;
    this.#hashes = undefined;
  }

  #addGrams(grams: GramFilterBuilder, { nullCount, validity, offsets, view, rows }: Texts): void {
    const distinct = this.#isHashedByGrams ? this.#distinct : undefined;
    const wasFull = grams.isFull;
    if (wasFull && distinct === undefined) return;
    for (let row = 0; row < rows; row++) {
      if (nullCount > 0 && !isBitSet(validity, row)) continue;
      const hash = grams.add(view, offsets[row] as number, offsets[row + 1] as number);
      distinct?.add(hash);
    }
    // What is left of it is small.
    if (grams.isFull && !wasFull) this.#shared.gramBuildersLeft++;
  }
}

type Texts = TlmColumn & { offsets: Int32Array; view: DataView; rows: number };

/** One shape of object for all columns, with NULLs or without: what is compiled for one must do for the next. */
function textsOf({ nullCount, validity, values }: TlmColumn, offsets: Int32Array, rows: number): Texts {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength + TEXT_SLACK_BYTES);
  return { nullCount, validity, values, offsets, view, rows };
}

function hashTexts(distinct: DistinctCounter, texts: Texts, hashes: Int32Array | undefined): void {
  const { nullCount, validity, offsets, view, rows } = texts;
  let value = 0;
  for (let row = 0; row < rows; row++) {
    if (nullCount > 0 && !isBitSet(validity, row)) continue;
    const start = offsets[row] as number;
    const hash = hashRange(view, start, (offsets[row + 1] as number) - start);
    distinct.add(hash);
    if (hashes !== undefined) hashes[value++] = hash;
  }
}

function sampleSpaces(texts: Texts): { sampled: number; spaced: number } {
  const { nullCount, validity, offsets, values, rows } = texts;
  let sampled = 0;
  let spaced = 0;
  for (let row = 0; row < rows; row += SPACE_SAMPLE) {
    if (nullCount > 0 && !isBitSet(validity, row)) continue;
    sampled++;
    const end = offsets[row + 1] as number;
    for (let at = offsets[row] as number; at < end; at++) {
      if (values[at] !== SPACE) continue;
      spaced++;
      break;
    }
  }
  return { sampled, spaced };
}

/** Odd, so that it maps no two words to one. */
const MULTIPLIER = 0x9e3779b1;

function hashWords(distinct: DistinctCounter, column: TlmColumn, rows: number, { type }: ColumnSpec): void {
  const { nullCount, validity, values } = column;
  if (type.kind === "bool") {
    for (let row = 0; row < rows; row++) {
      if (nullCount === 0 || isBitSet(validity, row)) distinct.add(mixed(Number(isBitSet(values, row))));
    }
    return;
  }
  const perRow = type.kind === "int" ? 1 : type.kind === "vector" ? type.dimensions : 2;
  const words = new Int32Array(values.buffer, values.byteOffset, rows * perRow);
  for (let row = 0, word = 0; row < rows; row++, word += perRow) {
    if (nullCount > 0 && !isBitSet(validity, row)) continue;
    let hash = words[word] as number;
    for (let i = 1; i < perRow; i++) hash = mixed(hash) ^ Math.imul(words[word + i] as number, MULTIPLIER);
    distinct.add(mixed(hash));
  }
}
