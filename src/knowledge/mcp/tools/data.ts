import { z } from "zod";
import { checkMayUse } from "../../../auth/caller.ts";
import { existingTable } from "../../../auth/existing-table.ts";
import { usableDatabases } from "../../../auth/usable-databases.ts";
import { EngineError } from "../../../core/errors.ts";
import { anyJson, columnsOf } from "../../../server/schemas.ts";
import { MCP_LIMITS } from "../limits.ts";
import { databaseArgument, defineTool, truncatedField, type ToolCall } from "../tool.ts";
import { rowsOf } from "./rows.ts";

/** Tools about tables and their rows. */

export const listTables = defineTool({
  name: "list_tables",
  title: "List tables",
  description: "Tables of one database, or of all that you may see, with their columns and types.",
  role: "read",
  input: z.strictObject({ database: z.string().max(128).optional().describe("All databases without it.") }),
  output: z.object({
    tables: z.array(
      z.object({ database: z.string(), table: z.string(), columns: z.string().describe("name type, name type, …") }),
    ),
    truncated: truncatedField,
  }),
  lists: ["tables"],
  run: async ({ deps: { catalog }, caller }, { database }) => {
    const found = await Promise.all(
      (await databasesOf({ deps: { catalog }, caller }, database)).map(catalog.tables.bind(catalog)),
    );
    const tables = found.flat().map((table) => {
      const columns = columnsOf(table).map(({ name, type }) => `${name} ${type}`);
      return { database: table.database, table: table.name, columns: columns.join(", ") };
    });
    return { tables };
  },
});

async function databasesOf(
  { deps: { catalog }, caller }: { deps: Pick<ToolCall["deps"], "catalog">; caller: ToolCall["caller"] },
  named: string | undefined,
): Promise<string[]> {
  if (named === undefined) return await usableDatabases(catalog, caller);
  checkMayUse(caller, named);
  const database = await catalog.database(named);
  if (database !== undefined) return [database.name];
  throw new EngineError("database_not_found", `database ${JSON.stringify(named)} does not exist`);
}

export const describeTable = defineTool({
  name: "describe_table",
  title: "Describe a table",
  description: "Columns, types and number of rows of a table.",
  role: "read",
  input: z.strictObject({ table: z.string().max(128), database: databaseArgument }),
  output: z.object({
    database: z.string(),
    table: z.string(),
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    cluster_by: z.array(z.string()),
    row_count: z.int(),
    truncated: truncatedField,
  }),
  lists: ["columns"],
  run: async ({ deps: { catalog }, caller, database }, input) => {
    const table = await existingTable(catalog, caller, input.database ?? database, input.table);
    const { rows } = await catalog.tableStats(table.id);
    return {
      database: table.database,
      table: table.name,
      columns: columnsOf(table),
      cluster_by: [...table.clusterBy],
      row_count: rows,
    };
  },
});

const queryInput = z.strictObject({
  query: z.string().max(MCP_LIMITS.queryChars),
  limit: z.int().min(1).max(MCP_LIMITS.rows).default(100).describe("Most rows of the answer."),
  database: databaseArgument,
});

const queryOutput = z.object({
  columns: z.array(z.string()),
  rows: z.array(z.array(z.unknown())).describe("Values in the order of the columns; integers past 2^53 are texts."),
  row_count: z.int().describe("Of the whole result."),
  truncated: truncatedField,
});

const query = { role: "read", input: queryInput, output: queryOutput, lists: ["rows"] } as const;

export const querySql = defineTool({
  ...query,
  name: "query_sql",
  title: "Query with SQL",
  description:
    'Runs one SELECT (DuckDB\'s SQL) over the tables. The time of a row is the column "at". Aggregate and filter in the ' +
    "query: few rows are answered. Memories are tables, too: system.memory_nodes and system.memory_edges.",
  run: (call, input) => run(call, input, "sql"),
});

export const queryKql = defineTool({
  ...query,
  name: "query_kql",
  title: "Query with KQL",
  description: "Runs one Kusto query (KQL) over the tables, like query_sql.",
  run: (call, input) => run(call, input, "kql"),
});

async function run(
  { deps, caller, address, database, requestId, signal }: ToolCall,
  { query: text, limit, database: named }: z.output<typeof queryInput>,
  language: "sql" | "kql",
): Promise<z.input<typeof queryOutput>> {
  if (text.trim() === "") throw new EngineError("parse_error", "the query text is empty");
  const asked = { caller, address, database: named ?? database, text, language, requestId, signal };
  const { rows: count, columns, body } = await deps.queries.run(asked);
  const rows = await rowsOf(body, columns, limit);
  return { columns: [...columns], rows, row_count: count, ...(rows.length < count && { truncated: true }) };
}

export const ingestRows = defineTool({
  name: "ingest_rows",
  title: "Store rows",
  description:
    "Stores rows in a table, which is made when it is missing; unknown fields become columns. `at` is the time of a row, " +
    "now unless given. With an idempotency key a repeated call stores nothing again.",
  role: "write",
  input: z.strictObject({
    table: z.string().max(128),
    rows: z.array(z.record(z.string(), anyJson)).min(1).max(MCP_LIMITS.rows),
    idempotency_key: z
      .string()
      .regex(/^[\x21-\x7e]{1,255}$/, "accepted are 1 to 255 visible ASCII characters")
      .optional(),
    database: databaseArgument,
  }),
  output: z.object({
    rows_ingested: z.int(),
    snapshot_id: z.string().describe("Empty while they are staged."),
    replayed: z.boolean().describe("The key was used before: nothing was stored again."),
    warnings: z.array(z.string()).optional(),
  }),
  run: async (call, { table, rows, idempotency_key: idempotencyKey, database }) => {
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    const ack = await storeRows(call, { database: database ?? call.database, table, rows, ...key });
    const warnings = (ack.warnings ?? []).map(({ code, field, type, count, firstLine }) =>
      [code, field, type, `${count} from row ${firstLine} on`].filter((part) => part !== undefined).join(", "),
    );
    return {
      rows_ingested: ack.rows,
      snapshot_id: String(ack.snapshotId ?? ""),
      replayed: ack.replayed,
      ...(warnings.length > 0 && { warnings }),
    };
  },
});

/** As `POST /v1/ingest` does. */
export function storeRows(
  { deps, caller }: Pick<ToolCall, "deps" | "caller">,
  {
    rows,
    ...where
  }: { database: string; table: string; rows: readonly Record<string, unknown>[]; idempotencyKey?: string },
) {
  const body = Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return deps.rows.ingest({
    ...where,
    caller,
    autoCreate: true,
    evolve: true,
    expectedBytes: body.byteLength,
    readBody: async () => body,
  });
}
