import { Agent, request } from "undici";
import { startIssuer, type TestIssuer } from "../../src/auth/jwt/issuer.test-kit.ts";
import { newToken } from "../../src/auth/tokens.ts";
import type { CallerRole } from "../../src/config/kinds.ts";
import { systemRandom } from "../../src/core/random.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** A server that takes tokens of every kind, with two databases `a` and `b`, and callers of every kind before it. */
export type World = {
  engine: Engine;
  /** Who must be told that their token is not good. */
  strangers: readonly Stranger[];
  /** Who may come in. */
  callers: readonly TestCaller[];
  /** One of the strangers, but for routes of workers: its token opens those, and no others. */
  worker: Stranger & { id: string };
  /** The caller of that name. */
  caller(name: string): TestCaller;
  /** As the admin who made everything; rejects unless that succeeds. */
  admin(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  send(call: TestRequest, by?: Stranger): Promise<Reply>;
  /** Signs a caller with a session in again. */
  renew(by: Stranger): Promise<void>;
  stop(): Promise<void>;
};

export type Stranger = {
  name: string;
  /** The header; undefined for none. */
  authorization: string | undefined;
  /** Address it comes from: an address that shows many wrong tokens is made to wait. */
  address: string;
};

export type TestCaller = Stranger & {
  kind: "session" | "api_token" | "oidc";
  role: CallerRole;
  /** Which databases its token is limited to: to none, to `a`, or to `b`. */
  limit: "none" | "a" | "b";
};

export type TestRequest = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
};

export type Reply = { status: number; headers: Record<string, string>; text: string; json: Record<string, unknown> };

/** A provider of accounts, which nothing is asked of. */
const AN_ISSUER = {
  client_id: "an-app",
  client_secret: "a-secret",
  authorize_url: "http://127.0.0.1:9/authorize",
  token_url: "http://127.0.0.1:9/token",
};

export const ROOT = { username: "root", password: "correct horse battery" };
export const CALLER_PASSWORD = "a password of the test";
const ROLES = ["read", "write", "admin"] as const;

export async function startWorld(env: Record<string, string> = {}): Promise<World> {
  const issuer = await startIssuer();
  const { home, remove } = await temporaryHome();
  const all = {
    ENGINE_AUTH_BACKEND: "oidc",
    ENGINE_OIDC_ISSUERS: issuer.issuer,
    ENGINE_ADMIN_USER: ROOT.username,
    ENGINE_ADMIN_PASSWORD: ROOT.password,
    ENGINE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    ENGINE_OAUTH_PROVIDERS: JSON.stringify({ "an-issuer": AN_ISSUER }),
    // Sandboxes wait for a node here.
    ENGINE_OTLP_DATABASE: "a",
    ENGINE_SANDBOX_RUNTIME: "off",
    // Nothing listens there.
    ENGINE_LOCALMODEL_HOST: "http://127.0.0.1:1",
    // No sandbox is ever made here.
    ENGINE_SANDBOX_ACTION_WAIT_SECS: "0",
    ...env,
  };
  const expired = await expiredToken(home, all);
  const engine = await startEngine({ home, env: all });
  const agents = new Map<string, Agent>();
  const send = senderOf(engine, agents);
  const admin = await adminOf(engine, send);
  await makeDatabases(admin);
  const callers = [...(await storedCallers(admin, send)), ...(await issuedCallers(issuer))];
  const worker = await newWorker(admin, "a worker's token", "127.0.0.9");
  const strangers = [...(await strangersOf({ admin, issuer, expired })), worker];
  return {
    engine,
    strangers,
    callers,
    worker,
    admin,
    send,
    caller(name) {
      const found = callers.find((one) => one.name === name);
      if (found === undefined) throw new Error(`there is no caller ${name}`);
      return found;
    },
    async renew(by) {
      by.authorization = await signIn(send, by.name.replace("session ", "user-"), CALLER_PASSWORD);
    },
    async stop() {
      await Promise.all([...agents.values()].map((agent) => agent.close()));
      await engine.stop();
      await issuer.stop();
      await remove();
    },
  };
}

type Send = World["send"];
type AsAdmin = World["admin"];

const HOME_ADDRESS = "127.0.0.1";

function senderOf(engine: Engine, agents: Map<string, Agent>): Send {
  return async ({ method, path, headers = {}, body }, by) => {
    const localAddress = by?.address ?? HOME_ADDRESS;
    const dispatcher = agents.get(localAddress) ?? new Agent({ localAddress });
    agents.set(localAddress, dispatcher);
    const authorization = by?.authorization === undefined ? {} : { authorization: by.authorization };
    const reply = await request(engine.url + path, {
      dispatcher,
      method: method as "GET",
      headers: { ...headers, ...authorization },
      ...(body === undefined ? {} : { body }),
    });
    const text = await reply.body.text();
    const flat = Object.entries(reply.headers).map(([name, value]) => [name, String(value)]);
    const isJson = String(reply.headers["content-type"]).startsWith("application/json");
    const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
    return { status: reply.statusCode, headers: Object.fromEntries(flat) as Record<string, string>, text, json };
  };
}

export function jsonRequest(method: string, path: string, body?: unknown): TestRequest {
  if (body === undefined) return { method, path };
  return { method, path, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** A call of Arrow Flight over gRPC-web. The lengths in its frame are single bytes, which text carries as they are. */
export function flightRequest(query: string, database: string): TestRequest {
  const ticket = JSON.stringify({ query, database });
  if (ticket.length > 120) throw new Error("the ticket is too long for a text");
  const message = `\n${String.fromCharCode(ticket.length)}${ticket}`;
  return {
    method: "POST",
    path: "/flight/arrow.flight.protocol.FlightService/DoGet",
    headers: { "content-type": "application/grpc-web+proto" },
    body: `\0\0\0\0${String.fromCharCode(message.length)}${message}`,
  };
}

async function signIn(send: Send, username: string, password: string): Promise<string> {
  const reply = await send(jsonRequest("POST", "/v1/auth/login", { username, password }));
  if (reply.status !== 200) throw new Error(`${username} cannot sign in: ${reply.text}`);
  return `Bearer ${String(reply.json["access_token"])}`;
}

async function adminOf(engine: Engine, send: Send): Promise<AsAdmin> {
  const authorization = await signIn(send, ROOT.username, ROOT.password);
  const by = { name: "root", authorization, address: HOME_ADDRESS };
  return async (method, path, body) => {
    const reply = await send(jsonRequest(method, path, body), by);
    if (reply.status >= 300) throw new Error(`${method} ${path} at ${engine.url}: ${reply.status} ${reply.text}`);
    return reply.json;
  };
}

async function makeDatabases(admin: AsAdmin): Promise<void> {
  for (const database of ["a", "b"]) {
    await admin("POST", `/v1/admin/databases/${database}/tables/events`);
    await admin("POST", `/v1/admin/databases/${database}/tables/only_in_${database}`);
  }
}

/** Users with each role, and tokens that the admin of them made. */
async function storedCallers(admin: AsAdmin, send: Send): Promise<TestCaller[]> {
  const callers: TestCaller[] = [];
  for (const role of ROLES) {
    const username = `user-${role}`;
    await admin("POST", "/v1/admin/users", { username, password: CALLER_PASSWORD, role });
    const authorization = await signIn(send, username, CALLER_PASSWORD);
    callers.push({
      name: `session ${role}`,
      kind: "session",
      role,
      limit: "none",
      authorization,
      address: HOME_ADDRESS,
    });
  }
  const maker = callers.find(({ role }) => role === "admin");
  const make = async (role: CallerRole, limit: "none" | "a" | "b") => {
    const body = { name: `${role} ${limit}`, role, ...(limit === "none" ? {} : { databases: [limit] }) };
    const reply = await send(jsonRequest("POST", "/v1/auth/tokens", body), maker);
    if (reply.status !== 200) throw new Error(`no token was made: ${reply.text}`);
    const authorization = `Bearer ${String(reply.json["token"])}`;
    callers.push({ ...nameOf("api_token", role, limit), role, limit, authorization, address: HOME_ADDRESS });
  };
  for (const role of ROLES) await make(role, "none");
  for (const limit of ["a", "b"] as const) await make("admin", limit);
  return callers;
}

async function issuedCallers(issuer: TestIssuer): Promise<TestCaller[]> {
  const sign = async (role: CallerRole, limit: "none" | "a" | "b"): Promise<TestCaller> => {
    const databases = limit === "none" ? {} : { engine_databases: [limit] };
    const token = await issuer.sign({ ...claimsOf(issuer), engine_role: role, ...databases });
    const authorization = `Bearer ${token}`;
    return { ...nameOf("oidc", role, limit), role, limit, authorization, address: HOME_ADDRESS };
  };
  return await Promise.all([
    ...ROLES.map((role) => sign(role, "none")),
    ...(["a", "b"] as const).map((limit) => sign("admin", limit)),
  ]);
}

function nameOf<K extends TestCaller["kind"]>(kind: K, role: CallerRole, limit: TestCaller["limit"]) {
  return { kind, name: `${kind} ${role}${limit === "none" ? "" : ` limited to ${limit}`}` };
}

function claimsOf({ issuer }: TestIssuer) {
  return { iss: issuer, aud: "engine", sub: "robot", exp: Math.floor(Date.now() / 1_000) + 3_600 };
}

type StrangerParts = { admin: AsAdmin; issuer: TestIssuer; expired: string };

/** Each from an address of its own: all of the loopback network is this machine. */
async function strangersOf({ admin, issuer, expired }: StrangerParts): Promise<Stranger[]> {
  const revoked = await admin("POST", "/v1/auth/tokens", { name: "revoked", role: "admin" });
  await admin("DELETE", `/v1/auth/tokens/${String(revoked["id"])}`);
  const gone = await newWorker(admin, "gone", HOME_ADDRESS);
  await admin("DELETE", `/v1/workers/${gone.id}`);
  const claims = { ...claimsOf(issuer), engine_role: "admin" };
  const headers: [string, string | undefined][] = [
    ["no token", undefined],
    ["a malformed header", "Bearer one two"],
    ["another scheme", `Basic ${Buffer.from(`${ROOT.username}:${ROOT.password}`).toString("base64")}`],
    ["an unknown token", `Bearer ${newToken("api", systemRandom)}`],
    ["an expired session", expired],
    ["a revoked token", `Bearer ${String(revoked["token"])}`],
    ["a token for another audience", `Bearer ${await issuer.sign({ ...claims, aud: "another" })}`],
    ["an unknown token of a worker", `Bearer ${newToken("worker", systemRandom)}`],
    ["a revoked token of a worker", gone.authorization],
  ];
  return headers.map(([name, authorization], i) => ({ name, authorization, address: `127.0.0.${i + 10}` }));
}

async function newWorker(admin: AsAdmin, name: string, address: string): Promise<World["worker"]> {
  const made = await admin("POST", "/v1/workers", { name });
  return { name, id: String(made["worker_id"]), authorization: `Bearer ${String(made["token"])}`, address };
}

/** An admin's, of a server whose sessions last a second. */
async function expiredToken(home: string, env: Record<string, string>): Promise<string> {
  const engine = await startEngine({ home, env: { ...env, ENGINE_ACCESS_TTL_SECS: "1" } });
  const agents = new Map<string, Agent>();
  const authorization = await signIn(senderOf(engine, agents), ROOT.username, ROOT.password);
  await Promise.all([...agents.values()].map((agent) => agent.close()));
  await engine.stop();
  return authorization;
}
