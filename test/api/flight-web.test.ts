import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import {
  flightService,
  joinFlightData,
  TicketSchema,
  type FlightDataFields,
} from "../../src/query/flight/flight-proto.test-kit.ts";
import { ingest, query } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ticketMessage } from "./flight.test-kit.ts";

/** Arrow Flight as gRPC-web on the HTTP port, by connect's client, and over an edge. */
const ADMIN = "admin-token-of-the-test";
const READER = "reader-token-of-the-test";
const AUTHORIZATION = { Authorization: `Bearer ${ADMIN}` };
const PATH = "/flight/arrow.flight.protocol.FlightService/DoGet";
const ENDLESS = "SELECT count(*) AS n FROM range(100000000000) AS r(i) WHERE i % 7 = 3";
const LARGE = "SELECT i, repeat('x', 400) AS text FROM range(60000) AS r(i)";

let engine: Engine;
let edge: Engine;
const removals: (() => Promise<void>)[] = [];

async function start(env: Record<string, string>): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  removals.push(remove);
  return startEngine({ home, env: { ENGINE_SANDBOX_RUNTIME: "off", ...env } });
}

beforeAll(async () => {
  engine = await start({ ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${READER}:read` });
  edge = await start({ ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: engine.url, ENGINE_INGEST_PEERS: engine.url });
  for (const database of ["default", "other"]) {
    const headers = { ...AUTHORIZATION, "X-Database": database };
    const stored = await ingest(engine.url, "events", '{"label":"a"}\n{"label":"b"}\n', headers);
    if (stored.status !== 200) throw new Error(stored.text);
  }
}, 120_000);

afterAll(async () => {
  await edge.stop();
  await engine.stop();
  for (const remove of removals) await remove();
});

type Options = { token?: string; headers?: Record<string, string>; signal?: AbortSignal; timeoutMs?: number };
type Got = { messages: FlightDataFields[]; header: Headers };

/** Methods by their names, as the service without generated code has them. */
type Loose = Client<ReturnType<typeof flightService>> & {
  doGet(request: unknown, options: object): AsyncIterable<FlightDataFields>;
  listFlights(request: unknown, options: object): AsyncIterable<FlightDataFields>;
  getSchema(request: unknown, options: object): Promise<FlightDataFields>;
};

function clientOf(url: string): Loose {
  const transport = createGrpcWebTransport({ baseUrl: `${url}/flight`, httpVersion: "1.1" });
  return createClient(flightService(), transport) as Loose;
}

async function get(url: string, ticket: unknown, options: Options = {}): Promise<Got> {
  const { token = READER, headers, ...rest } = options;
  let header = new Headers();
  const text = typeof ticket === "string" ? ticket : JSON.stringify(ticket);
  const stream = clientOf(url).doGet(create(TicketSchema, { ticket: Buffer.from(text) }), {
    ...rest,
    headers: { authorization: `Bearer ${token}`, ...headers },
    onHeader: (got: Headers) => (header = got),
  });
  const messages: FlightDataFields[] = [];
  for await (const message of stream) messages.push(message);
  return { messages, header };
}

async function failure(url: string, ticket: unknown, options: Options = {}): Promise<ConnectError> {
  try {
    await get(url, ticket, options);
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error("the call succeeded");
}

async function outcomes(text: string): Promise<unknown[]> {
  const sql = `SELECT outcome FROM system.queries WHERE text = '${text}'`;
  return (await query(engine.url, sql, AUTHORIZATION)).rows.map(({ outcome }) => outcome);
}

describe.each([
  ["the server", () => engine.url],
  ["an edge", () => edge.url],
])("a client of %s", (_, url) => {
  test("gets rows, and their number before them", async () => {
    const { messages, header } = await get(url(), { query: "SELECT label FROM events ORDER BY label" });
    expect(header.get("x-engine-rows")).toBe("2");
    const table = tableFromIPC(joinFlightData(messages));
    expect(table.toArray().map((row) => (row as { label: string }).label)).toEqual(["a", "b"]);
  });

  test("gets rows of a query in KQL, and how they are to be drawn", async () => {
    const { messages, header } = await get(url(), { query: "events | take 2 | render piechart", language: "kql" });
    expect(tableFromIPC(joinFlightData(messages)).numRows).toBe(2);
    const render = decodeURIComponent(header.get("x-engine-render") ?? "");
    expect(JSON.parse(render)).toMatchObject({ kind: "piechart" });
  });

  test("gets a large answer in messages of at most 2 MiB", async () => {
    const { messages } = await get(url(), { query: LARGE });
    expect(tableFromIPC(joinFlightData(messages)).numRows).toBe(60_000);
    expect(Math.max(...messages.map(({ dataBody }) => dataBody.byteLength))).toBeLessThanOrEqual(
      2 * 1024 * 1024 + 1_000,
    );
  });

  test("sees why it gets nothing", async () => {
    const codes = async (ticket: unknown, options?: Options) => (await failure(url(), ticket, options)).code;
    expect(await codes({ query: "SELEC 1" })).toBe(Code.InvalidArgument);
    expect(await codes({ query: "SELECT * FROM nothing" })).toBe(Code.NotFound);
    expect(await codes({ query: "SELECT 1", language: "gql" })).toBe(Code.InvalidArgument);
    expect(await codes("[]")).toBe(Code.InvalidArgument);
    const budget = await failure(url(), { query: ENDLESS }, { headers: { "x-engine-max-wall-clock-ms": "300" } });
    expect(budget.code).toBe(Code.ResourceExhausted);
    expect(budget.metadata.get("x-engine-budget-limit")).toBe("wall_clock_ms=300");
    const header = { "x-engine-max-wall-clock-ms": "many" };
    expect(await codes({ query: "SELECT 1" }, { headers: header })).toBe(Code.InvalidArgument);
    expect((await failure(url(), { query: "SELECT * FROM evénts" })).rawMessage).toContain("evénts");
  });

  test("shows a token, and reads what that may read", async () => {
    expect((await failure(url(), { query: "SELECT 1" }, { token: "nobody's-token" })).code).toBe(Code.Unauthenticated);
    await get(url(), { query: "SELECT * FROM system.queries" });
    const headers = { ...AUTHORIZATION, "Content-Type": "application/json" };
    const body = JSON.stringify({ name: `limited ${url()}`, role: "read", databases: ["other"] });
    const made = await fetch(`${engine.url}/v1/auth/tokens`, { method: "POST", headers, body });
    const { token } = (await made.json()) as { token: string };
    await get(url(), { query: "SELECT * FROM events", database: "other" }, { token });
    expect((await failure(url(), { query: "SELECT * FROM events" }, { token })).code).toBe(Code.NotFound);
  });

  test("is told of calls that there are not", async () => {
    const client = clientOf(url());
    const options = { headers: { authorization: `Bearer ${READER}` } };
    const criteria = { expression: new Uint8Array() };
    await expect(client.getSchema(criteria, options)).rejects.toMatchObject({ code: Code.Unimplemented });
    const listing = (async () => {
      for await (const _ of client.listFlights(criteria, options));
    })();
    await expect(listing).rejects.toMatchObject({ code: Code.Unimplemented });
  });

  test("ends its query by leaving, and by its deadline", async () => {
    const [left, late] = [`${ENDLESS} AND ${url().length} = ${url().length}`, `${ENDLESS} AND ${url().length} > 0`];
    const leaving = new AbortController();
    const failed = failure(url(), { query: left }, { signal: leaving.signal });
    await eventually(async () => (await outcomes(left)).includes("running"));
    leaving.abort();
    expect((await failed).code).toBe(Code.Canceled);
    await eventually(async () => !(await outcomes(left)).includes("running"));
    expect((await failure(url(), { query: late }, { timeoutMs: 600 })).code).toBe(Code.DeadlineExceeded);
    await eventually(async () => !(await outcomes(late)).includes("running"));
  });
});

function frameOf(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([prefix, message]);
}

type Sent = { type?: string; headers?: Record<string, string>; path?: string; token?: string };

function send(
  body: Uint8Array | string,
  { type = "application/grpc-web+proto", headers, path = PATH, token }: Sent = {},
) {
  const all = { Authorization: `Bearer ${token ?? READER}`, "Content-Type": type, ...headers };
  return fetch(engine.url + path, { method: "POST", headers: all, body: Buffer.from(body) });
}

/** The frames of an answer in text form: each is padded for itself. */
function framesOf(text: string): Buffer[] {
  const bytes = Buffer.concat((text.match(/[^=]+={0,2}/g) ?? []).map((part) => Buffer.from(part, "base64")));
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    frames.push(bytes.subarray(at, at + 5 + bytes.readUInt32BE(at + 1)));
  }
  return frames;
}

describe("by hand", () => {
  const ticket = frameOf(ticketMessage({ query: "SELECT 1 AS one" }));

  test("the text form is answered in text, the binary form too where that is asked for", async () => {
    const asText = { type: "application/grpc-web-text" };
    const answers = await Promise.all([
      send(ticket.toString("base64"), asText),
      send(ticket, { headers: { Accept: "application/grpc-web-text" } }),
    ]);
    for (const answer of answers) {
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/grpc-web-text+proto"]);
      const frames = framesOf(await answer.text());
      expect(frames.map((frame) => frame[0])).toEqual([0, 0, 0x80]);
      expect(frames.at(-1)?.subarray(5).toString()).toBe("grpc-status: 0\r\n");
    }
  });

  test("a page of another origin is told what it may send and read", async () => {
    const origin = { Origin: "https://app.example.com" };
    const preflight = await fetch(engine.url + PATH, {
      method: "OPTIONS",
      headers: {
        ...origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-grpc-web,grpc-timeout,x-user-agent",
      },
    });
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
    const allowed = (preflight.headers.get("access-control-allow-headers") ?? "").toLowerCase();
    for (const name of ["authorization", "content-type", "x-grpc-web", "grpc-timeout", "x-user-agent"]) {
      expect(allowed).toContain(name);
    }
    const answer = await send(ticket, { headers: origin });
    await answer.arrayBuffer();
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    const exposed = (answer.headers.get("access-control-expose-headers") ?? "").toLowerCase();
    for (const name of ["grpc-status", "grpc-message", "x-engine-rows"]) expect(exposed).toContain(name);
  });

  test("what is no gRPC-web is refused", async () => {
    const status = async (body: Uint8Array, sent?: Sent): Promise<string> => {
      const answer = await send(body, sent);
      const bytes = Buffer.from(await answer.arrayBuffer());
      const isText = answer.headers.get("content-type")?.includes("-text") === true;
      const text = (isText ? Buffer.concat(framesOf(bytes.toString())) : bytes).toString("latin1");
      return answer.status === 200 ? (/grpc-status: (\d+)/.exec(text)?.[1] ?? "no status") : `HTTP ${answer.status}`;
    };
    expect(await status(ticket)).toBe("0");
    expect(await status(ticket, { type: "application/json" })).toBe("HTTP 415");
    expect(await status(ticket, { token: "nobody's-token" })).toBe("HTTP 401");
    expect(await status(Buffer.alloc(0))).toBe("3");
    expect(await status(ticket.subarray(1))).toBe("3");
    expect(await status(Buffer.concat([ticket, ticket]))).toBe("3");
    expect(await status(Buffer.from("no base64!"), { type: "application/grpc-web-text" })).toBe("3");
    expect(await status(frameOf(Buffer.alloc(5 * 1024 * 1024)))).toBe("8");
    expect(await status(ticket, { headers: { "grpc-timeout": "soon" } })).toBe("3");
    expect(await status(ticket, { headers: { "grpc-timeout": "99999999H" } })).toBe("0");
    expect(await status(ticket, { path: "/flight/arrow.flight.protocol.FlightService/constructor" })).toBe("12");
    expect(await status(ticket, { path: "/flight/arrow.flight.protocol.FlightService/DoGet/more" })).toBe("12");
    expect(await status(ticket, { path: "/flight/..%2fv1/query" })).toBe("12");
    expect(await status(ticket, { path: "/flight/" })).toBe("HTTP 404");
    expect((await fetch(engine.url + PATH, { headers: AUTHORIZATION })).status).toBe(405);
  });
});

test("a call has one request id: that of its answer, its trailers and its lines in the log", async () => {
  const headers = { ...AUTHORIZATION, "Content-Type": "application/grpc-web+proto" };
  const answer = await fetch(`${engine.url}${PATH}`, {
    method: "POST",
    headers,
    body: Uint8Array.from(frameOf(Buffer.from("no ticket"))),
  });
  const id = String(answer.headers.get("x-request-id"));
  expect(id.length).toBeGreaterThan(10);
  expect(await answer.text()).toContain(`x-request-id: ${id}\r\n`);
  const answered = () =>
    engine
      .log()
      .split("\n")
      .filter((line) => line.includes('"answered"') && line.includes(id));
  await eventually(() => answered().length === 2);
});
