import { foldName } from "../../../core/names.ts";
import type { RecordRow } from "../../../db/records.ts";
import type { SystemRow, SystemTable, SystemTableContext } from "../../../feature/system-table.ts";
import type { ColumnSpec, ScalarTypeName } from "../../../format/types.ts";

const PAGE = 1_000;
const MAX_ROWS = 100_000;
const NS_PER_MS = 1_000_000n;

const column = (name: string, kind: ScalarTypeName): ColumnSpec => ({ name, type: { kind } });

/** `system.filedrop`: dropped files of all databases that the caller may read, by key; the first `MAX_ROWS`. */
export const FILEDROP: SystemTable = {
  name: "filedrop",
  columns: [
    ...["key", "database", "table_name", "state"].map((name) => column(name, "string")),
    ...["size_bytes", "rows", "misfits", "snapshot"].map((name) => column(name, "long")),
    column("reason", "string"),
    column("line", "long"),
    column("column_name", "string"),
    ...["found_at", "changed_at"].map((name) => column(name, "timestamp")),
  ],
  async *rows(context) {
    let count = 0;
    for (let after = ""; ;) {
      const page = await context.records.rows("SELECT * FROM filedrop_files WHERE key > ? ORDER BY key LIMIT ?", [
        after,
        PAGE,
      ]);
      for (const row of page) {
        if (!maySee(row, context)) continue;
        yield toRow(row);
        if (++count === MAX_ROWS) return;
      }
      if (page.length < PAGE) return;
      after = String(page.at(-1)?.["key"]);
    }
  },
};

/** What is in no database only those see who may see all. */
function maySee(row: RecordRow, { caller: { databases } }: SystemTableContext): boolean {
  return databases === undefined || databases.includes(foldName(String(row["database_name"])));
}

function toRow(row: RecordRow): SystemRow {
  const text = (name: string) => (typeof row[name] === "string" ? row[name] : undefined);
  const number = (name: string) => (row[name] === null ? undefined : Number(row[name]));
  const time = (name: string) => BigInt(Number(row[name])) * NS_PER_MS;
  return {
    key: text("key"),
    database: text("database_name"),
    table_name: text("table_name"),
    state: text("state"),
    size_bytes: number("size_bytes"),
    rows: number("row_count"),
    misfits: number("misfits"),
    snapshot: number("snapshot_id"),
    reason: text("reason"),
    line: number("line"),
    column_name: text("column_name"),
    found_at: time("found_at_ms"),
    changed_at: time("changed_at_ms"),
  };
}
