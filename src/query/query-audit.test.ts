import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AuditEvent } from "../auth/audit.ts";
import type { Caller } from "../auth/caller.ts";
import { systemClock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { QueryAudit } from "./query-audit.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";

let harness: QueryHarness;
let events: AuditEvent[] = [];
const record = (event: AuditEvent): Promise<void> => {
  events.push(event);
  return Promise.resolve();
};
const eve: Caller = { subject: "eve", kind: "api_token", role: "read", databases: ["default"] };

beforeAll(async () => {
  const audit = new QueryAudit({ audit: { record }, clock: systemClock, log: silentLog });
  harness = createQueryHarness({ service: { audit } });
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
  ] as const;
  const extents = [{ format: "tlm", columns, rows: [{ at: 1n, label: "x" }] }] as const;
  await harness.addTable("default", "logs", columns, extents);
  await harness.addTable("other", "secret", columns, extents);
});
beforeEach(() => (events = []));
afterAll(() => harness.close());

async function run(text: string, database = "default", wallMs?: number): Promise<void> {
  const { signal } = new AbortController();
  const request = { caller: eve, address: "192.0.2.1", database, text, requestId: "r1", signal };
  const { body } = await harness.service.run({ ...request, budget: { wallMs } });
  for await (const _bytes of body);
}

test.each([
  ["a function that reads files", "SELECT * FROM read_text('/etc/passwd')", "default"],
  ["a table of another database", "FROM other.secret", "default"],
  ["a path for a table", "FROM '../other/**/*.tlm'", "default"],
  ["a sub-query in AT", "FROM logs AT (VERSION => (SELECT 1))", "default"],
  ["a statement that is no query", "COPY logs TO '/tmp/x'", "default"],
  ["another database", "SELECT 1", "other"],
])("%s is written down, with the hash of the text", async (_what, text, database) => {
  await expect(run(text, database)).rejects.toBeInstanceOf(EngineError);
  expect(events).toMatchObject([
    {
      origin: { caller: { subject: "eve", kind: "api_token" }, address: "192.0.2.1", requestId: "r1" },
      action: "query.refuse",
      target: database,
      outcome: "refused",
      details: { text_sha256: createHash("sha256").update(text).digest("hex") },
    },
  ]);
});

test("a breach of a budget is written down, with its name", async () => {
  await expect(run("SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b", "default", 100)).rejects.toThrow(
    "wall",
  );
  expect(events).toMatchObject([{ action: "query.budget", details: { reason: "wall_clock_ms" } }]);
});

test("a query that its client gave up is written down as cancelled", async () => {
  const client = new AbortController();
  const request = { caller: eve, address: "", database: "default", requestId: "r1", signal: client.signal };
  const text = "SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b";
  const answer = harness.service.run({ ...request, text });
  setTimeout(() => client.abort(), 100);
  await expect(answer).rejects.toMatchObject({ code: "cancelled", status: 499 });
  expect(events).toMatchObject([{ action: "query.cancel", outcome: "cancelled", target: "default" }]);
});

test.each(["SELECT lable FROM logs", "SELECT FROM WHERE", "FROM lgos", "SELECT 'x'::INTEGER"])(
  "a slip is not: %s",
  async (text) => {
    await expect(run(text)).rejects.toBeInstanceOf(EngineError);
    expect(events).toEqual([]);
  },
);

test("a flood of refusals fills the log up to a bound, and nobody else's place in it", () => {
  const audit = new QueryAudit({ audit: { record }, clock: systemClock, log: silentLog });
  const { signal } = new AbortController();
  const error = new EngineError("invalid_query", "no", { refused: true });
  const refusal = (subject: string): void =>
    audit.failed({ caller: { ...eve, subject }, database: "default", text: "x", requestId: "r", signal }, error);
  for (let i = 0; i < 1_000; i++) refusal("eve");
  expect(events.length).toBeGreaterThanOrEqual(60);
  expect(events.length).toBeLessThan(70);
  events = [];
  refusal("ann");
  expect(events).toHaveLength(1);
});
