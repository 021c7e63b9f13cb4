import { createHash } from "node:crypto";
import { z } from "zod";
import { mayUseDatabase, type Caller } from "../../auth/caller.ts";
import type { Catalog, DatabaseRecord, TableRecord } from "../../catalog/catalog.ts";
import { matchesWeakly } from "../../core/etags.ts";
import { EngineError } from "../../core/errors.ts";
import type { FeatureDeps } from "../../feature/feature.ts";
import { originOf } from "../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { givesCredentials, readerCredentials, storeProperties } from "../credentials.ts";
import { OPEN_TABLES_METRICS } from "../metrics.ts";
import { openTablesOf } from "../open-tables.ts";
import { clientOf, propertiesFor, readsStoredMetadata, storePropertiesFor } from "./clients.ts";
import { ICEBERG_FAILURES } from "./failures.ts";
import { compareNames, pageOfNames, pageQuery } from "./pages.ts";

/**
 * The catalog protocol of Iceberg, as far as it reads: https://iceberg.apache.org/rest-catalog-spec/. A namespace is a
 * database. What a caller may not see is not there, whatever it is.
 */
export const ROOT = "/iceberg/v1";
export const NAMESPACE = `${ROOT}/namespaces/{namespace}`;
export const TABLE = `${NAMESPACE}/tables/{table}`;

export const common = { role: "read", tag: "Iceberg", failures: ICEBERG_FAILURES } as const;
export const namespacePath = z.object({ namespace: z.string() });
export const tablePath = namespacePath.extend({ table: z.string() });

/** What there is, in the protocol's own form: clients ask for nothing else then. */
const ENDPOINTS = [
  "GET /v1/{prefix}/namespaces",
  "GET /v1/{prefix}/namespaces/{namespace}",
  "HEAD /v1/{prefix}/namespaces/{namespace}",
  "GET /v1/{prefix}/namespaces/{namespace}/tables",
  "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
  "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
  "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
];

const texts = z.record(z.string(), z.string());
const catalogConfig = z.object({ defaults: texts, overrides: texts, endpoints: z.array(z.string()) });
const namespaceList = z.object({
  namespaces: z.array(z.array(z.string())),
  "next-page-token": z.string().nullable(),
});
const namespaceAnswer = z.object({ namespace: z.array(z.string()), properties: texts });
const tableList = z.object({
  identifiers: z.array(z.object({ namespace: z.array(z.string()), name: z.string() })),
  "next-page-token": z.string().nullable(),
});
const loadedTable = z.object({
  "metadata-location": z.string(),
  metadata: z.record(z.string(), z.unknown()).describe("The table's metadata, of version 2 of Iceberg's table format."),
  config: texts,
  "storage-credentials": z.array(z.object({ prefix: z.string(), config: texts })).optional(),
});

const answer = <T extends z.ZodType>(description: string, schema: T) => ({
  status: 200,
  description,
  type: "application/json",
  schema,
});

const ASKS_FOR_KEYS = { "header.X-Iceberg-Access-Delegation": "vended-credentials" };

export const configRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${ROOT}/config`,
  summary: "What an Iceberg client has to know",
  query: z.object({ warehouse: z.string().max(1_000).optional().describe("Any: there is one catalog.") }),
  responses: [answer("Settings of the client, and what it may ask for.", catalogConfig)],
  errors: [],
  handler: (deps: FeatureDeps) => {
    const { root } = openTablesOf(deps);
    // Clients send what stands behind `header.` with their requests, and so ask for the keys that there are.
    const asks = givesCredentials(deps.config, root) ? ASKS_FOR_KEYS : {};
    const defaults = { ...storeProperties(deps.config, root), ...asks };
    return async () => jsonResponse(200, { defaults, overrides: {}, endpoints: ENDPOINTS });
  },
});

export const namespacesRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${ROOT}/namespaces`,
  summary: "List databases",
  query: z.object({
    ...pageQuery,
    parent: z.string().max(1_000).optional().describe("A database, which has none below it."),
  }),
  responses: [answer("Databases that the caller may use.", namespaceList)],
  errors: ["database_not_found", "invalid_parameter"],
  handler:
    ({ catalog }: FeatureDeps) =>
    async ({ caller, query }) => {
      if (query.parent !== undefined && query.parent !== "") {
        await visibleDatabase(catalog, caller, query.parent);
        return jsonResponse(200, { namespaces: [], "next-page-token": null });
      }
      const all = await catalog.databases();
      const visible = all.map(({ name }) => name).filter((name) => mayUseDatabase(caller, name));
      const { names, next } = pageOfNames(visible.sort(compareNames), query);
      return jsonResponse(200, { namespaces: names.map((name) => [name]), "next-page-token": next });
    },
});

export const namespaceRoute = defineRoute({
  ...common,
  method: "GET",
  path: NAMESPACE,
  summary: "A database",
  params: namespacePath,
  responses: [answer("It is there.", namespaceAnswer)],
  errors: ["database_not_found"],
  handler:
    ({ catalog }: FeatureDeps) =>
    async ({ caller, params, request }) => {
      const { name } = await visibleDatabase(catalog, caller, params.namespace);
      if (request.method === "HEAD") return { status: 204, headers: {} };
      return jsonResponse(200, { namespace: [name], properties: {} });
    },
});

export const tablesRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${NAMESPACE}/tables`,
  summary: "List the tables of a database",
  params: namespacePath,
  query: z.object(pageQuery),
  responses: [answer("All tables, those without a published file among them.", tableList)],
  errors: ["database_not_found", "invalid_parameter"],
  handler:
    ({ catalog }: FeatureDeps) =>
    async ({ caller, params, query }) => {
      const { name: database } = await visibleDatabase(catalog, caller, params.namespace);
      const all = (await catalog.tables(database)).map(({ name }) => name).sort(compareNames);
      const { names, next } = pageOfNames(all, query);
      const identifiers = names.map((name) => ({ namespace: [database], name }));
      return jsonResponse(200, { identifiers, "next-page-token": next });
    },
});

export const loadTableRoute = defineRoute({
  ...common,
  method: "GET",
  path: TABLE,
  summary: "Load a table",
  description:
    "Its files are kept for `ENGINE_ICEBERG_HOLD_SECS` from now on. Rows that no file has yet that others can read are " +
    "counted in the summary of the current snapshot (`engine.pending-rows`).",
  params: tablePath,
  query: z.object({
    snapshots: z.enum(["all", "refs"]).default("all").describe("All that can be read, or the current one alone."),
  }),
  headers: z.object({
    "if-none-match": z.string().optional().describe("Entity tags: `304` where it is one of these."),
    "x-iceberg-access-delegation": z
      .string()
      .optional()
      .describe("With `vended-credentials` the answer has what the files are read with, where the server has it."),
  }),
  responses: [
    { ...answer("The table.", loadedTable), headers: { ETag: "Changes with the table's snapshots and columns." } },
    { status: 304, description: "It has not changed." },
  ],
  errors: ["table_not_found", "invalid_header", "unavailable"],
  handler: (deps: FeatureDeps) => {
    const tables = openTablesOf(deps);
    const metrics = OPEN_TABLES_METRICS.of(deps.metrics);
    const { catalog, config, audit } = deps;
    const store = storeProperties(config, tables.root);
    const credentialsOf = readerCredentials(deps, tables.root);
    return async (call) => {
      const { request, query, headers } = call;
      const table = await visibleTable(catalog, call.caller, call.params);
      if (request.method === "HEAD") return { status: 204, headers: {} };
      const properties = propertiesFor(request);
      const { location, metadata } = await tables.load(table, {
        all: query.snapshots === "all",
        properties,
        areAllStored: readsStoredMetadata(request),
      });
      metrics.loads.inc({ client: clientOf(request) });
      const listed = metadata.snapshots.map((snapshot) => (snapshot as { "snapshot-id": number })["snapshot-id"]);
      const isAsked = headers["x-iceberg-access-delegation"]?.split(",").some(isVended) === true;
      const places = tables.placesOf(table);
      const given = isAsked ? await credentialsOf?.(table, places) : undefined;
      // Other keys are another answer: whoever has those of before must not be told that nothing has changed.
      const etag = etagOf([location, listed, properties, given?.properties["s3.access-key-id"]]);
      if (headers["if-none-match"] !== undefined && matchesWeakly(headers["if-none-match"], etag)) {
        return { status: 304, headers: { ETag: etag } };
      }
      const settings = storePropertiesFor(request, store);
      if (given !== undefined) {
        const { details } = given;
        const target = `${table.database}.${table.name}`;
        const entry = { origin: originOf(call), action: "iceberg.credentials", target, outcome: "ok" } as const;
        await audit.record({ ...entry, ...(details && { details }) });
      }
      const keys = given?.properties;
      const body = {
        "metadata-location": location,
        metadata,
        config: { ...settings, ...keys },
        ...(keys !== undefined && {
          "storage-credentials": places.map((prefix) => ({ prefix, config: { ...settings, ...keys } })),
        }),
      };
      return jsonResponse(200, body, { ETag: etag, ...(keys !== undefined && { "Cache-Control": "no-store" }) });
    };
  },
});

const isVended = (asked: string): boolean => asked.trim() === "vended-credentials";

function etagOf(parts: readonly unknown[]): string {
  return `"${createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22)}"`;
}

/** Throws `database_not_found`, also for one that the caller may not use. */
export async function visibleDatabase(
  catalog: Pick<Catalog, "database">,
  caller: Caller,
  name: string,
): Promise<DatabaseRecord> {
  const known = mayUseDatabase(caller, name) ? await catalog.database(name) : undefined;
  if (known !== undefined) return known;
  throw new EngineError("database_not_found", `there is no database ${JSON.stringify(name.slice(0, 200))}`);
}

/** Throws `table_not_found`, also for one that the caller may not use. */
export async function visibleTable(
  catalog: Pick<Catalog, "table">,
  caller: Caller,
  { namespace, table: name }: { namespace: string; table: string },
): Promise<TableRecord> {
  const known = mayUseDatabase(caller, namespace) ? await catalog.table(namespace, name) : undefined;
  if (known !== undefined) return known;
  throw new EngineError("table_not_found", `there is no table ${JSON.stringify(`${namespace}.${name}`.slice(0, 300))}`);
}
