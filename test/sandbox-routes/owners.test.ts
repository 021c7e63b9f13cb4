import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { routesOf } from "../../src/server/route.ts";
import { SANDBOX_ROUTES } from "../../src/sandbox/control/routes/sandbox-routes.ts";
import { startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

/**
 * Every route about a sandbox or a session, while it runs: commands, terminals, files, ports and streams among them. Of
 * another tenant's it says what it says of one that there is not.
 */
const NOTHING = "019a0000-0000-7000-8000-000000000000";
const EXEC_ID = "019a0000-0000-7000-8000-000000000001";
const PORT = 8_080;

/** By method and path: bodies that are accepted. */
const BODIES: Readonly<Record<string, unknown>> = {
  "POST /api/v1/sandboxes/{id}/exec/stream": { command: "true" },
  "POST /api/v1/sessions/{sid}/messages": { role: "user", content: [{ type: "text", text: "x" }] },
};

type Asked = { method: string; path: string; webSocket: boolean };
const nowhere = routesOf(SANDBOX_ROUTES, { forward: () => Promise.reject(new Error("nothing is forwarded here")) });
const ABOUT: readonly Asked[] = nowhere
  .filter(({ role, path }) => role !== "worker" && /\/(sandboxes\/\{id\}|sessions\/\{sid\})/.test(path))
  .flatMap(({ method, path, webSocket: has }) => {
    const [plain, webSocket] = [false, true].map((isSo) => ({ method, path, webSocket: isSo }));
    return [has === true ? [] : plain, has === undefined ? [] : webSocket].flatMap((one) => one ?? []);
  });

let api: SandboxApi;
const own: Record<"id" | "sid", string> = { id: "", sid: "" };
beforeAll(async () => {
  api = await startSandboxApi({ actionWaitMs: 0, callTimeoutMs: 1_000 });
  const { id, path } = await api.make({ ports: [{ port: PORT }] }, "creating", "running");
  own.id = id;
  own.sid = String((await api.call("POST", `${path}/sessions`, { body: {} })).json["id"]);
});
afterAll(() => api.close());

const pathOf = (path: string, ids: typeof own) =>
  path
    .replace("{id}", ids.id)
    .replace("{sid}", ids.sid)
    .replace("{exec_id}", EXEC_ID)
    .replace("{port}", String(PORT))
    .replace("{*path}", "a");

type Said = { status: number; text: string };

/** What is answered, or that an answer that does not end was begun. */
async function ask({ method, path, webSocket }: Asked, ids: typeof own, by: string): Promise<Said> {
  const body = BODIES[`${method} ${path}`];
  const url = api.url + pathOf(path, ids);
  const headers = { Authorization: `Bearer ${by}` };
  if (webSocket) return await dial(url, headers);
  const giveUp = new AbortController();
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...(body !== undefined && { "Content-Type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: giveUp.signal,
  });
  const { status } = response;
  const isEndless = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const text = isEndless ? "" : await response.text();
  giveUp.abort();
  return { status, text };
}

function dial(url: string, headers: Record<string, string>): Promise<Said> {
  const socket = new WebSocket(url.replace("http", "ws"), { headers });
  return new Promise((resolve, reject) => {
    socket.once("open", () => {
      socket.terminate();
      resolve({ status: 101, text: "" });
    });
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (piece: Buffer) => (text += piece.toString()));
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.once("error", reject);
    });
    socket.once("error", reject);
  });
}

const outlineOf = ({ status, text }: Said, { id, sid }: typeof own) => ({
  status,
  text: text
    .replaceAll(id, "<id>")
    .replaceAll(sid, "<id>")
    .replace(/"request_id":"[^"]*"/, ""),
});

it("are all that there are", () => {
  expect(ABOUT.map(({ method, path }) => `${method} ${path}`)).toContain("GET /api/v1/sandboxes/{id}/shell");
  expect(ABOUT.length).toBeGreaterThan(30);
});

const TABLE = ABOUT.map((asked): [string, Asked] => [
  `${asked.webSocket ? "WebSocket " : ""}${asked.method} ${asked.path}`,
  asked,
]);

describe.each(TABLE)("%s", (_, asked) => {
  it("is for its owner and admins, and for others about nothing", async () => {
    const nothing = { id: NOTHING, sid: NOTHING };
    const theirs = await ask(asked, own, "bob");
    expect(theirs.status).toBe(404);
    expect(outlineOf(theirs, own)).toEqual(outlineOf(await ask(asked, nothing, "bob"), nothing));
    if (asked.method === "DELETE") return;
    for (const by of ["ann", "root"]) {
      expect((await ask(asked, own, by)).text).not.toMatch(/(sandbox|session)_not_found/);
    }
  });
});
