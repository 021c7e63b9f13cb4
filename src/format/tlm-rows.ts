import { nsToRfc3339 } from "./time-text.ts";
import { decodeTlm, type Value } from "./tlm-decode.ts";
import type { ColumnSpec } from "./types.ts";

/**
 * Rows of a `tlm` extent as NDJSON, which scanned into the same columns (or into more) gives the same rows: what a row
 * has no value for is left out, numbers keep every digit, and `at` is there in nanoseconds, so that nothing depends on
 * the time of arrival. Without the rows that `keep` is false for. Throws when the bytes are no such extent.
 */
export function tlmRowsAsNdjson(bytes: Uint8Array, keep: (row: number) => boolean): Uint8Array {
  const { rows, columns } = decodeTlm(bytes);
  const fields = columns.map(({ spec, values }) => ({ key: `${JSON.stringify(spec.name)}:`, spec, values }));
  const lines: string[] = [];
  for (let row = 0; row < rows; row++) {
    if (!keep(row)) continue;
    const members = fields.flatMap(({ key, spec, values }) => {
      const json = jsonOf(spec, values[row] ?? null);
      return json === undefined ? [] : [key + json];
    });
    lines.push(`{${members.join(",")}}\n`);
  }
  return Buffer.from(lines.join(""));
}

function jsonOf({ type }: ColumnSpec, value: Value): string | undefined {
  if (value === null) return undefined;
  switch (type.kind) {
    case "dynamic":
    case "long":
    case "bool":
    case "int":
      return String(value);
    case "string":
      return JSON.stringify(value);
    case "timestamp":
      return `"${nsToRfc3339(value as bigint)}"`;
    case "real":
      return numberText(value as number);
    case "vector":
      return `[${(value as readonly number[]).map(numberText).join(",")}]`;
  }
}

function numberText(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
