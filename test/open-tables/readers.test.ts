import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { withCatalog } from "../../bench/support/catalog.ts";
import { COLUMNS, QUESTIONS, row } from "./data.test-kit.ts";
import { findReaders, startReaders, type Readers } from "./readers.test-kit.ts";

/**
 * PyIceberg and DuckDB's extension read the tables of a running server, and answer what the server answers at the same
 * snapshot: of the current one, and of earlier ones, while rows come in, files are merged and rows are deleted.
 */

const TABLES = ["names.one", "names.Two-2", "d.events", "prune.events", "held.events", "refused.events"];

async function makeTables(home: string): Promise<void> {
  await withCatalog(home, async (catalog) => {
    for (const table of TABLES) {
      const [database = "", name = ""] = table.split(".");
      await catalog.createTable({ database, name, columns: COLUMNS });
    }
  });
}

const CLIENTS = ["pyiceberg", "duckdb"] as const;
const { python, isThere } = findReaders();

describe.skipIf(!isThere)("on the local disk", () => {
  let services: CalledServices<"admin">;
  let readers: Readers;

  beforeAll(async () => {
    const env = {
      ENGINE_WRITE_FORMAT: "parquet",
      ENGINE_COMPACTION_POLL_SECS: "1",
      ENGINE_COMPACTION_MIN_EXTENTS: "6",
      ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
      ENGINE_PHYSICAL_GC_POLL_SECS: "1",
    };
    services = await CalledServices.start([["admin", "admin"]] as const, env, makeTables);
    readers = startReaders(python, services.url, services.tokens.get("admin") ?? "");
    services.closeFirst(async () => readers.close());
  }, 600_000);
  afterAll(() => services.close());

  async function ingest(database: string, table: string, rows: readonly Json[]): Promise<number> {
    const headers = { "X-Database": database, "X-Table": table, "Content-Type": "application/x-ndjson" };
    const answer = await services.send("admin", "POST", "/v1/ingest", ndjson(rows), headers);
    expect(answer.status).toBe(200);
    return Number(((await answer.json()) as Json)["snapshot_id"]);
  }

  /** The server's own answer, as of a snapshot. */
  async function own(database: string, table: string, sql: string, snapshot: number): Promise<unknown[][]> {
    const text = `WITH t AS (SELECT * FROM "${table}" AT (VERSION => ${snapshot})) ${sql}`;
    const answer = await services.send("admin", "POST", "/v1/query", text, { "X-Database": database });
    const body = await answer.text();
    expect([answer.status, answer.status === 200 ? "" : body]).toEqual([200, ""]);
    const lines = body === "" ? [] : body.trimEnd().split("\n");
    return lines.map((line) => Object.values(JSON.parse(line) as Json));
  }

  async function currentOf(
    database: string,
    table: string,
  ): Promise<{ snapshot: number; all: number[]; files: number }> {
    const path = `/iceberg/v1/namespaces/${database}/tables/${table}`;
    const { metadata } = (await services.json("admin", "GET", path)) as unknown as {
      metadata: { snapshots: { "snapshot-id": number; summary: Record<string, string> }[] };
    };
    const all = metadata.snapshots.map((snapshot) => snapshot["snapshot-id"]);
    return { snapshot: all.at(-1) ?? -1, all, files: Number(metadata.snapshots.at(-1)?.summary["total-data-files"]) };
  }

  const rowsOf = async (ask: Parameters<Readers["ask"]>[0]): Promise<unknown[][]> => {
    const { rows, error, message } = await readers.ask(ask);
    expect([ask.client, ask.sql, error, message]).toEqual([ask.client, ask.sql, undefined, undefined]);
    return rows ?? [];
  };

  async function compare(database: string, table: string, snapshot: number, questions = QUESTIONS): Promise<void> {
    for (const client of CLIENTS) {
      for (const question of questions) {
        const answer = await rowsOf({ client, table: `${database}.${table}`, snapshot, ...question });
        expect({ client, question, answer }).toEqual({
          client,
          question,
          answer: await own(database, table, question.sql, snapshot),
        });
      }
    }
  }

  test("names are those of databases and tables", async () => {
    expect(await rowsOf({ client: "pyiceberg", list: true })).toContainEqual(["names.Two-2", "names.one"]);
    const listed = await rowsOf({ client: "duckdb", list: true });
    expect(listed.filter(([, schema]) => schema === "names")).toEqual([
      ["lake", "names", "Two-2"],
      ["lake", "names", "one"],
    ]);
  });

  test("answers are the server's own: current ones, earlier ones, with columns that came later, and after a merge", async () => {
    const first = await ingest(
      "d",
      "events",
      Array.from({ length: 60 }, (_, i) => row(0, i)),
    );
    await compare("d", "events", first);
    const batchOf = (batch: number) => Array.from({ length: 60 }, (_, i) => row(batch, i));
    for (let batch = 1; batch < 4; batch++) await ingest("d", "events", batchOf(batch));
    const { snapshot } = await currentOf("d", "events");
    await compare("d", "events", snapshot);
    await eventually(async () => (await currentOf("d", "events")).all.includes(first));
    await compare("d", "events", first, QUESTIONS.slice(0, 6));
    // What brings a column waits for the first merge.
    for (const batch of [4, 5])
      await ingest(
        "d",
        "events",
        batchOf(batch).map((one, i) => Object.assign(one, { later: i % 7 })),
      );
    await eventually(async () => (await currentOf("d", "events")).files === 1);
    const merged = await currentOf("d", "events");
    await compare("d", "events", merged.snapshot);
    const later = {
      sql: "SELECT later::VARCHAR AS a, count(*)::VARCHAR AS b FROM t GROUP BY later ORDER BY later NULLS FIRST LIMIT 9",
    };
    await compare("d", "events", merged.snapshot, [later]);
  }, 120_000);

  test("files without a match are left out by their bounds", async () => {
    for (let batch = 0; batch < 3; batch++) {
      await ingest(
        "prune",
        "events",
        Array.from({ length: 10 }, (_, i) => ({ ...row(batch, i), text: `t${batch}` })),
      );
    }
    const filesOf = async (where: string) =>
      (await rowsOf({ client: "pyiceberg", table: "prune.events", where, files: true })).length;
    expect(await filesOf("text = 't1'")).toBe(1);
    expect(await filesOf("text = 't9'")).toBe(0);
    expect(await filesOf("at < '2024-01-01T01:30:00+00:00'")).toBe(1);
    expect(await filesOf("small is null")).toBe(3);
    expect(await filesOf("true")).toBe(3);
  });

  test("a client that loaded a table reads it to its end, whatever is merged and deleted meanwhile", async () => {
    for (let i = 0; i < 3; i++) await ingest("held", "events", [row(0, i)]);
    const { snapshot, files } = await currentOf("held", "events");
    expect(files).toBe(3);
    const before = await own("held", "events", "SELECT count(*)::VARCHAR AS a FROM t", snapshot);
    let last = snapshot;
    for (let i = 3; i < 8; i++) last = await ingest("held", "events", [row(0, i)]);
    // A merge takes six of them or more, the three oldest among them; what came meanwhile waits for the next one.
    await eventually(async () => {
      const now = await currentOf("held", "events");
      return now.snapshot >= last && now.files <= 3;
    });
    // Bytes go a second after a merge where nobody holds them.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    for (const client of CLIENTS) {
      const answer = await rowsOf({
        client,
        table: "held.events",
        snapshot,
        sql: "SELECT count(*)::VARCHAR AS a FROM t",
      });
      expect([client, answer]).toEqual([client, before]);
    }
  });

  test("clients that write are refused", async () => {
    await ingest("refused", "events", [row(0, 1), row(0, 2)]);
    for (const client of CLIENTS) {
      const said = await readers.ask({ client, table: "refused.events", write: true });
      expect([client, said.error === undefined, said.rows]).toEqual([client, false, undefined]);
    }
    expect(
      await own(
        "refused",
        "events",
        "SELECT count(*)::VARCHAR AS a FROM t",
        (await currentOf("refused", "events")).snapshot,
      ),
    ).toEqual([["2"]]);
  });
});
