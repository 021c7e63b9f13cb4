import { LIMITS } from "../../core/limits.ts";
import { foldName, isColumnName } from "../../core/names.ts";
import type { ColumnSet } from "../columns/column-set.ts";
import type { AnyColumn } from "../columns/create.ts";
import { toExactReal } from "../decimal.ts";
import {
  CATCH_ALL_COLUMN,
  formatColumnType,
  TIME_COLUMN,
  TIME_STAND_INS,
  type ColumnSpec,
  type ColumnType,
} from "../types.ts";
import { Evidence, GuessFailed, hasFixedType, typeOfValue, type InferredType } from "./infer-types.ts";
import { tokenOf, type Row } from "./json-row.ts";
import type { Misfits } from "./misfits.ts";
import { mergeProps } from "./props.ts";
import { RowRefused } from "./row-refused.ts";
import { arrivalOf, type NdjsonBody } from "./scanner.ts";
import { appendField, jsonOf, timeOf } from "./values.ts";

/** Fields that `at` is taken from, in this order. */
const TIME_FIELDS = [TIME_COLUMN, ...TIME_STAND_INS] as const;
const NONE = -1;

/** How the body asks to be taken: see `NdjsonBody`. */
type RowOptions = Omit<NdjsonBody, "bytes">;

/** Puts rows into columns by the rules of `scanner.ts`. Serves one body. */
export class RowWriter {
  readonly #set: ColumnSet;
  readonly #evolve: boolean;
  readonly #inferTypes: boolean;
  readonly #types: ReadonlyMap<string, InferredType> | undefined;
  readonly #evidence: Map<string, Evidence> | undefined;
  /** Columns from here on are the body's own. */
  readonly #tableColumns: number;
  readonly #arrival: Pick<NdjsonBody, "arrivals" | "arrivedAtNs">;
  readonly #maxNewColumns: number;
  readonly #lenient: boolean;
  readonly #misfits: Misfits | undefined;
  /** Of the current row, in the body. */
  #line = 0;
  #newColumns = 0;
  #row: Row;
  /** By field of the current row: the column of its name, by its index. */
  readonly #columnOf: number[] = [];
  /** By column: the field of the current row that is its value, and the row for which that was written down. */
  readonly #fieldOf: number[] = [];
  readonly #claimedIn: number[] = [];
  /** Fields of the current row that no column has. */
  readonly #unknown: number[] = [];
  /** Fields of the current row that go to `props`. */
  readonly #extras: number[] = [];
  /** Fields of the current row that were looked at for its time, and could not be read as one. */
  readonly #unreadable: number[] = [];

  constructor(set: ColumnSet, row: Row, options: RowOptions) {
    this.#set = set;
    this.#row = row;
    this.#evolve = options.evolve;
    this.#inferTypes = options.inferTypes ?? false;
    this.#types = options.types;
    this.#evidence = options.evidence;
    this.#tableColumns = set.columns.length;
    this.#arrival = options;
    this.#maxNewColumns = options.maxNewColumns ?? LIMITS.newColumnsPerRequest;
    this.#lenient = options.lenient ?? false;
    this.#misfits = options.misfits;
  }

  /**
   * Appends the row that the constructor was given, as it is now; it stands on that line. Throws `RowRefused`, leaving
   * the row half written.
   */
  write(line: number): void {
    this.#line = line;
    this.#unknown.length = 0;
    this.#extras.length = 0;
    this.#unreadable.length = 0;
    for (let index = 0; index < this.#row.count; index++) {
      const column = this.#set.find(this.#key(index));
      if (column !== NONE) {
        this.#claim(column, index);
        continue;
      }
      this.#columnOf[index] = NONE;
      this.#unknown.push(index);
      this.#set.metUnknownField = true;
    }
    const timeNs = this.#takeTime();
    for (const index of this.#unknown) this.#placeUnknown(index);
    this.#writeTime(timeNs);
    this.#writeValues();
    this.#requireVectors();
    this.#writeProps();
    this.#set.endRow();
  }

  /** Makes the field its column's value, unless another field of the row has the better name for it. */
  #claim(column: number, index: number): void {
    this.#columnOf[index] = column;
    const holder = this.#fieldIn(column);
    const wins = holder === NONE || this.#key(index) === this.#set.columns[column]?.spec.name;
    if (holder !== NONE) this.#extras.push(wins ? holder : index);
    if (!wins) return;
    this.#fieldOf[column] = index;
    this.#claimedIn[column] = this.#set.rows;
  }

  /** The field of the current row that is the column's value. */
  #fieldIn(column: number): number {
    return this.#claimedIn[column] === this.#set.rows ? (this.#fieldOf[column] ?? NONE) : NONE;
  }

  /** The time that the row's fields tell. Takes those it looks at off the unknown ones. */
  #takeTime(): bigint | undefined {
    for (const name of TIME_FIELDS) {
      const column = this.#set.find(name);
      const index = column === NONE ? this.#takeUnknown(name) : this.#fieldIn(column);
      if (index === NONE || this.#isNull(index)) continue;
      const ns = timeOf(this.#row, index);
      if (ns !== undefined) return ns;
      this.#unreadable.push(index);
    }
    return undefined;
  }

  /** Takes the field of that name off the unknown ones; other spellings of it go to `props`. */
  #takeUnknown(name: string): number {
    const spellings = this.#unknown.filter((index) => foldName(this.#key(index)) === name);
    if (spellings.length === 0) return NONE;
    const taken = spellings.find((index) => this.#key(index) === name) ?? spellings[0] ?? NONE;
    for (const index of spellings) {
      this.#unknown.splice(this.#unknown.indexOf(index), 1);
      if (index !== taken) this.#extras.push(index);
    }
    return taken;
  }

  #placeUnknown(index: number): void {
    if (!this.#evolve || (this.#inferTypes && this.#isNull(index))) return;
    const name = this.#key(index);
    // An earlier field of this row, spelled otherwise, may have become the column.
    const column = this.#set.find(name);
    const home = column === NONE ? this.#addColumn(name, index) : column;
    if (home === NONE) this.#extras.push(index);
    else this.#claim(home, index);
  }

  #addColumn(name: string, index: number): number {
    if (this.#newColumns >= this.#maxNewColumns || !isColumnName(name)) return NONE;
    const column = this.#set.addColumn(this.#specOf(name, index));
    if (column !== NONE) this.#newColumns++;
    return column;
  }

  /** The column that field `index`, its first value here, begins. */
  #specOf(name: string, index: number): ColumnSpec {
    if (!this.#inferTypes || hasFixedType(foldName(name))) return { name, type: { kind: "string" } };
    const known = this.#evidence === undefined ? this.#types?.get(name) : "dynamic";
    return { name, type: { kind: known ?? typeOfValue(this.#row, index) }, inferred: true };
  }

  #writeTime(ns: bigint | undefined): void {
    const { time, timeIndex } = this.#set;
    this.#set.ready(time);
    time.appendLong(ns ?? arrivalOf(this.#arrival, this.#line));
    if (ns === undefined && this.#unreadable.length > 0) this.#misfits?.addTime(this.#line);
    for (const index of this.#unreadable) {
      const column = this.#columnOf[index];
      if (column !== NONE && column !== timeIndex) continue;
      this.#extras.push(index);
      // Where another field told the time after all, this is a value that did not fit, like any other.
      if (ns !== undefined) this.#misfits?.addValue(time.spec.name, this.#line);
    }
  }

  #writeValues(): void {
    const { columns, timeIndex, catchAllIndex } = this.#set;
    for (let index = 0; index < this.#row.count; index++) {
      if (this.#isNull(index)) continue;
      const at = this.#columnOf[index] ?? NONE;
      const column = columns[at];
      if (column === undefined || this.#fieldIn(at) !== index || at === timeIndex || at === catchAllIndex) continue;
      this.#set.ready(column);
      if (at >= this.#tableColumns && column.spec.inferred === true) this.#checkGuess(column, index);
      if (appendField(column, this.#row, index)) continue;
      if (column.storage === "vector" && !this.#lenient) {
        throw new RowRefused(vectorRule(column.spec), column.spec.name);
      }
      this.#extras.push(index);
      this.#misfits?.addValue(column.spec.name, this.#line);
      // Who asks for no evolution changes no column.
      if (this.#evolve && isFraction(column, this.#row, index)) this.#misfits?.fractions.add(column.spec.name);
    }
  }

  /** Notes a value of a column that is the body's own, or throws `GuessFailed`: see `infer-types.ts`. */
  #checkGuess({ spec: { name, type } }: AnyColumn, index: number): void {
    if (this.#evidence !== undefined) {
      const evidence = this.#evidence.get(name) ?? new Evidence();
      evidence.add(this.#row, index);
      this.#evidence.set(name, evidence);
    } else if (this.#types === undefined && type.kind !== "dynamic") {
      if (!fitsGuess(type.kind, typeOfValue(this.#row, index), this.#row, index)) throw new GuessFailed(name);
    }
  }

  #requireVectors(): void {
    if (this.#lenient) return;
    for (const index of this.#set.vectors) {
      const column = this.#set.columns[index];
      if (column !== undefined && column.rows <= this.#set.rows) {
        throw new RowRefused(vectorRule(column.spec), column.spec.name);
      }
    }
  }

  #writeProps(): void {
    const { catchAllIndex, columns } = this.#set;
    const field = catchAllIndex === NONE ? NONE : this.#fieldIn(catchAllIndex);
    const own = field === NONE || this.#isNull(field) ? NONE : field;
    if (own === NONE && this.#extras.length === 0) return;
    const extras = this.#extras.filter((index) => !this.#isNull(index)).sort((a, b) => a - b);
    const [first] = extras;
    const column = columns[catchAllIndex];
    if (column?.storage !== "text") {
      if (first !== undefined) throw this.#nowhereToKeep(first);
      return;
    }
    this.#set.ready(column);
    if (first !== undefined) {
      const named = extras.map((index) => ({ name: this.#key(index), json: jsonOf(this.#row, index) }));
      column.appendText(mergeProps(own === NONE ? undefined : jsonOf(this.#row, own), named));
    } else if (own !== NONE) {
      appendField(column, this.#row, own);
    }
  }

  #nowhereToKeep(index: number): RowRefused {
    const at = this.#columnOf[index] ?? NONE;
    const column = this.#set.columns[at]?.spec;
    const problem =
      column === undefined
        ? "can neither become a column"
        : this.#fieldIn(at) === index
          ? `neither fits its column, which is ${formatColumnType(column.type)},`
          : `neither is the first to name column "${column.name}" in this row`;
    const name = this.#key(index);
    const shown = name.length > 40 ? `${name.slice(0, 40)}…` : name;
    const reason = `field ${JSON.stringify(shown)} ${problem} nor is there a dynamic column "${CATCH_ALL_COLUMN}" to keep it`;
    return new RowRefused(reason, column?.name ?? name);
  }

  #key(index: number): string {
    return this.#row.keys[index] ?? "";
  }

  #isNull(index: number): boolean {
    return this.#row.kinds[index] === "null";
  }
}

/** Whether the value leaves the type of its column what the values before have made it. */
function fitsGuess(kind: ColumnType["kind"], own: InferredType, row: Row, index: number): boolean {
  if (kind === own) return true;
  if (kind === "string") return own === "timestamp";
  return kind === "real" && own === "long" && toExactReal(tokenOf(row, index)) !== undefined;
}

/** Whether the value is one that an inferred `long` column could take if it were `real`. */
function isFraction({ spec }: AnyColumn, row: Row, index: number): boolean {
  if (spec.inferred !== true || spec.type.kind !== "long" || row.kinds[index] !== "number") return false;
  return toExactReal(tokenOf(row, index)) !== undefined;
}

function vectorRule(spec: ColumnSet["columns"][number]["spec"]): string {
  return `every row needs ${formatColumnType(spec.type)} here: an array of that many numbers that 32-bit floats can hold`;
}
