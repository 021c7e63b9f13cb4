import { createHash } from "node:crypto";
import { z } from "zod";

import { databaseNotFound } from "../../auth/name-not-found.ts";
import { mayUseDatabase, type Caller } from "../../auth/caller.ts";
import type { Catalog, TableRecord, TableSummary } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { matchesWeakly } from "../../core/etags.ts";
import { foldName } from "../../core/names.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { tableNotFound } from "../resolve/not-found.ts";
import { defineRoute } from "../../server/route.ts";
import type { QueryDeps } from "./deps.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { clusterBy, column, columnsOf, inferTypes } from "../../server/schemas.ts";

/**
 * `GET /v1/catalog/schema`: the whole tree, the tree without columns, or one table with its columns, so that a client of
 * hundreds of tables with thousands of columns asks for what it shows.
 *
 * Trees are kept as the texts of their tables, for at most the configured time and only while the catalog's schema
 * generation stands still: a client sees its own write at once, whichever process made it. One table is read anew each
 * time, which is a point look-up.
 *
 * The entity tag is a hash of the answer, so that it is the same on every node. It is weak, as compression gives the same
 * answer in other bytes.
 */

const schemaTree = z.object({
  databases: z.array(
    z.object({
      name: z.string(),
      tables: z.array(
        z.object({
          name: z.string(),
          columns: z.array(column).optional().describe("Absent with `columns=false`."),
          column_count: z.int().optional().describe("With `columns=false`: how many columns there are."),
          cluster_by: clusterBy,
          infer_types: inferTypes,
        }),
      ),
    }),
  ),
});

nameSchemas({ Schema: schemaTree });

const entityTag = { ETag: "A weak entity tag, which changes with the answer." };

export const schemaRoute = defineRoute({
  method: "GET",
  path: "/v1/catalog/schema",
  role: "read",
  tag: "Query",
  summary: "Databases, tables and columns",
  description:
    "The whole tree has every column of every table. A client of many wide tables asks for the tree with `columns=false`, " +
    "for one table when it is opened, and sends the `ETag` of what it has in `If-None-Match`.",
  compress: true,
  query: z.object({
    database: z.string().optional().describe("Only this database."),
    table: z.string().optional().describe("Only this table, of the database that is named with it."),
    columns: z.enum(["true", "false"]).default("true").describe("`false` leaves the columns out."),
  }),
  headers: z.object({
    "if-none-match": z.string().optional().describe("Entity tags: `304` where the answer has one of these."),
  }),
  responses: [
    { status: 200, description: "The tree.", type: "application/json", schema: schemaTree, headers: entityTag },
    { status: 304, description: "The tree has not changed.", headers: entityTag },
  ],
  errors: ["database_not_found", "table_not_found"],
  handler: (deps: QueryDeps) => {
    const whole = cachedTree(deps, () => readTree(deps));
    const outline = cachedTree(deps, () => readOutline(deps));
    return async ({ caller, query, headers }) => {
      const { database, table } = query;
      const hasColumns = query.columns === "true";
      if (table !== undefined) {
        if (database === undefined) throw new EngineError("invalid_parameter", "name the table's database with it");
        const found = await readTable(deps.catalog, { caller, database, table });
        return respond([treeOf(found.database, [textOf(hasColumns ? found : summaryOf(found))])], headers);
      }
      const databases = hasColumns ? await whole() : await outline();
      const usable = databases.filter(({ name }) => mayUseDatabase(caller, name));
      if (database === undefined) return respond(usable, headers);
      const one = usable.find(({ name }) => foldName(name) === foldName(database));
      if (one === undefined) throw await databaseNotFound(deps.catalog, { caller, database });
      return respond([one], headers);
    };
  },
});

/** A database as it is sent: its JSON text, and a hash of that. */
type DatabaseText = { name: string; text: string; hash: string };

function cachedTree(deps: QueryDeps, read: () => Promise<DatabaseText[]>): () => Promise<DatabaseText[]> {
  let cached: { tree: DatabaseText[]; generation: number; readAtMs: number } | undefined;
  return async () => {
    const generation = await deps.catalog.schemaGeneration();
    const nowMs = deps.clock.monotonicMs();
    const fresh = cached?.generation === generation && nowMs - cached.readAtMs < deps.schemaCacheTtlMs;
    if (cached === undefined || !fresh) cached = { tree: await read(), generation, readAtMs: nowMs };
    return cached.tree;
  };
}

async function readTree({ catalog }: QueryDeps): Promise<DatabaseText[]> {
  const databases = await catalog.databases();
  return await Promise.all(
    databases.map(async ({ name }) =>
      treeOf(
        name,
        (await catalog.tables(name)).map((table) => textOf(table)),
      ),
    ),
  );
}

async function readOutline({ catalog }: QueryDeps): Promise<DatabaseText[]> {
  const databases = await catalog.databases();
  const tables = Map.groupBy(await catalog.tableSummaries(), ({ databaseId }) => databaseId);
  return databases.map(({ id, name }) =>
    treeOf(
      name,
      (tables.get(id) ?? []).map((table) => textOf(table)),
    ),
  );
}

async function readTable(
  catalog: Catalog,
  { caller, database, table: name }: { caller: Caller; database: string; table: string },
): Promise<TableRecord> {
  const mayUse = mayUseDatabase(caller, database);
  const resolution = mayUse ? await catalog.resolve(database, [name]) : undefined;
  if (resolution === undefined)
    throw await databaseNotFound(catalog, { caller, database }, { ...(!mayUse && { refused: true }) });
  const [table] = resolution.tables;
  if (table === undefined) throw await tableNotFound(catalog, database, { name, mentions: [] });
  return table;
}

function summaryOf({ columns, ...table }: TableRecord): TableSummary {
  return { ...table, columnCount: columns.length };
}

function textOf(table: TableRecord | TableSummary): string {
  const { name, clusterBy: cluster_by, inferTypes: infer_types = null } = table;
  const columns = "columns" in table ? { columns: columnsOf(table) } : { column_count: table.columnCount };
  return JSON.stringify({ name, ...columns, cluster_by, infer_types });
}

function treeOf(name: string, tables: readonly string[]): DatabaseText {
  const text = `{"name":${JSON.stringify(name)},"tables":[${tables.join(",")}]}`;
  return { name, text, hash: hashOf(text) };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

function respond(databases: readonly DatabaseText[], headers: { "if-none-match"?: string | undefined }): HttpResponse {
  const etag = `W/"${hashOf(databases.map(({ hash }) => hash).join()).slice(0, 22)}"`;
  // Browsers keep it, and ask each time whether it is still so.
  const common = { ETag: etag, "Cache-Control": "private, no-cache" };
  const known = headers["if-none-match"];
  if (known !== undefined && matchesWeakly(known, etag)) return { status: 304, headers: common };
  const body = `{"databases":[${databases.map(({ text }) => text).join(",")}]}`;
  return { status: 200, headers: { ...common, "Content-Type": "application/json; charset=utf-8" }, body };
}
