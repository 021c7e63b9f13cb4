import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

const MIB = 1024 * 1024;

let engine: Engine;
let removeHome: () => Promise<void>;

async function start(env: Record<string, string>): Promise<void> {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env });
}

async function stop(): Promise<void> {
  await engine.stop();
  await removeHome();
}

/** Value of a metric's line without labels, or with those given. */
async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${engine.url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? Number.NaN);
}

describe("the rate of a database", () => {
  beforeAll(() => start({ ENGINE_INGEST_RATE_RPS: "1", ENGINE_INGEST_RATE_BURST: "3" }));
  afterAll(stop);

  test("past it requests, replays among them, get 429 with Retry-After; other databases do not", async () => {
    const statuses: number[] = [];
    const headers = { "X-Idempotency-Key": "same" };
    for (let i = 0; i < 4; i++) {
      const answer = await ingest(engine.url, "t", '{"body":"x"}', headers);
      statuses.push(answer.status);
      if (answer.status !== 429) continue;
      expect(answer.json.error.code).toBe("too_many_requests");
      expect(Number(answer.headers.get("retry-after"))).toBe(1);
    }
    // A second may have passed on a slow machine, and brought one more token.
    expect(statuses.slice(0, 3)).toEqual([200, 200, 200]);
    const more = await Promise.all(Array.from({ length: 5 }, () => ingest(engine.url, "t", "{}", headers)));
    expect(more.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(3);
    expect((await ingest(engine.url, "t", "{}", { "X-Database": "other" })).status).toBe(200);
    expect((await ingest(engine.url, "t", "{}", { "X-Database": "DEFAULT" })).status).toBe(429);
    expect(await rowsOf(engine.url, "SELECT count(*) AS n FROM t")).toEqual([{ n: 1 }]);
    expect(await metric('engine_ingest_refused_total{reason="rate"}')).toBeGreaterThanOrEqual(4);
  });
});

async function answered(response: Promise<Response>) {
  const { status, headers, text } = await response.then(async (one) => ({
    status: one.status,
    headers: one.headers,
    text: await one.text(),
  }));
  const rows = status === 200 ? (JSON.parse(text) as { rows_ingested: number }).rows_ingested : 0;
  return { status, retryAfter: headers.get("retry-after"), rows };
}

describe("more bytes than may be in flight", () => {
  beforeAll(() => start({ ENGINE_INGEST_MAX_INFLIGHT_BYTES: String(64 * MIB) }));
  afterAll(stop);

  const ROWS = 100;
  const filler = "x".repeat(40_000);
  const rowOf = (client: number, row: number) => `{"body":"${client} ${row} ${filler}"}\n`;
  const bodyOf = (client: number) => Buffer.from(Array.from({ length: ROWS }, (_, row) => rowOf(client, row)).join(""));

  /** The same body announced, compressed, or in chunks of unknown number. */
  function send(client: number): Promise<{ status: number; retryAfter: string | null; rows: number }> {
    const bytes = bodyOf(client);
    const headers: Record<string, string> = {
      "Content-Type": "application/x-ndjson",
      "X-Table": "t",
      "X-Database": client % 5 === 0 ? "other" : "default",
    };
    const form = client % 3;
    if (form === 1) headers["Content-Encoding"] = "gzip";
    const body = form === 0 ? bytes : form === 1 ? gzipSync(bytes, { level: 1 }) : new Blob([bytes]).stream();
    return answered(fetch(`${engine.url}/v1/ingest`, { method: "POST", headers, body, duplex: "half" }));
  }

  test("some are refused with Retry-After, the others acknowledged and stored, and nothing stays reserved", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, client) => send(client)));
    const refused = answers.filter(({ status }) => status === 429);
    const stored = answers.filter(({ status }) => status === 200);
    expect(refused.length + stored.length).toBe(answers.length);
    expect(refused.length).toBeGreaterThan(0);
    expect(stored.length).toBeGreaterThan(0);
    expect(refused.map(({ retryAfter }) => retryAfter)).toEqual(refused.map(() => "1"));
    let found = 0;
    for (const database of ["default", "other"]) {
      const [row] = await rowsOf(engine.url, "SELECT count(*) AS n, count(DISTINCT body) AS d FROM t", database);
      expect(row?.["d"]).toBe(row?.["n"]);
      found += Number(row?.["n"]);
    }
    expect(found).toBe(stored.length * ROWS);
    expect(await metric("engine_ingest_queued_bytes")).toBe(0);
    expect(await metric("engine_ingest_queued_requests")).toBe(0);
    // And afterwards there is room again, for the largest body too.
    const largest = Buffer.alloc(64 * MIB, `{"body":"${"y".repeat(2 ** 16 - 12)}"}\n`);
    expect((await ingest(engine.url, "largest", largest)).status).toBe(200);
  });
});
