import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { status as STATUS } from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { failureOfCall, messagesOf, rawClient } from "../../src/io/grpc/grpc-client.test-kit.ts";
import { certificateFolder, makeCertificate } from "../../src/io/http/tls.test-kit.ts";
import { ingest } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { DO_GET, flightAddress, ticketMessage } from "./flight.test-kit.ts";

/** Where Arrow Flight is served, to whom, and what the start says of it. */
const BIN = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const ADMIN = "admin-token-of-the-test";
const READER = "reader-token-of-the-test";
const QUIET = { ENGINE_SANDBOX_RUNTIME: "off" };
const TOKENS = { ...QUIET, ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${READER}:read` };

const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function newHome(): Promise<string> {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  return home;
}

async function start(env: Record<string, string>, port?: number): Promise<Engine> {
  const engine = await startEngine({ home: await newHome(), env, ...(port === undefined ? {} : { port }) });
  closers.push(() => engine.stop());
  return engine;
}

/** How a server ends that cannot start. */
async function ended(
  command: "serve" | "server",
  env: Record<string, string>,
): Promise<{ code: unknown; text: string }> {
  const all = { ...cleanEnv(), ENGINE_HOME: await newHome(), ...QUIET, ...env };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [BIN, command, "--addr", "127.0.0.1:0"],
      { env: all, timeout: 60_000 },
      (error, out, err) => resolve({ code: error?.code, text: out + err }),
    );
  });
}

/** Listens on a port, unless somebody else does. */
async function occupied(port: number): Promise<number> {
  const server = createServer().listen(port, "127.0.0.1");
  const settled = new Promise<void>((resolve) => server.once("listening", resolve).once("error", () => resolve()));
  await settled;
  closers.push(() => void server.close());
  return port;
}

function ask(address: string, query: string, { token, ca }: { token?: string; ca?: string } = {}): Promise<Buffer[]> {
  const client = rawClient(address, ca);
  closers.push(() => client.close());
  const metadata: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return messagesOf(client.stream(DO_GET, ticketMessage({ query }), { metadata, deadlineMs: 20_000 }));
}

describe("the address", () => {
  test("of `engine serve` is 127.0.0.1:9090; where that is taken the engine goes on and says so", async () => {
    await occupied(9090);
    const home = await newHome();
    const engine = await startEngine({ home, env: { ...QUIET, ENGINE_GRPC_ADDR: "" } });
    closers.push(() => engine.stop());
    expect(engine.log()).toMatch(/127\.0\.0\.1:9090 is in use by another program.*Arrow Flight is not served/);
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
  });

  test("that is asked for and taken ends the start, and so does any of `engine server`", async () => {
    const port = await occupied(await freePort());
    for (const command of ["serve", "server"] as const) {
      const { code, text } = await ended(command, { ENGINE_GRPC_ADDR: `127.0.0.1:${port}` });
      expect(code).toBe(1);
      expect(text).toContain(
        `127.0.0.1:${port} is in use by another program; stop it, or choose another by ENGINE_GRPC_ADDR`,
      );
    }
  });

  test.each(["9090"])("%s ends the start with code 2", async (bad) => {
    const { code, text } = await ended("serve", { ENGINE_GRPC_ADDR: bad });
    expect([code, text]).toEqual([2, expect.stringContaining("ENGINE_GRPC_ADDR") as string]);
  });

  test("is not listened on where it is off", async () => {
    const engine = await start({ ...QUIET, ENGINE_GRPC_ADDR: "OFF" });
    expect(() => flightAddress(engine)).toThrow("Flight is not served");
  });
});

describe("tokens", () => {
  test("are asked for where the configuration says so, with the role read", async () => {
    const engine = await start({ ...TOKENS, ENGINE_GRPC_ADDR: "127.0.0.1:0", ENGINE_GRPC_AUTH: "true" });
    const authorization = { Authorization: `Bearer ${ADMIN}` };
    await ingest(engine.url, "events", '{"body":"x"}', authorization);
    await ingest(engine.url, "events", '{"body":"x"}', { ...authorization, "X-Database": "other" });
    const headers = { ...authorization, "Content-Type": "application/json" };
    const body = JSON.stringify({ name: "limited", role: "read", databases: ["other"] });
    const made = await fetch(`${engine.url}/v1/auth/tokens`, { method: "POST", headers, body });
    const { token } = (await made.json()) as { token: string };
    const address = flightAddress(engine);
    const code = async (sql: string, asked?: string) =>
      (await failureOfCall(ask(address, sql, asked === undefined ? {} : { token: asked }))).code;
    expect(await code("SELECT * FROM events")).toBe(STATUS.UNAUTHENTICATED);
    expect(await code("SELECT * FROM events", "no-token-of-anybody")).toBe(STATUS.UNAUTHENTICATED);
    expect(await code("SELECT * FROM other.events", token)).toBe(STATUS.NOT_FOUND);
    expect(await code("SELECT * FROM events", token)).toBe(STATUS.NOT_FOUND);
    expect((await ask(address, "SELECT * FROM events", { token: READER })).length).toBeGreaterThan(1);
    expect((await ask(address, "SELECT * FROM system.queries", { token: READER })).length).toBeGreaterThan(0);
    expect(engine.log()).not.toContain("asks for no token");
  });

  test("cannot be asked for where nobody has one", async () => {
    const { code, text } = await ended("serve", { ENGINE_GRPC_AUTH: "1", ENGINE_GRPC_ADDR: "127.0.0.1:0" });
    expect([code, text]).toEqual([2, expect.stringContaining("ENGINE_GRPC_AUTH asks for tokens") as string]);
  });

  test("that HTTP asks for, and Flight does not: the start warns where others reach it", async () => {
    const engine = await start({ ...TOKENS, ENGINE_GRPC_ADDR: "0.0.0.0:0" });
    expect(engine.log()).toMatch(
      /WARNING: Arrow Flight asks for no token, and other machines can reach 0\.0\.0\.0:\d+/,
    );
    expect(engine.log()).toContain("ENGINE_GRPC_AUTH=true");
    const quiet = await start({ ...TOKENS, ENGINE_GRPC_ADDR: "127.0.0.1:0" });
    expect(quiet.log()).not.toContain("asks for no token");
  });
});

describe("with a certificate", () => {
  test("Flight speaks TLS as HTTP does", async () => {
    const files = await makeCertificate(certificateFolder(), "flight");
    const env = { ...QUIET, ENGINE_TLS_CERT: files.certPath, ENGINE_TLS_KEY: files.keyPath };
    const engine = await start({ ...env, ENGINE_GRPC_ADDR: "127.0.0.1:0" });
    const ca = readFileSync(files.certPath, "utf8");
    const failed = await failureOfCall(ask(flightAddress(engine), "FROM events", { ca }));
    // Nobody has made a database yet: the server has answered.
    expect([failed.code, failed.details]).toEqual([STATUS.NOT_FOUND, expect.stringMatching(/no database/) as string]);
    expect((await failureOfCall(ask(flightAddress(engine), "FROM events"))).code).not.toBe(STATUS.NOT_FOUND);
  });
});
