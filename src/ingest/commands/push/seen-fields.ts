import { foldName } from "../../../core/names.ts";
import { Evidence, type InferredType } from "../../../format/ndjson/infer-types.ts";
import { newRow, readRow } from "../../../format/ndjson/json-row.ts";
import { RowRefused } from "../../../format/ndjson/row-refused.ts";
import type { Batch, Origin } from "../../../io/rows/batcher.ts";
import { FileError } from "./file-error.ts";

/** Rows that are kept to be shown. */
const SHOWN_ROWS = 5;

/** The fields of rows, in the order in which they were met, and the first rows. */
export class SeenFields {
  readonly names: string[] = [];
  readonly rows: string[] = [];
  readonly #folded = new Set<string>();
  /** By folded name, of fields that have had a value: the first request that has one decides. */
  readonly #types = new Map<string, InferredType>();
  readonly #row = newRow();

  /** The type that the field's values call for; undefined while they are all null. */
  typeOf(name: string): InferredType | undefined {
    return this.#types.get(foldName(name));
  }

  /** Returns how many rows there are. */
  add({ body, firstLine, lineNumbers }: Batch, { shown, unit }: Origin): number {
    let rows = 0;
    const evidence = new Map<string, Evidence>();
    for (const [i, line] of body.toString("utf8").split("\n").entries()) {
      if (line.trim() === "") continue;
      const refused = (why: string): FileError =>
        new FileError(`${unit} ${lineNumbers?.[i] ?? firstLine + i} of ${shown}: ${why}`);
      if (!isObject(line)) throw refused("the line is no JSON object");
      this.#read(line, refused);
      this.#addFields(evidence);
      if (this.rows.length < SHOWN_ROWS) this.rows.push(line.trim());
      rows++;
    }
    for (const [folded, { type }] of evidence) {
      if (type !== undefined && !this.#types.has(folded)) this.#types.set(folded, type);
    }
    return rows;
  }

  #read(line: string, refused: (why: string) => FileError): void {
    try {
      readRow(line, this.#row);
    } catch (error) {
      throw error instanceof RowRefused ? refused(error.message) : error;
    }
  }

  /** Takes the fields of the row that was read last into account. */
  #addFields(evidence: Map<string, Evidence>): void {
    for (let index = 0; index < this.#row.count; index++) {
      const name = this.#row.keys[index] ?? "";
      const folded = foldName(name);
      if (!this.#folded.has(folded)) {
        this.#folded.add(folded);
        this.names.push(name);
      }
      if (this.#row.kinds[index] === "null") continue;
      const own = evidence.get(folded) ?? new Evidence();
      own.add(this.#row, index);
      evidence.set(folded, own);
    }
  }
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
