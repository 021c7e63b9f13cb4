import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * Sends a real server what its OpenAPI document allows, and much that it does not, with each role: no answer may be an
 * unexpected failure, of a status or media type that the document does not have, or of another shape than it says.
 */
const HOOKS = fileURLToPath(new URL("fuzz-hooks.py", import.meta.url));
const CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
const EXAMPLES_PER_ROUTE = "2";
const PROVIDERS = ["GOOGLE", "NOTION", "ATLASSIAN", "SLACK"];

const program = installedBy("install-schemathesis", "python3-venv");

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  const apps = PROVIDERS.flatMap((name) => [
    [`ENGINE_OAUTH_${name}_CLIENT_ID`, "an-app"],
    [`ENGINE_OAUTH_${name}_CLIENT_SECRET`, "a-secret"],
  ]);
  const tokens = "token-read:read,token-write:write,token-admin:admin";
  // What is not configured is answered with 501, which would count as a failure.
  const env = {
    ENGINE_AUTH_TOKENS: tokens,
    ENGINE_SECRET_KEY: Buffer.alloc(32, 5).toString("base64"),
    // None of the many sandboxes that are asked for is made, or waited for.
    ENGINE_SANDBOX_RUNTIME: "off",
    ENGINE_SANDBOX_ACTION_WAIT_SECS: "0",
  };
  engine = await startEngine({ home, env: { ...env, ...Object.fromEntries(apps) } });
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

function fuzz(token: string, only: readonly string[]): Promise<{ code: number | null; output: string }> {
  const argv = [
    "run",
    `${engine.url}/v1/openapi.json`,
    "--header",
    `Authorization: Bearer ${token}`,
    "--checks",
    CHECKS,
    "--phases",
    "coverage,fuzzing",
    "--max-examples",
    EXAMPLES_PER_ROUTE,
    "--generation-deterministic",
    // Streams of what there is have no end, frames of gRPC-web it cannot make, and the probe of a model answers 502 for
    // each that it cannot reach.
    "--exclude-path-regex",
    "/(stream|tail)$|^/flight/|^/v1/agent/engine/test$",
    ...only,
    "--no-color",
  ];
  const child = spawn(program ?? "", argv, { env: { ...cleanEnv(), SCHEMATHESIS_HOOKS: HOOKS }, cwd: engine.home });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code, output }));
  });
}

/** Of a worker that drains, so that it does not wait for jobs. */
async function workerToken(): Promise<string> {
  const post = async (path: string, body: unknown) => {
    const headers = { Authorization: "Bearer token-write", "Content-Type": "application/json" };
    const response = await fetch(engine.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(200);
    return (await response.json()) as Record<string, unknown>;
  };
  const { worker_id: id, token } = await post("/v1/workers", { name: "w" });
  await post(`/v1/workers/${String(id)}/drain`, { drain: true });
  return String(token);
}

describe.skipIf(program === undefined)("what the OpenAPI document says", { timeout: 300_000 }, () => {
  test.each([
    { role: "admin", only: [] },
    // All others answer a worker with 403: `matrix.test.ts`.
    { role: "worker", only: ["--include-path-regex", "^/v1/(sandbox-nodes|jobs|workers)/"] },
  ])("holds for the role $role", async ({ role, only }) => {
    const { code, output } = await fuzz(role === "worker" ? await workerToken() : `token-${role}`, only);
    // Its report names each request that was answered otherwise.
    expect(output).toMatch(/\d+ generated/);
    expect(code === 0 ? "" : output).toBe("");
  });
});
