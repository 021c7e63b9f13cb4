import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withCatalog } from "../../bench/support/catalog.ts";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { COLUMNS, row } from "./data.test-kit.ts";
import { startClient, type Client } from "./readers.test-kit.ts";

/**
 * Every answer of the catalog is one of the protocol's, as its own OpenAPI document has them: the models that are generated
 * from it take no text for a number, and nothing that is required may be missing.
 */

const python = installedBy("install-iceberg-protocol", "python3-venv");
if (python === undefined && process.env["CI"] === "true")
  throw new Error("the models of Iceberg's protocol are missing");

type Model =
  | "CatalogConfig"
  | "GetNamespaceResponse"
  | "IcebergErrorResponse"
  | "ListNamespacesResponse"
  | "ListTablesResponse"
  | "LoadTableResult";

describe.skipIf(python === undefined)("as the protocol's models have it", () => {
  let services: CalledServices<"admin" | "limited">;
  let models: Client<{ model: Model; body: unknown }>;

  beforeAll(async () => {
    services = await CalledServices.start(
      [["admin", "admin"]] as const,
      { ENGINE_WRITE_FORMAT: "parquet" },
      async (home) => {
        await withCatalog(home, async (catalog) => {
          for (const name of ["empty", "full"]) await catalog.createTable({ database: "d", name, columns: COLUMNS });
        });
      },
    );
    await services.limit("limited", "read", ["other"], "admin");
    models = startClient(python ?? "", [fileURLToPath(new URL("protocol.py", import.meta.url))]);
    services.closeFirst(async () => models.close());
  }, 600_000);
  afterAll(() => services.close());

  async function check(
    [model, status]: readonly [Model, number],
    path: string,
    {
      method = "GET",
      who = "admin",
      headers = {},
    }: Partial<{ method: string; who: "admin" | "limited"; headers: Record<string, string> }> = {},
  ): Promise<Json> {
    const sent = method === "POST" ? "{}" : undefined;
    const all = { ...(method === "POST" && { "Content-Type": "application/json" }), ...headers };
    const answer = await services.send(who, method, `/iceberg/v1/${path}`, sent, all);
    const body = (await answer.json()) as Json;
    const said = await models.ask({ model, body });
    expect({ path, status: answer.status, ...said }).toEqual({ path, status });
    return body;
  }

  async function ingest(table: string, rows: readonly Json[]): Promise<void> {
    const headers = { "X-Database": "d", "X-Table": table, "Content-Type": "application/x-ndjson" };
    expect((await services.send("admin", "POST", "/v1/ingest", ndjson(rows), headers)).status).toBe(200);
  }

  test("a table is, without rows, with rows that wait, and with several snapshots of all types of columns", async () => {
    const loaded = ["LoadTableResult", 200] as const;
    await check(loaded, "namespaces/d/tables/empty");
    await ingest("waits", [{ body: "a" }]);
    await check(loaded, "namespaces/d/tables/waits");
    for (const batch of [1, 2]) await ingest("full", [row(batch, 1), row(batch, 2)]);
    await ingest("full", [{ ...row(3, 1), later: "a" }]);
    await check(loaded, "namespaces/d/tables/full");
    await eventually(async () => {
      const { metadata } = await check(loaded, "namespaces/d/tables/full?snapshots=all");
      return (metadata as { snapshots: unknown[] }).snapshots.length > 1;
    });
    await check(loaded, "namespaces/d/tables/full?snapshots=refs");
    await check(loaded, "namespaces/d/tables/full", { headers: { "X-Client-Version": "Apache Iceberg 1.10.1" } });
  });

  test("lists and the configuration are", async () => {
    await check(["CatalogConfig", 200], "config?warehouse=w");
    for (const query of ["", "?pageSize=1", "?parent=d", "?pageToken="]) {
      await check(["ListNamespacesResponse", 200], `namespaces${query}`);
    }
    for (const query of ["", "?pageSize=1"]) await check(["ListTablesResponse", 200], `namespaces/d/tables${query}`);
    await check(["GetNamespaceResponse", 200], "namespaces/d");
  });

  test("what is refused is", async () => {
    const failed = (status: number) => ["IcebergErrorResponse", status] as const;
    for (const path of [
      "namespaces/none",
      "namespaces/none/tables",
      "namespaces?parent=none",
      "namespaces/d/tables/none",
    ]) {
      await check(failed(404), path);
    }
    for (const path of ["namespaces/d", "namespaces/d/tables/full"]) await check(failed(404), path, { who: "limited" });
    for (const path of [
      "namespaces?pageSize=x",
      "namespaces/d/tables?pageToken=%00",
      "namespaces/d/tables/full?snapshots=x",
    ]) {
      await check(failed(400), path);
    }
    await check(failed(400), "namespaces/d/tables/full/metrics", { method: "POST" });
    for (const path of [
      "namespaces",
      "namespaces/d/properties",
      "namespaces/d/tables",
      "namespaces/d/register",
      "namespaces/d/tables/full",
      "tables/rename",
      "transactions/commit",
      "namespaces/d/views",
      "oauth/tokens",
    ]) {
      await check(failed(405), path, { method: "POST" });
    }
    for (const path of ["namespaces/d", "namespaces/d/tables/full"])
      await check(failed(405), path, { method: "DELETE" });
    const anonymous = await fetch(`${services.url}/iceberg/v1/config`);
    const said = await models.ask({ model: "IcebergErrorResponse", body: await anonymous.json() });
    expect({ status: anonymous.status, ...said }).toEqual({ status: 401 });
  });

  test("the models refuse what is another answer", async () => {
    const table = await check(["LoadTableResult", 200], "namespaces/d/tables/full");
    const metadata = table["metadata"] as Json;
    for (const [model, body] of [
      ["LoadTableResult", { ...table, metadata: { ...metadata, "table-uuid": undefined } }],
      ["LoadTableResult", { ...table, metadata: { ...metadata, "current-snapshot-id": "1" } }],
      ["LoadTableResult", { ...table, config: { a: 1 } }],
      ["ListTablesResponse", { identifiers: [{ name: "t" }] }],
      ["IcebergErrorResponse", { error: { message: "x", type: "y", code: "404" } }],
      ["CatalogConfig", { defaults: {} }],
    ] as const) {
      expect([model, await models.ask({ model, body })]).toMatchObject([model, { error: "ValidationError" }]);
    }
  });
});
