import { afterAll, beforeAll, expect, it } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { agentScript, describeWithAgent } from "./bundled-agent.test-kit.ts";
import { SandboxClient } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 120_000;
const ENV = {
  ENGINE_SANDBOX_WARM_POOL: "0",
  ENGINE_SANDBOX_AGENT_COMMANDS: "codex=/usr/bin/node /home/agent/agent.mjs --store /home/agent/sessions.json",
};

describeWithAgent("the agent of a sandbox of a server", () => {
  let place: Awaited<ReturnType<typeof temporaryHome>>;
  let engine: Engine;
  let id: string;
  const client = new SandboxClient(() => engine);

  const call = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(`${engine.url}/api/v1${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const say = (session: unknown, text: string) =>
    call("POST", `/sessions/${String(session)}/messages`, { role: "user", content: [{ type: "text", text }] });

  beforeAll(async () => {
    place = await temporaryHome();
    engine = await startEngine({ home: place.home, env: ENV });
    const config = { model: "m-1", system_prompt: "Be brief.", denied_tools: ["Secret*"] };
    id = await client.create({
      agent_config: config,
      env_vars: { AGENT_NAME: "a" },
      provisioning_scripts: [await agentScript("/home/agent/agent.mjs")],
    });
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      await client.call("DELETE", `/${id}`);
      await client.reaches(id, "gone");
    } finally {
      await engine.stop();
      await place.remove();
    }
  }, TIMEOUT_MS);

  it(
    "answers inside, as the agent's user, with what it may use",
    async () => {
      const { id: session } = await call("POST", `/sandboxes/${id}/sessions`, {});
      expect((await say(session, "where"))["content"]).toEqual([
        { type: "text", text: JSON.stringify({ folder: "/home/agent", AGENT_NAME: "a" }) },
      ]);
      const { content } = await say(session, "ask edit Write /home/agent/one\nask edit SecretWrite /home/agent/two");
      expect(content).toMatchObject([
        { type: "tool_use", name: "Write" },
        { type: "tool_result", is_error: false },
        { type: "tool_use", name: "SecretWrite" },
        { type: "tool_result", is_error: true },
      ]);
      expect((await client.call("GET", `/${id}/files/home/agent/one`)).text).toBe("once");
      expect((await client.call("GET", `/${id}/files/home/agent/two`)).status).toBe(404);
    },
    TIMEOUT_MS,
  );

  it(
    "carries on after a pause, and after the server was killed in the middle of a turn",
    async () => {
      const { id: session } = await call("POST", `/sandboxes/${id}/sessions`, {});
      const answer = say(session, "say a\nsleep 1500\nsay b");
      await client.call("POST", `/${id}/pause`);
      await client.reaches(id, "paused");
      await client.call("POST", `/${id}/resume`);
      expect((await answer)["content"]).toEqual([{ type: "text", text: "ab" }]);

      const cut = say(session, "say half\nlog half said\nhang").catch((error: unknown) => error);
      const patient = { timeout: 30_000 };
      await expect.poll(async () => (await client.call("GET", `/${id}/logs`)).text, patient).toContain("half said");
      await engine.stop("SIGKILL");
      await cut;
      engine = await startEngine({ home: place.home, env: ENV });
      await expect
        .poll(async () => (await call("GET", `/sessions/${String(session)}`))["state"], patient)
        .toBe("failed");
      const again = await say(session, "history");
      expect(again["content"]).toEqual([{ type: "text", text: expect.stringContaining("say half") }]);
      expect(await client.exec(id, "pgrep -fc [a]gent.mjs")).toMatchObject({ stdout: "1\n" });
    },
    TIMEOUT_MS,
  );
});
