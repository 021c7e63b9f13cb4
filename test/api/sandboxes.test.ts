import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** A server whose only callers are those with API keys, and that runs no sandboxes itself. */
const PATH = "/api/v1/sandboxes";

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({
    home,
    env: {
      ENGINE_SECURITY_API_KEYS: "ann:write:key-1,ann:read:key-2,boss:admin:key-3,key-4",
      ENGINE_SANDBOX_RUNTIME: "off",
      ENGINE_SANDBOX_PENDING_TIMEOUT_SECS: "1",
    },
  });
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

async function call(method: string, path: string, key?: string, body?: unknown) {
  const response = await fetch(engine.url + path, {
    method,
    headers: {
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: JSON.parse(text || "{}") as Record<string, unknown> };
}

test("API keys let callers in, each with its role; without one nobody comes in", async () => {
  expect((await call("GET", PATH)).status).toBe(401);
  expect((await call("GET", PATH, "key-5")).status).toBe(401);
  expect((await call("GET", "/v1/auth/me", "key-1")).json).toMatchObject({ subject: "token:ann", role: "write" });
  expect((await call("GET", "/v1/auth/me", "key-4")).json).toMatchObject({ role: "write" });
  expect((await call("GET", "/v1/auth/me", "key-3")).json).toMatchObject({ subject: "token:boss", role: "admin" });
  expect((await call("POST", PATH, "key-2", { agent_provider: "codex" })).status).toBe(403);
});

test("what a caller makes belongs to the name, and fails when no node takes it in time", async () => {
  const made = await call("POST", PATH, "key-1", { agent_provider: "codex" });
  expect([made.status, made.json["state"]]).toEqual([202, "pending"]);
  const path = `${PATH}/${String(made.json["id"])}`;
  expect((await call("GET", path, "key-4")).status).toBe(404);
  expect((await call("GET", path, "key-3")).status).toBe(200);
  await vi.waitFor(async () => expect((await call("GET", path, "key-2")).json["state"]).toBe("failed"), 60_000);
  expect((await call("GET", path, "key-2")).json["reason"]).toBe(
    "no node had room for it within 1 s: no node takes sandboxes at the moment",
  );
  expect((await call("DELETE", path, "key-1")).status).toBe(204);
  expect((await call("GET", path, "key-3")).status).toBe(404);
});

test("a server that is to run no sandboxes is ready without a node", async () => {
  const { status, json } = await call("GET", "/ready");
  expect([status, json]).toEqual([200, { status: "ready", database: "ok", runtime: "off" }]);
});
