import { status as STATUS, type ClientReadableStream, type ServiceError } from "@grpc/grpc-js";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { failureOfCall, messagesOf, rawClient, type RawClient } from "../../src/io/grpc/grpc-client.test-kit.ts";
import {
  FlightDataSchema,
  joinFlightData,
  type FlightDataFields,
} from "../../src/query/flight/flight-proto.test-kit.ts";
import { ingest, ndjson, query } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { DO_GET, findPyarrow, flightAddress, pyClient, ticketMessage, type PyClient } from "./flight.test-kit.ts";

/** Arrow Flight on its own port, which asks nobody for a token here, while HTTP does. */
const ADMIN = "admin-token-of-the-test";
const AUTHORIZATION = { Authorization: `Bearer ${ADMIN}` };
const { python, isThere } = findPyarrow();

/** Runs until somebody ends it. */
const ENDLESS = "SELECT count(*) AS n FROM range(100000000000) AS r(i) WHERE i % 7 = 3";
/** Some 40 MiB. */
const LARGE = "SELECT i, repeat('x', 400) AS text FROM range(100000) AS r(i)";

let engine: Engine;
let client: RawClient;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  const env = {
    ENGINE_AUTH_TOKENS: `${ADMIN}:admin`,
    ENGINE_SANDBOX_RUNTIME: "off",
    ENGINE_GRPC_ADDR: "127.0.0.1:0",
    ENGINE_QUERY_WORKERS: "1",
  };
  engine = await startEngine({ home, env });
  client = rawClient(flightAddress(engine));
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    at: `2026-01-01T00:00:${n % 60}.5Z`,
    label: `l${n}`,
    body: "ü",
  }));
  for (const database of ["default", "other"]) {
    const stored = await ingest(engine.url, "events", ndjson(rows), { ...AUTHORIZATION, "X-Database": database });
    if (stored.status !== 200) throw new Error(stored.text);
  }
}, 120_000);

afterAll(async () => {
  client.close();
  await engine.stop();
  await removeHome();
});

const get = (ticket: unknown, options: Parameters<RawClient["stream"]>[2] = {}): ClientReadableStream<Buffer> =>
  client.stream(DO_GET, ticketMessage(ticket), options);

const failure = (ticket: unknown, options: Parameters<RawClient["stream"]>[2] = {}): Promise<ServiceError> =>
  failureOfCall(messagesOf(get(ticket, options)));

async function outcomes(text: string): Promise<unknown[]> {
  const sql = `SELECT outcome FROM system.queries WHERE text = '${text.replaceAll("'", "''")}'`;
  return (await query(engine.url, sql, AUTHORIZATION)).rows.map(({ outcome }) => outcome);
}

describe.skipIf(!isThere)("pyarrow", () => {
  let py: PyClient;
  beforeAll(() => {
    py = pyClient(python, flightAddress(engine));
  });
  afterAll(() => py.close());

  test("gets rows with their types, and their number before them", async () => {
    const sql = "SELECT at, label, body, 1 AS n, {'a': [1, 2]} AS s FROM events ORDER BY label LIMIT 2";
    const answer = await py.ask({ ticket: { database: "default", query: sql, language: "sql" } });
    expect(answer).toMatchObject({
      rows: 2,
      schema: {
        at: "timestamp[ns, tz=UTC]",
        label: "string",
        body: "string",
        n: "int32",
        s: expect.stringMatching(/^struct<a: list<item: int32>/) as string,
      },
      metadata: { "x-engine-rows": "2" },
    });
    expect(answer.first?.[0]).toMatchObject({ label: "l0", body: "ü", n: 1, s: { a: [1, 2] } });
  });

  test("gets an answer without rows, and one of many batches of at most 2 MiB", async () => {
    expect(await py.ask({ ticket: { query: "SELECT 1 AS a WHERE false" } })).toMatchObject({
      rows: 0,
      schema: { a: "int32" },
    });
    const large = await py.ask({ ticket: { query: LARGE } });
    expect(large).toMatchObject({ rows: 100_000 });
    expect(large.largest).toBeGreaterThan(1024 * 1024);
    expect(large.largest).toBeLessThanOrEqual(2 * 1024 * 1024 + 1_000);
  });

  test("sees why a query is refused", async () => {
    const asked: [ticket: unknown, error: string, message: RegExp][] = [
      [{ query: "SELEC 1" }, "ArrowInvalid", /syntax error/],
      [{ query: "SELECT nothing FROM events" }, "ArrowInvalid", /nothing/],
      [{ query: "SELECT CAST(label AS INTEGER) FROM events" }, "ArrowInvalid", /l\d+/],
      [{ query: "DELETE FROM events" }, "ArrowInvalid", /./],
      [{ query: "SELECT * FROM event" }, "ArrowKeyError", /did you mean "events"/],
      [{ query: "SELECT 1", database: "nowhere" }, "ArrowKeyError", /no database "nowhere"/],
      [{ query: "SELECT 1", language: "gql" }, "ArrowInvalid", /no query language "gql"/],
      [{ query: "SELECT 1", more: 1 }, "ArrowInvalid", /no member "more"/],
      ["SELECT 1", "ArrowInvalid", /not JSON/],
    ];
    for (const [ticket, error, message] of asked) {
      expect(await py.ask({ ticket })).toEqual({ error, message: expect.stringMatching(message) as string });
    }
  });

  test.each([
    "list_flights",
    "get_flight_info",
    "get_schema",
    "do_action",
    "list_actions",
    "do_put",
    "do_exchange",
    "handshake",
  ])("is told that %s is not implemented", async (call) => {
    expect(await py.ask({ call })).toMatchObject({ error: "ArrowNotImplementedError" });
  });

  test("cancels in the middle of an answer, and by a timeout", async () => {
    expect(await py.ask({ ticket: { query: LARGE }, batches: 2 })).toMatchObject({
      rows: expect.any(Number) as number,
    });
    const timedOut = `${ENDLESS} AND 'pyarrow' <> ''`;
    expect(await py.ask({ ticket: { query: timedOut }, timeout: 0.5 })).toMatchObject({ error: "FlightTimedOutError" });
    await eventually(async () => (await outcomes(timedOut))[0] === "cancelled");
    expect(await py.ask({ ticket: { query: "SELECT 1 AS one" } })).toMatchObject({ first: [{ one: 1 }] });
  });
});

test("the answer is that of HTTP, message by message", async () => {
  const sql = "SELECT * FROM events ORDER BY label";
  const accept = { Accept: "application/vnd.apache.arrow.stream", ...AUTHORIZATION };
  const overHttp = await fetch(`${engine.url}/v1/query`, { method: "POST", headers: accept, body: sql });
  const messages = (await messagesOf(get({ query: sql }))).map((message) => fromBinary(FlightDataSchema, message));
  const joined = joinFlightData(messages as unknown as FlightDataFields[]);
  expect(joined.equals(Buffer.from(await overHttp.arrayBuffer()))).toBe(true);
});

describe("statuses", () => {
  test("of a budget and of what is too much", async () => {
    const slow = await failure({ query: ENDLESS }, { metadata: { "x-engine-max-wall-clock-ms": "300" } });
    expect(slow.code).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(slow.metadata.get("x-engine-budget-limit")).toEqual(["wall_clock_ms=300"]);
    const memory = await failure(
      { query: "SELECT len(range(100000000))" },
      { metadata: { "x-engine-max-memory-bytes": "2000000" } },
    );
    expect(memory.code).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(memory.metadata.get("x-engine-budget-limit")).toEqual(["memory_bytes=2000000"]);
    for (const value of ["0", "-1", "1e9", "ten", ""]) {
      const bad = await failure({ query: "SELECT 1" }, { metadata: { "x-engine-max-wall-clock-ms": value } });
      expect([bad.code, bad.details]).toEqual([
        STATUS.INVALID_ARGUMENT,
        expect.stringMatching(/x-engine-max-wall-clock-ms/),
      ]);
    }
  });

  test("have the public code and the id of the request", async () => {
    const failed = await failure({ query: "SELECT * FROM nothing" }, { metadata: { "x-request-id": "my-own-id" } });
    expect(failed.metadata.get("x-engine-error-code")).toEqual(["table_not_found"]);
    expect(failed.metadata.get("x-request-id")).toEqual(["my-own-id"]);
  });
});

describe("whoever is not asked for a token", () => {
  test("reads tables of every database, and their names", async () => {
    for (const sql of ["SELECT * FROM other.events", "SHOW TABLES", "SELECT * FROM information_schema.columns"]) {
      expect([sql, (await messagesOf(get({ query: sql }))).length]).toEqual([sql, 2]);
    }
  });

  test.each(["queries", "tables", "snapshots", "extents", "staged", "sandbox_events"])(
    "does not read system.%s",
    async (table) => {
      for (const sql of [
        `SELECT * FROM system.${table}`,
        `WITH t AS (SELECT * FROM "SYSTEM".${table}) SELECT count(*) FROM events, t`,
        `SELECT (SELECT count(*) FROM system.${table})`,
        `DESCRIBE system.${table}`,
      ]) {
        expect([sql, (await failure({ query: sql })).code]).toEqual([sql, STATUS.PERMISSION_DENIED]);
      }
      const token = { metadata: { authorization: `Bearer ${ADMIN}` } };
      expect((await failure({ query: `SELECT * FROM system.${table}` }, token)).code).toBe(STATUS.PERMISSION_DENIED);
    },
  );
});

describe("a reader", () => {
  test("that cancels ends its query, and so does its deadline", async () => {
    const [cancelled, late] = [`${ENDLESS} AND 1 = 1`, `${ENDLESS} AND 2 = 2`];
    const stream = get({ query: cancelled });
    stream.on("error", () => {});
    await eventually(async () => (await outcomes(cancelled))[0] === "running");
    stream.cancel();
    await eventually(async () => (await outcomes(cancelled))[0] === "cancelled");
    expect((await failure({ query: late }, { deadlineMs: 700 })).code).toBe(STATUS.DEADLINE_EXCEEDED);
    await eventually(async () => (await outcomes(late))[0] === "cancelled");
  });

  test("that is slow holds no query process, and gets all of its answer", async () => {
    // The server keeps one process.
    const slow = [get({ query: `${LARGE} ORDER BY 1` }), get({ query: `${LARGE} ORDER BY 1 DESC` })];
    await Promise.all(slow.map((stream) => new Promise((resolve) => stream.once("metadata", resolve))));
    await messagesOf(get({ query: "SELECT count(*) FROM events" }, { deadlineMs: 20_000 }));
    const rest = await Promise.all(slow.map((stream) => messagesOf(stream)));
    const bytes = rest.map((messages) => messages.reduce((sum, { byteLength }) => sum + byteLength, 0));
    expect(Math.min(...bytes)).toBeGreaterThan(40_000_000);
  });

  test("that takes 4 MiB at most is never sent more, however wide the rows are", async () => {
    const wide = "SELECT repeat('w', 1 + (i * 7919) % 60000) AS w, [i, i] AS l FROM range(3000) AS r(i)";
    const messages = await messagesOf(get({ query: wide }));
    expect(Math.max(...messages.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(2 * 1024 * 1024 + 10_000);
  });
});

describe("requests that are none", () => {
  test("are refused one by one", async () => {
    const hostile = [
      "{}",
      "[]",
      '{"query":1}',
      '{"query":"SELECT 1","database":"\\ud800"}',
      "\0",
      '{"query":"\\u0000"}',
    ];
    for (const ticket of hostile) {
      expect([ticket, [STATUS.INVALID_ARGUMENT, STATUS.NOT_FOUND].includes((await failure(ticket)).code)]).toEqual([
        ticket,
        true,
      ]);
    }
    for (const bytes of [[0x0a, 0xff], [0xff, 0xff, 0xff], [0x0b]]) {
      const failed = await failureOfCall(messagesOf(client.stream(DO_GET, Buffer.from(bytes))));
      expect(failed.code).toBe(STATUS.INVALID_ARGUMENT);
    }
    const long = await failure({ query: `SELECT '${"x".repeat(5 * 1024 * 1024)}'` });
    expect(long.code).toBe(STATUS.RESOURCE_EXHAUSTED);
    await messagesOf(get({ query: "SELECT 1" }));
  });
});

describe("a server that ends", () => {
  const started: Engine[] = [];
  const removals: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const one of started.splice(0)) await one.stop("SIGKILL");
    for (const remove of removals.splice(0)) await remove();
  });

  async function another(): Promise<{ engine: Engine; client: RawClient }> {
    const { home, remove } = await temporaryHome();
    removals.push(remove);
    const env = { ENGINE_SANDBOX_RUNTIME: "off", ENGINE_GRPC_ADDR: "127.0.0.1:0" };
    const other = await startEngine({ home, env });
    started.push(other);
    expect((await ingest(other.url, "events", '{"body":"x"}')).status).toBe(200);
    return { engine: other, client: rawClient(flightAddress(other)) };
  }

  test("by kill -9 leaves its clients with an error, and no answer that looks whole", async () => {
    const { engine: killed, client: left } = await another();
    const stream = left.stream(DO_GET, ticketMessage({ query: LARGE }));
    const failed = failureOfCall(
      (async () => {
        for await (const _ of stream as AsyncIterable<Buffer>) await killed.stop("SIGKILL");
      })(),
    );
    expect((await failed).code).toBe(STATUS.UNAVAILABLE);
    left.close();
  });

  test("by SIGTERM finishes answers first, and takes no new calls", async () => {
    const { engine: drained, client: last } = await another();
    const stream = last.stream(DO_GET, ticketMessage({ query: LARGE }));
    await new Promise((resolve) => stream.once("metadata", resolve));
    const ended = drained.stop("SIGTERM");
    await eventually(() => drained.log().includes('"msg":"draining"'));
    const messages = await messagesOf(stream);
    expect(messages.reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeGreaterThan(40_000_000);
    expect(await ended).toEqual({ code: 0, signal: null });
    const refused = await failureOfCall(messagesOf(last.stream(DO_GET, ticketMessage({ query: "SELECT 1" }))));
    expect(refused.code).toBe(STATUS.UNAVAILABLE);
    last.close();
  });
});
