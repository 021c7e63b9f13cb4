import { EngineError } from "../../core/errors.ts";
import { ColumnSet } from "../columns/column-set.ts";
import { encodeTlm } from "../tlm.ts";
import { decodeTlm } from "../tlm-decode.ts";
import type { ColumnSpec } from "../types.ts";
import { BodyLines } from "./body-lines.ts";
import { BlockReader } from "./block-reader.ts";
import { newByteScanner } from "./byte-scanner.ts";
import { jsonScanner } from "./json-scanner.ts";
import { Misfits } from "./misfits.ts";
import type { BodyScanner, NdjsonBody } from "./scanner.ts";

/**
 * Holds the byte scanner, with the module of `wasm/` and without, against the reference: bodies go through all, several into one extent, and what comes out
 * (bytes of the extent, statistics, new columns, rows, misfits and errors of each body) must be the same.
 */
export type Difference = { expected: unknown; actual: unknown; module: boolean };

type Outcome = { rows: number; lines: number; misfits: unknown } | { error: unknown };

/** Rows of accepted bodies, how many of them the byte scanner gave to the line reader, and how many the module read. */
export const counted = { rows: 0, slowRows: 0, moduleRows: 0 };

const plainScanner = newByteScanner(Infinity);
const moduleScanner = newByteScanner(0);

/** Runs the bodies through all scanners; undefined when they agree. */
export function difference(columns: readonly ColumnSpec[], bodies: readonly NdjsonBody[]): Difference | undefined {
  // Builders of its own, never used before: the byte scanners get those that have served, with what is left in them.
  const expected = outcomeOf(jsonScanner, new ColumnSet(columns), bodies);
  for (const scanner of [plainScanner, moduleScanner]) {
    const set = new ColumnSet(columns);
    const isModule = scanner === moduleScanner;
    const actual = isModule
      ? countingModule(() => outcomeOf(scanner, set, bodies))
      : counting(() => outcomeOf(scanner, set, bodies));
    set.release();
    if (expected.outcomes === actual.outcomes && Buffer.compare(expected.extent, actual.extent) === 0) continue;
    return { expected: described(expected), actual: described(actual), module: isModule };
  }
  return undefined;
}

type Scanned = { outcomes: string; extent: Uint8Array };

function outcomeOf(scanner: BodyScanner, set: ColumnSet, bodies: readonly NdjsonBody[]): Scanned {
  const outcomes = bodies.map((body) => scan(scanner, body, set));
  const stats = set.columns.map((column) => (column.isStored ? column.stats(set.rows) : undefined));
  const extent = set.rows === 0 ? new Uint8Array(0) : encodeTlm(set);
  return { outcomes: JSON.stringify({ outcomes, newColumns: set.newColumns, stats }), extent };
}

/** What is stored, as values: the bytes of an extent say little to a reader. */
function described({ outcomes, extent }: Scanned) {
  const columns = extent.length === 0 ? [] : decodeTlm(extent).columns;
  const values = columns.map(
    ({ spec, values: stored }) => `${spec.name}: ${stored.map(String).join(" | ").slice(0, 500)}`,
  );
  return { outcomes: outcomes.slice(0, 4_000), values };
}

function scan(scanner: BodyScanner, body: NdjsonBody, set: ColumnSet): Outcome {
  const slowBefore = slowRows;
  const before = set.rows;
  currentSet = set;
  try {
    const misfits = new Misfits();
    const { rows, lines } = scanner.scan({ ...body, misfits }, set);
    if (rows !== set.rows - before) throw new Error(`${rows} rows were announced and ${set.rows - before} written`);
    if (isCounting) {
      counted.rows += rows;
      counted.slowRows += slowRows - slowBefore;
    }
    return { rows, lines, misfits: misfits.all() };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { error: [error.code, error.message, error.details] };
  }
}

let isCounting = false;
let slowRows = 0;
let currentSet: ColumnSet | undefined;

function counting<T>(run: () => T): T {
  // oxlint-disable-next-line unbound-method -- it is called with its own `this`
  const plain = BodyLines.prototype.readLine;
  isCounting = true;
  BodyLines.prototype.readLine = function (start, line) {
    const before = currentSet?.rows ?? 0;
    const next = plain.call(this, start, line);
    slowRows += (currentSet?.rows ?? 0) - before;
    return next;
  };
  try {
    return run();
  } finally {
    BodyLines.prototype.readLine = plain;
    isCounting = false;
  }
}

function countingModule<T>(run: () => T): T {
  // oxlint-disable-next-line unbound-method -- it is called with its own `this`
  const plain = BlockReader.prototype.read;
  BlockReader.prototype.read = function (...args) {
    const next = plain.apply(this, args);
    counted.moduleRows += this.rows;
    return next;
  };
  try {
    return run();
  } finally {
    BlockReader.prototype.read = plain;
  }
}
