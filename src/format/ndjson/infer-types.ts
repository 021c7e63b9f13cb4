import { toExactReal, toInt64 } from "../decimal.ts";
import { utcTextToNs } from "../time-text.ts";
import { CATCH_ALL_COLUMN, DEFAULT_SHAPE, type ColumnSpec, type ColumnType } from "../types.ts";
import { textOf, tokenOf, type Row } from "./json-row.ts";

/**
 * The type of a new column, from all values that its field has in one body:
 *
 * | values | column |
 * |---|---|
 * | only `true` and `false` | `bool` |
 * | numbers, all exactly integral within 64 bits | `long` |
 * | numbers, all held exactly by a double | `real` |
 * | strings, all RFC 3339 in UTC (`Z`), at most nine digits of fraction, within 64 bits of nanoseconds | `timestamp` |
 * | other strings only | `string` |
 * | any array or object, or kinds that differ | `dynamic` |
 * | only nulls | none yet |
 *
 * Exactly means that the value which is read back equals the one that was sent. Numbers that fit neither `long` nor
 * `real` make a `dynamic`, which keeps their digits.
 */
export type InferredType = Exclude<ColumnType["kind"], "int" | "vector">;

const BOOL = 1;
const NUMBER = 2;
const STRING = 4;
const OTHER = 8;

/** What the values of one field have in common. */
export class Evidence {
  #kinds = 0;
  #areLong = true;
  #areReal = true;
  #areUtc = true;

  /** Takes field `index` of the row into account, which is not null. */
  add(row: Row, index: number): void {
    switch (row.kinds[index]) {
      case "bool":
        this.#kinds |= BOOL;
        break;
      case "number": {
        const token = tokenOf(row, index);
        this.#kinds |= NUMBER;
        this.#areLong &&= toInt64(token) !== undefined;
        this.#areReal &&= toExactReal(token) !== undefined;
        break;
      }
      case "string":
        this.#kinds |= STRING;
        this.#areUtc &&= utcTextToNs(textOf(row, index)) !== undefined;
        break;
      case "array":
      case "object":
        this.#kinds |= OTHER;
        break;
      case "null":
      case undefined:
        throw new Error("a null tells nothing of its column");
    }
  }

  /** Undefined when there was no value. */
  get type(): InferredType | undefined {
    switch (this.#kinds) {
      case 0:
        return undefined;
      case BOOL:
        return "bool";
      case NUMBER:
        if (this.#areLong) return "long";
        return this.#areReal ? "real" : "dynamic";
      case STRING:
        return this.#areUtc ? "timestamp" : "string";
      default:
        return "dynamic";
    }
  }
}

/** The type that the value alone would give its column. */
export function typeOfValue(row: Row, index: number): InferredType {
  const evidence = new Evidence();
  evidence.add(row, index);
  return evidence.type ?? "dynamic";
}

const FIXED_NAMES: ReadonlySet<string> = new Set([CATCH_ALL_COLUMN, ...DEFAULT_SHAPE.map(({ name }) => name)]);

/** Whether a column of that name, in lower case, has the same type in every table that takes it from data. */
export function hasFixedType(foldedName: string): boolean {
  return FIXED_NAMES.has(foldedName);
}

/**
 * The type of values of both types. Of `long` and `real` it is the least that it can be: an integer that no double holds
 * makes it `dynamic`.
 */
export function joinedType(one: InferredType, other: InferredType): InferredType {
  if (one === other) return one;
  const kinds: readonly InferredType[] = [one, other];
  if (kinds.every((kind) => kind === "long" || kind === "real")) return "real";
  return kinds.every((kind) => kind === "string" || kind === "timestamp") ? "string" : "dynamic";
}

/**
 * What new columns of a body are taken to be: what their first values call for, and what a scan has found that they must
 * be. A scan in which a value called for another type than its column has is in vain, and tells the next one.
 */
export class Guesses {
  /** Whether a value of this scan called for another type than its column has. */
  haveFailed = false;
  readonly #types = new Map<string, InferredType>();

  /** The type that the column must have; undefined where its first value may say. */
  typeOf(column: string): InferredType | undefined {
    return this.#types.get(column);
  }

  /** Takes field `index` of the row, which is not null, into account for its column. */
  add({ name, type }: ColumnSpec, row: Row, index: number): void {
    const known = this.#types.get(name) ?? (type.kind as InferredType);
    if (known === "dynamic") return;
    const wanted = typeWith(known, row, index);
    if (wanted === known) return;
    this.#types.set(name, wanted);
    this.haveFailed = true;
  }
}

/** What the value, which is field `index`, makes of a column that the values before have made `kind`. */
function typeWith(kind: InferredType, row: Row, index: number): InferredType {
  const own = typeOfValue(row, index);
  const isWide = kind === "real" && own === "long" && toExactReal(tokenOf(row, index)) === undefined;
  return isWide ? "dynamic" : joinedType(kind, own);
}
