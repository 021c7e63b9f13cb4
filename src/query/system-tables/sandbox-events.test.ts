import { afterAll, beforeAll, expect, it } from "vitest";
import { ANONYMOUS, type Caller } from "../../auth/caller.ts";
import type { CatalogDatabase } from "../../catalog/catalog-database.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let catalog: CatalogDatabase;
let harness: QueryHarness;
beforeAll(async () => {
  catalog = openMemoryCatalog(systemClock).catalog;
  await addEvents("t", "sandbox-a", 3_500);
  await addEvents("other", "sandbox-b", 3);
  harness = createQueryHarness({ service: { records: catalog.records } });
  await harness.addTable("default", "logs", [{ name: "at", type: { kind: "timestamp" } }], []);
});
afterAll(async () => {
  await harness.close();
  await catalog.close();
});

/** Many at the same time, which pages must not part. */
async function addEvents(tenant: string, sandboxId: string, count: number): Promise<void> {
  const data = JSON.stringify({ line: 'a "b", c\nd', stream: "stdout" });
  const statements = Array.from({ length: count }, (_, i) => ({
    sql: "INSERT INTO sandbox_events (sandbox_id, seq, tenant, at_ms, event_type, data) VALUES (?, ?, ?, ?, 'log_line', ?)",
    values: [sandboxId, i + 1, tenant, 1_700_000_000_000 + Math.floor(i / 1_500), data],
  }));
  await catalog.records.transact(statements);
}

async function rows(sql: string, caller: Partial<Caller> & Pick<Caller, "subject" | "role">): Promise<unknown[]> {
  const { signal } = new AbortController();
  const request = {
    caller: { kind: "session" as const, databases: undefined, ...caller },
    database: "default",
    text: sql,
    requestId: "test",
    signal,
  };
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await harness.service.run(request)).body) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8").trimEnd();
  return text === "" ? [] : text.split("\n").map((line) => JSON.parse(line) as unknown);
}

it("events of sandboxes are rows, each once, for whose they are and for admins", async () => {
  const COUNT =
    "SELECT tenant, count(*) AS n, count(DISTINCT seq) AS seqs, max(seq) AS newest FROM system.sandbox_events " +
    "GROUP BY tenant ORDER BY tenant";
  const [theirs, mine] = [
    { tenant: "other", n: 3, seqs: 3, newest: 3 },
    { tenant: "t", n: 3_500, seqs: 3_500, newest: 3_500 },
  ];
  expect(await rows(COUNT, ANONYMOUS)).toEqual([theirs, mine]);
  expect(await rows(COUNT, { subject: "t", role: "write" })).toEqual([mine]);
  expect(await rows(COUNT, { subject: "other", role: "read" })).toEqual([theirs]);
  expect(await rows(COUNT, { subject: "nobody", role: "write" })).toEqual([]);
  // What belongs to no database is not for an admin of some.
  expect(await rows(COUNT, { subject: "t", role: "admin", databases: ["default"] })).toEqual([mine]);
  // A name is not the owner: authentication is off for this one.
  expect(await rows(COUNT, { subject: "t", kind: "anonymous", role: "write" })).toEqual([]);
});

it("their columns have their types", async () => {
  const sql =
    "SELECT at, sandbox_id, seq, event_type, session_id, data->>'line' AS line FROM system.sandbox_events " +
    "WHERE at < '2030-01-01' ORDER BY seq LIMIT 1";
  expect(await rows(sql, { subject: "other", role: "read" })).toEqual([
    {
      at: "2023-11-14T22:13:20Z",
      sandbox_id: "sandbox-b",
      seq: 1,
      event_type: "log_line",
      session_id: null,
      line: 'a "b", c\nd',
    },
  ]);
});
