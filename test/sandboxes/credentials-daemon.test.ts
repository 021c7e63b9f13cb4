import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listen } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { serverWithDaemon } from "./daemon.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";
import { TIMEOUT_MS } from "./server.test-kit.ts";

const SECRET_KEY = randomBytes(32).toString("base64");
const KEY = `canary-${randomBytes(12).toString("hex")}`;

describeInCage("credentials of a sandbox on a node of its own", () => {
  let model: Server;
  let modelPort: number;
  const seen: (string | undefined)[] = [];

  beforeAll(async () => {
    model = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end("hello");
    });
    modelPort = await listen(model);
  });
  afterAll(() => void model.close());
  const server = serverWithDaemon(() => {
    // On loopback, of the operator's choice: it needs no TLS.
    const env = { ENGINE_SANDBOX_PROVIDER_URLS: `codex=http://127.0.0.1:${modelPort}` };
    return {
      server: { ...env, ENGINE_SECRET_KEY: SECRET_KEY },
      node: { ...env, ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8", ENGINE_LOG_LEVEL: "debug" },
    };
  });
  const { client } = server;

  it("come to the node by its hold, also to its next process", { timeout: TIMEOUT_MS }, async () => {
    const made = await fetch(`${server.url}/v1/credentials`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ label: "model", value: { kind: "api_key", key: KEY } }),
    });
    const credential = String(fieldOf(await made.json(), "id"));
    const id = await client.create({ credentials: [{ credential_id: credential, env_var: "OPENAI_API_KEY" }] });
    const ask = async () => (await client.exec(id, "curl -sS http://127.0.0.1:3128/_engine/agent/v1/models")).stdout;
    expect(await ask()).toBe("hello");
    await server.daemon.end("SIGKILL");
    const log = server.daemon.log();
    await server.start();
    await expect.poll(ask).toBe("hello");
    expect(new Set(seen)).toEqual(new Set([`Bearer ${KEY}`]));
    expect(log + server.daemon.log() + server.log()).not.toContain(KEY);
    await client.call("DELETE", `/${id}`);
    await client.reaches(id, "gone");
  });
});
