import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import { TLM_SCAN, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import { foreignColumn, type ForeignRows } from "../contract/engines.ts";

/** The SELECT that yields rows of another program, of the types of their columns. */
export function foreignQuery({ columns, paths, rows }: ForeignRows, scans: TlmScans): string {
  const scan = scans.add({
    columns: columns.map((_column, i) => ({ name: foreignColumn(i), type: { kind: "string" } })),
    sources: paths.map((path) => ({ path })),
    rows,
  });
  const values = columns.map(({ name, sqlType, isNested }, i) => {
    const text = isNested ? `CAST(${foreignColumn(i)} AS JSON)` : foreignColumn(i);
    return `CAST(${text} AS ${sqlType}) AS ${quoteIdentifier(name)}`;
  });
  return `SELECT ${values.join(", ")} FROM ${TLM_SCAN}(${scan})`;
}
