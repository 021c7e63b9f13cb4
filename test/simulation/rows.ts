import { foldName } from "../../src/core/names.ts";
import { decodeTlm, type Value } from "../../src/format/tlm-decode.ts";
import { CATCH_ALL_COLUMN, TIME_COLUMN } from "../../src/format/types.ts";
import type { SimulatedRequest } from "./requests.ts";

/** A row as it is stored. */
export type StoredRow = {
  /** The request that brought it, and its place in that. */
  request: string;
  index: number;
  atNs: bigint;
  /** Values by folded names; none for NULL. */
  values: ReadonlyMap<string, Value>;
  /** All of it, to compare by. */
  text: string;
};

/** What tells a row from all others. */
export function keyOf({ request, index }: Pick<StoredRow, "request" | "index">): string {
  return `${request}#${index}`;
}

/** The rows of an extent. Merged extents are of the same format here, whatever the catalog calls it. */
export function decodeRows(bytes: Uint8Array): StoredRow[] {
  const { rows, columns } = decodeTlm(bytes);
  const named = columns.map(({ spec, values }) => ({ name: foldName(spec.name), values }));
  named.sort((a, b) => (a.name < b.name ? -1 : 1));
  return Array.from({ length: rows }, (_, row) => {
    const values = new Map<string, Value>();
    let text = "";
    for (const { name, values: column } of named) {
      const value = column[row] ?? null;
      if (value === null) continue;
      values.set(name, value);
      text += `${name}=${String(value)};`;
    }
    const [request = "", index] = String(values.get("label")).split("#");
    return { request, index: Number(index), atNs: values.get(TIME_COLUMN) as bigint, values, text };
  });
}

/** What is wrong with a stored row of a request, if anything is. */
export function problemOf(row: StoredRow, request: SimulatedRequest): string | undefined {
  const sent = request.rows[row.index];
  if (sent === undefined) return `there is no row ${row.index} in it`;
  const caught = propsOf(row);
  for (const [name, value] of Object.entries(sent)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (name === TIME_COLUMN) {
      if (row.atNs !== BigInt(Date.parse(text)) * 1_000_000n) return `its time is ${row.atNs} instead of ${text}`;
      continue;
    }
    const stored = row.values.get(foldName(name));
    if (typeof stored === "bigint" && stored === momentOf(value)) continue;
    // A column by hand may be `dynamic`, which keeps strings as JSON too.
    if (stored !== undefined && [text, JSON.stringify(value)].includes(String(stored))) continue;
    if (name in caught && JSON.stringify(caught[name]) === JSON.stringify(value)) continue;
    if (stored === undefined && !request.evolve) continue;
    return `${name} is ${String(stored)} instead of ${text}`;
  }
  return undefined;
}

/** Nanoseconds of a time in UTC. */
function momentOf(value: unknown): bigint | undefined {
  const ms = typeof value === "string" && value.endsWith("Z") ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n;
}

function propsOf(row: StoredRow): Record<string, unknown> {
  const text = row.values.get(CATCH_ALL_COLUMN);
  return typeof text === "string" ? (JSON.parse(text) as Record<string, unknown>) : {};
}
