import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, query, type ErrorBody } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

const NDJSON = "application/x-ndjson; charset=utf-8";
const ARROW = "application/vnd.apache.arrow.stream";
const CSV = "text/csv; charset=utf-8; header=present";
const PARQUET = "application/vnd.apache.parquet";
const JSON_TYPE = "application/json; charset=utf-8";

/** The answer to `SELECT 1 AS a, 'x' AS b`, as far as it can be told without a reader of the format. */
const READ: Record<string, (bytes: Buffer) => unknown> = {
  [NDJSON]: (bytes) => bytes.toString(),
  [CSV]: (bytes) => bytes.toString(),
  [JSON_TYPE]: (bytes) => bytes.toString(),
  [ARROW]: (bytes) => tableFromIPC(bytes).toArray().map(String),
  [PARQUET]: (bytes) => [bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()],
};
const WANT: Record<string, unknown> = {
  [NDJSON]: '{"a":1,"b":"x"}\n',
  [CSV]: "a,b\n1,x\n",
  [JSON_TYPE]: '[{"a":1,"b":"x"}]\n',
  [ARROW]: ['{"a": 1, "b": "x"}'],
  [PARQUET]: ["PAR1", "PAR1"],
};

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  const env = {
    ENGINE_QUERY_WALL_MS: "20000",
    ENGINE_QUERY_MEMORY_BYTES: String(512 * 2 ** 20),
    ENGINE_QUERY_MAX_CONCURRENT_PER_TENANT: "2",
    ENGINE_QUERY_RETRY_AFTER_SECS: "4",
  };
  engine = await startEngine({ home, env });
  await ingest(engine.url, "t", '{"at":"2024-01-01T00:00:00.123456789Z","label":"a","props":{"n":[1]}}');
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

const post = (text: string, headers: Record<string, string>): Promise<Response> =>
  fetch(`${engine.url}/v1/query`, { method: "POST", headers, body: text });

describe("Accept", () => {
  test.each([
    [undefined, NDJSON],
    ["*/*", NDJSON],
    ["application/*", NDJSON],
    ["application/json, text/plain, */*", JSON_TYPE],
    ["application/json", JSON_TYPE],
    ["application/x-ndjson, application/json", NDJSON],
    ["application/x-ndjson", NDJSON],
    ["text/csv", CSV],
    ["text/*", CSV],
    ["Text/CSV; charset=utf-8", CSV],
    ["text/csv, */*", CSV],
    ["*/*, text/csv;q=0.5", NDJSON],
    ["text/csv;q=0.5, application/vnd.apache.parquet;q=0.9", PARQUET],
    ["application/x-ndjson;q=0, application/*", ARROW],
    ["application/vnd.apache.arrow.stream", ARROW],
    ["text/html, application/vnd.apache.arrow.stream;q=0.1", ARROW],
    ["application/vnd.apache.parquet", PARQUET],
  ])("%s is answered with %s", async (accept, type) => {
    const response = await post("SELECT 1 AS a, 'x' AS b", accept === undefined ? { Accept: "" } : { Accept: accept });
    const bytes = Buffer.from(await response.arrayBuffer());
    const { status, headers } = response;
    expect([status, headers.get("content-type"), headers.get("x-engine-rows")]).toEqual([200, type, "1"]);
    expect(READ[type]?.(bytes)).toEqual(WANT[type]);
  });

  test.each(["text/html", "image/*", "application/x-ndjson;q=0", "application/xml", "text/csv;q=0, text/html"])(
    "%s is 406, in JSON",
    async (accept) => {
      const response = await post("SELECT 1", { Accept: accept });
      expect(response.status).toBe(406);
      const { error } = (await response.json()) as ErrorBody;
      expect(error.code).toBe("not_acceptable");
      for (const type of ["x-ndjson", "arrow", "csv", "parquet"]) expect(error.message).toContain(type);
    },
  );

  test("an error is JSON whatever was asked for", async () => {
    const response = await post("SELEC", { Accept: "text/csv" });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.json()).toMatchObject({ error: { code: "parse_error" } });
  });

  test("stored rows: timestamps keep their nanoseconds, dynamic is JSON text", async () => {
    const csv = await (await post("SELECT at, label, props FROM t", { Accept: "text/csv" })).text();
    expect(csv).toBe('at,label,props\n2024-01-01T00:00:00.123456789Z,a,"{""n"":[1]}"\n');
    const arrow = await (await post("SELECT at, label, props FROM t", { Accept: ARROW })).arrayBuffer();
    const table = tableFromIPC(new Uint8Array(arrow));
    expect(table.schema.fields.map(({ type }) => String(type))).toEqual(["Timestamp<NANOSECOND, UTC>", "Utf8", "Utf8"]);
    expect(table.getChild("at")?.data[0]?.values[0]).toBe(1_704_067_200_123_456_789n);
  });
});

describe("budget headers", () => {
  const HEADERS = [
    ["X-Engine-Max-Wall-Clock-Ms", 10],
    ["X-Engine-Max-Memory-Bytes", 1_048_576],
    ["X-Engine-Max-Object-Store-Bytes", 0],
  ] as const;

  test.each(HEADERS)("%s: what is no integer from %i is 400 and says so", async (name, minimum) => {
    for (const value of [String(minimum - 1), "1.5", "1e6", "ten", "0x10", "10ms", "-5", "+20"]) {
      const answer = await query(engine.url, "SELECT 1", { [name]: value });
      expect([value, answer.status, answer.json.error.code]).toEqual([value, 400, "invalid_header"]);
      expect(answer.json.error.message).toContain(name);
      expect(answer.json.error.message).toContain(String(minimum));
    }
  });

  test.each(HEADERS)("%s: more than the server's is the server's", async (name, minimum) => {
    for (const value of [String(Math.max(minimum, 10_000)), "9007199254740993", "9".repeat(40)]) {
      const least = name === "X-Engine-Max-Memory-Bytes" && value === "1048576" ? minimum : value;
      const answer = await query(engine.url, "SELECT 1 AS a", { [name]: String(least) });
      expect([value, answer.status, answer.rows]).toEqual([value, 200, [{ a: 1 }]]);
    }
  });

  test("wall clock: 429 names the budget in header and body", async () => {
    const text = "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range % 7 = 3";
    const answer = await query(engine.url, text, { "X-Engine-Max-Wall-Clock-Ms": "200" });
    expect([answer.status, answer.headers.get("x-engine-budget-limit")]).toEqual([429, "wall_clock_ms=200"]);
    expect(answer.json.error).toMatchObject({
      code: "budget_exceeded",
      budget: { name: "wall_clock_ms", allowed: 200 },
    });
    expect(answer.json.error.message).toMatch(/took 2\d\d ms of its wall-clock budget of 200 ms/);
  });

  test("memory: a lowered one holds, the server's own holds above it", async () => {
    const hungry = "SELECT len(list(r || repeat('y', 100))) AS n FROM range(400_000) t(r)";
    const lowered = await query(engine.url, hungry, { "X-Engine-Max-Memory-Bytes": "20000000" });
    expect([lowered.status, lowered.headers.get("x-engine-budget-limit")]).toEqual([429, "memory_bytes=20000000"]);
    expect(lowered.json.error).toMatchObject({ budget: { name: "memory_bytes", allowed: 20_000_000 } });
    const bomb = "SELECT len(list(r || repeat('y', 1000))) FROM range(1_000_000) t(r)";
    const own = await query(engine.url, bomb, { "X-Engine-Max-Memory-Bytes": "999999999999" });
    expect([own.status, own.headers.get("x-engine-budget-limit")]).toEqual([429, `memory_bytes=${512 * 2 ** 20}`]);
  });
});

test("queries of one database past the limit are refused, those of others are not", async () => {
  await ingest(engine.url, "t", '{"label":"b"}', { "X-Database": "other" });
  const slow = "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range % 7 = 3";
  const client = new AbortController();
  const running = [1, 2].map(async () =>
    fetch(`${engine.url}/v1/query`, { method: "POST", body: slow, signal: client.signal }).catch(() => undefined),
  );
  let refused = await query(engine.url, "SELECT 1");
  for (let i = 0; i < 100 && refused.status !== 429; i++) refused = await query(engine.url, "SELECT 1");
  expect([refused.status, refused.json.error.code]).toEqual([429, "too_many_requests"]);
  expect(refused.headers.get("retry-after")).toBe("4");
  expect((await query(engine.url, "SELECT 1 AS a", { "X-Database": "other" })).rows).toEqual([{ a: 1 }]);
  client.abort();
  await Promise.all(running);
  const leftMs = performance.now();
  let again = await query(engine.url, "SELECT 1");
  while (again.status === 429 && performance.now() - leftMs < 5_000) again = await query(engine.url, "SELECT 1");
  expect(again.status).toBe(200);
  const metrics = await (await fetch(`${engine.url}/metrics`)).text();
  expect(metrics).toMatch(/^engine_query_refused_total\{reason="tenant"\} [1-9]/m);
  expect(metrics).toMatch(/^engine_query_budget_kills_total\{budget="memory_bytes"\} 2$/m);
});

test("the start says what queries may take", () => {
  expect(engine.log()).toMatch(/"memoryBytes":536870912,.*"processes":\d+.*"memory of queries"/);
});
