import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { withCatalog } from "../../bench/support/catalog.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { CLICKHOUSE, COLUMNS, DUCKDB, questionsIn, row, SPARK, TRINO, type Dialect } from "./data.test-kit.ts";
import { documented, findEngines, startClickHouse, startSpark, startTrino } from "./engines.test-kit.ts";
import type { Engine, Place, Trino } from "./engines.test-kit.ts";
import { findReaders, startReaders, type Readers, type Said } from "./readers.test-kit.ts";

/**
 * Spark, Trino, ClickHouse, PyIceberg and DuckDB read the tables of two running servers, one on the local disk and one on
 * a bucket, set up as the document says, and answer what the server answers at the same snapshot.
 */

const folder = findEngines();
const { python, isThere } = findReaders();

/** A client of a table of a server, and what it answers. */
type Reader = {
  name: string;
  dialect: Dialect;
  ask: (question: Question) => Promise<Said>;
  insert: () => Promise<Said>;
};
type Question = { sql: string; where?: string; snapshot?: number };
type Services = CalledServices<"admin">;

const DATABASE = "d";
const TABLE = "events";
const FULL_NAME = `${DATABASE}.${TABLE}`;
const SETTINGS = {
  ENGINE_WRITE_FORMAT: "parquet",
  ENGINE_COMPACTION_POLL_SECS: "1",
  ENGINE_COMPACTION_MIN_EXTENTS: "6",
};

describe.skipIf(folder === undefined || !isThere || lacks("S3 server"))("with every type of column", () => {
  const programs = folder ?? "";
  let s3: Versitygw;
  let local: Services;
  let bucket: Services;
  let trino: Trino;
  let sparks: Record<"1.10.1" | "1.11.0", Engine>;
  let onDisk: Reader[];
  let onBucket: Reader[];
  /** Of each server: the first snapshot, and the last one before files were merged. */
  const snapshots = new Map<Services, { first: number; last: number }>();

  beforeAll(async () => {
    s3 = await sharedVersitygw();
    const { accessKeyId, secretAccessKey } = s3.credentials;
    const handedOut = {
      ENGINE_ICEBERG_CREDENTIALS: "static",
      ENGINE_ICEBERG_ACCESS_KEY_ID: accessKeyId,
      ENGINE_ICEBERG_SECRET_ACCESS_KEY: secretAccessKey,
    };
    const bucketName = await s3.makeBucket();
    [local, bucket] = await Promise.all([
      CalledServices.start([["admin", "admin"]] as const, SETTINGS, makeTable),
      CalledServices.start(
        [["admin", "admin"]] as const,
        { ...SETTINGS, ...storeEnvironment(s3, bucketName), ...handedOut },
        makeTable,
      ),
    ]);
    const [here, there] = [placeOf(local), { ...placeOf(bucket), s3 }];
    sparks = {
      "1.10.1": startSpark(programs, "1.10.1", { lake: here }),
      "1.11.0": startSpark(programs, "1.11.0", { lake: here, bucket: there }),
    };
    const clickHouse = startClickHouse(programs, there, join(bucket.home, "clickhouse"));
    const readers = startReaders(python, there.url, there.token, { delegation: "vended_credentials" });
    for (const client of [...Object.values(sparks), clickHouse, readers]) bucket.closeFirst(async () => client.close());
    const [properties = ""] = documented("Trino", here);
    const [bucketProperties = "", storeProperties = ""] = documented("Trino", there);
    trino = await startTrino(programs, {
      disk: properties,
      // Without being told that it cannot write, so that the catalog has to say so.
      bucket: bucketProperties
        .replace("fs.hadoop.enabled=true", storeProperties)
        .replace("iceberg.security=read_only\n", ""),
    });
    onDisk = [
      readerOf("Spark with Iceberg 1.10.1", SPARK, sparks["1.10.1"], "lake"),
      readerOf("Spark with Iceberg 1.11.0", SPARK, sparks["1.11.0"], "lake"),
      readerOf("Trino on a disk", TRINO, trino.client, "disk"),
    ];
    onBucket = [
      readerOf("Spark on a bucket", SPARK, sparks["1.11.0"], "bucket"),
      readerOf("Trino on a bucket", TRINO, trino.client, "bucket"),
      readerOf("ClickHouse", CLICKHOUSE, clickHouse, "lake"),
      readerOf("ClickHouse with keys of its own", CLICKHOUSE, clickHouse, "own"),
      pythonReader("pyiceberg", readers),
      pythonReader("duckdb", readers),
    ];
  }, 600_000);
  afterAll(async () => {
    await trino?.stop();
    await bucket?.close();
    await local?.close();
    await s3?.stop();
  });

  test("answers are the server's own, of the current snapshot and of an earlier one", async () => {
    await forBoth(async (services, readers) => {
      const first = await ingest(services, 0);
      for (const batch of [1, 2, 3]) await ingest(services, batch);
      const { snapshot: last } = await currentOf(services);
      snapshots.set(services, { first, last });
      await eventually(async () => (await currentOf(services)).all.includes(first));
      await compare(services, readers, last);
      await compare(services, readers, first, { isEarlier: true });
    });
  }, 600_000);

  test("so they are after a merge, which brings a column", async () => {
    await forBoth(async (services, readers) => {
      for (const batch of [4, 5]) await ingest(services, batch, (i) => ({ later: i % 7 }));
      await eventually(async () => (await currentOf(services)).files === 1);
      const { snapshot } = await currentOf(services);
      await compare(services, readers, snapshot);
      await compare(services, readers, snapshots.get(services)?.last ?? -1, { isEarlier: true });
      const later = "SELECT CAST(later AS VARCHAR(20)) AS a, CAST(count(*) AS VARCHAR(20)) AS b FROM t GROUP BY later";
      const question = () => [{ sql: `${later} ORDER BY later NULLS FIRST LIMIT 9` }];
      await compare(services, readers, snapshot, { questions: question });
    });
  }, 600_000);

  test("Spark reads vectorized where Iceberg can, and is told not to where it cannot", async () => {
    const columns = "SELECT text, big, real FROM lake.d.events";
    const planOf = async (spark: Engine) =>
      JSON.stringify(await rowsOf("a plan", spark.ask({ run: `EXPLAIN ${columns}` })));
    expect(await planOf(sparks["1.10.1"])).not.toContain("ColumnarToRow");
    expect(await planOf(sparks["1.11.0"])).toContain("ColumnarToRow");
    // The day this is read rightly, nobody needs to be told.
    await rowsOf("a setting", sparks["1.10.1"].ask({ run: "SET spark.sql.iceberg.vectorization.enabled = true" }));
    expect(await planOf(sparks["1.10.1"])).toContain("ColumnarToRow");
    const { rows, message } = await sparks["1.10.1"].ask({ run: columns });
    expect([rows, message]).toEqual([undefined, expect.stringContaining("Cannot support vectorized reads")]);
  }, 120_000);

  test("inserts are refused", async () => {
    await forBoth(async (services, readers) => {
      const before = await currentOf(services);
      for (const { name, insert } of readers) {
        const { rows, error } = await insert();
        expect([name, rows, error]).toEqual([name, undefined, expect.any(String)]);
      }
      expect(await currentOf(services)).toEqual(before);
    });
  }, 120_000);

  test("a query that its budget refuses here is answered by Trino, of the rows that were published for it", async () => {
    const named = { name: "trino", kind: "trino", url: trino.url, catalog: "bucket" };
    expect(await bucket.json("admin", "POST", "/v1/admin/query-engines", named)).toMatchObject({ httpStatus: 201 });
    expect(await bucket.json("admin", "POST", "/v1/admin/query-engines/trino/test")).toMatchObject({ ok: true });
    const table = { "X-Database": DATABASE, "X-Table": "fresh", "Content-Type": "application/x-ndjson" };
    const rows = Array.from({ length: 100 }, (_, n) => ({ n, at: "2024-01-01T00:00:00.123456Z", text: `t${n % 7}` }));
    expect((await bucket.send("admin", "POST", "/v1/ingest", ndjson(rows), table)).status).toBe(200);
    const sql =
      "SELECT text, count(*) AS rows, max(at) AS at, array_agg(n ORDER BY n DESC) AS ns FROM fresh GROUP BY 1 ORDER BY 1";
    const post = async (path: string, headers: Record<string, string>, body = sql) => {
      const answer = await bucket.send("admin", "POST", path, body, { "X-Database": DATABASE, ...headers });
      return [answer.status, await answer.text()] as const;
    };
    const [status, refused] = await post("/v1/query", { "X-Engine-Max-Object-Store-Bytes": "0" });
    expect([status, refused]).toEqual([429, expect.stringContaining("send it with X-Engine-Run-On: trino")]);

    const asked = { query: sql, database: DATABASE, run_on: "trino", publish: ["fresh"] };
    const { id } = await bucket.json("admin", "POST", "/v1/exports", asked);
    const exported = () => bucket.json("admin", "GET", `/v1/exports/${String(id)}`);
    await eventually(async () => ["done", "failed"].includes(String((await exported())["status"])), 120_000);
    expect(await exported()).toMatchObject({ status: "done", rows: 7, columns: ["text", "rows", "at", "ns"] });
    // The same rows, in the same words, as the server itself gives.
    const there = await post("/v1/query", { "X-Engine-Run-On": "trino" });
    expect(there).toEqual(await post("/v1/query", {}));
    expect(there[0]).toBe(200);
  }, 240_000);

  test("Trino itself refuses what writes, and ends what is cancelled", async () => {
    const sent = async (text: string, more: RequestInit = {}) => {
      const headers = {
        Authorization: `Bearer ${placeOf(bucket).token}`,
        "X-Engine-Run-On": "trino",
        "X-Database": DATABASE,
      };
      const answer = await fetch(`${bucket.url}/v1/query`, { method: "POST", body: text, headers, ...more });
      return [answer.status, await answer.text()] as const;
    };
    for (const text of [
      "INSERT INTO fresh (n) VALUES (1)",
      "CREATE TABLE other AS SELECT 1 AS a",
      "DROP TABLE fresh",
      "EXPLAIN ANALYZE DELETE FROM fresh",
      "EXECUTE IMMEDIATE 'DROP TABLE fresh'",
      "CALL bucket.system.rollback_to_snapshot('d', 'fresh', 1)",
      "CALL system.runtime.kill_query('x', 'y')",
      "COMMIT",
      "START TRANSACTION",
      "SELECT 1; SELECT 2",
    ]) {
      expect([text, (await sent(text))[0]]).toEqual([text, 400]);
    }
    const marker = "of the test that leaves";
    const long =
      `SELECT count(*) AS "${marker}" FROM UNNEST(sequence(1, 10000)) a(x), UNNEST(sequence(1, 10000)) b(y), ` +
      "UNNEST(sequence(1, 1000)) c(z) WHERE x * y % 7 = z";
    const stateOf = async () =>
      await rowsOf(
        "its queries",
        trino.client.ask({
          run: `SELECT state, error_code FROM system.runtime.queries WHERE query LIKE 'SELECT count(*) AS "${marker}%'`,
        }),
      );
    const stop = new AbortController();
    const left = sent(long, { signal: stop.signal });
    await eventually(async () => (await stateOf())[0]?.[0] === "RUNNING");
    stop.abort();
    await expect(left).rejects.toThrow("abort");
    await eventually(async () => (await stateOf())[0]?.[1] === "USER_CANCELED");
  }, 240_000);

  /** At once: each server's clients wait for each other, but not for those of the other server. */
  async function forBoth(check: (services: Services, readers: readonly Reader[]) => Promise<void>): Promise<void> {
    const both = await Promise.allSettled([check(local, onDisk), check(bucket, onBucket)]);
    for (const one of both) if (one.status === "rejected") throw one.reason;
  }
});

function placeOf({ url, tokens }: Services): Place {
  return { url, token: tokens.get("admin") ?? "" };
}

async function makeTable(home: string): Promise<void> {
  await withCatalog(home, async (catalog) => {
    await catalog.createTable({ database: DATABASE, name: TABLE, columns: COLUMNS });
  });
}

function readerOf(name: string, dialect: Dialect, engine: Engine, catalog: string): Reader {
  return {
    name,
    dialect,
    ask: ({ sql, snapshot }) =>
      engine.ask({ table: FULL_NAME, catalog, sql, ...(snapshot !== undefined && { snapshot }) }),
    insert: () => engine.ask({ table: FULL_NAME, catalog, write: true }),
  };
}

function pythonReader(client: "pyiceberg" | "duckdb", readers: Readers): Reader {
  return {
    name: client,
    dialect: DUCKDB,
    ask: (question) => readers.ask({ client, table: FULL_NAME, ...question }),
    insert: () => readers.ask({ client, table: FULL_NAME, write: true }),
  };
}

async function ingest(services: Services, batch: number, more: (i: number) => Json = () => ({})): Promise<number> {
  const rows = Array.from({ length: 60 }, (_, i) => ({ ...row(batch, i), ...more(i) }));
  const headers = { "X-Database": DATABASE, "X-Table": TABLE, "Content-Type": "application/x-ndjson" };
  const answer = await services.send("admin", "POST", "/v1/ingest", ndjson(rows), headers);
  expect(answer.status).toBe(200);
  return Number(((await answer.json()) as Json)["snapshot_id"]);
}

/** The server's own answer, as of a snapshot. */
async function own(services: Services, sql: string, snapshot: number): Promise<unknown[][]> {
  const text = `WITH t AS (SELECT * FROM "${TABLE}" AT (VERSION => ${snapshot})) ${sql}`;
  const answer = await services.send("admin", "POST", "/v1/query", text, { "X-Database": DATABASE });
  const body = await answer.text();
  expect([answer.status, answer.status === 200 ? "" : body]).toEqual([200, ""]);
  const lines = body === "" ? [] : body.trimEnd().split("\n");
  return lines.map((line) => Object.values(JSON.parse(line) as Json));
}

async function currentOf(services: Services): Promise<{ snapshot: number; all: number[]; files: number }> {
  const path = `/iceberg/v1/namespaces/${DATABASE}/tables/${TABLE}`;
  const { metadata } = (await services.json("admin", "GET", path)) as unknown as {
    metadata: { snapshots: { "snapshot-id": number; summary: Record<string, string> }[] };
  };
  const all = metadata.snapshots.map((snapshot) => snapshot["snapshot-id"]);
  return { snapshot: all.at(-1) ?? -1, all, files: Number(metadata.snapshots.at(-1)?.summary["total-data-files"]) };
}

async function rowsOf(what: string, said: Promise<Said>): Promise<unknown[][]> {
  const { rows, error, message } = await said;
  expect([what, error, message]).toEqual([what, undefined, undefined]);
  return rows ?? [];
}

/**
 * Questions about a snapshot. An earlier one is asked for by its number, and for a part of them: what they are about is its
 * rows, not what a client makes of a question.
 */
async function compare(
  services: Services,
  readers: readonly Reader[],
  snapshot: number,
  { isEarlier = false, questions = questionsIn }: { isEarlier?: boolean; questions?: typeof questionsIn } = {},
): Promise<void> {
  const answers: unknown[] = [];
  const askedIn = (dialect: Dialect) => questions(dialect).slice(0, isEarlier ? 5 : undefined);
  for (const { sql } of askedIn(DUCKDB)) answers.push({ rows: await own(services, sql, snapshot) });
  // All are asked before one fails: what one cannot answer the others may.
  const wrong = await Promise.all(
    readers.map(async ({ name, dialect, ask }) => {
      const differences: string[] = [];
      for (const [i, question] of askedIn(dialect).entries()) {
        const said = await ask({ ...question, ...(isEarlier && { snapshot }) });
        if (!isDeepStrictEqual(said, answers[i])) {
          const [its, ours] = [said, answers[i]].map((answer) => JSON.stringify(answer).slice(0, 300));
          differences.push(`${name}: ${question.sql}: ${its}, not ${ours}`);
        }
      }
      return differences;
    }),
  );
  expect(wrong.flat().join("\n")).toBe("");
}
