import { afterAll, beforeAll, expect, it } from "vitest";
import { holdOf, type Hold } from "../../src/fabric/job.ts";
import { RemotePort } from "../../src/fabric/remote-port.ts";
import type { SandboxBatch } from "../../src/sandbox/contract/control-port.ts";
import { SANDBOX_JOB_KIND } from "../../src/sandbox/contract/sandbox-job.ts";
import { RemoteControlPort } from "../../src/sandbox/node/link/remote-control-port.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 120_000;
const hello = { role: "user", content: [{ type: "text", text: "hello" }] };

let home: Awaited<ReturnType<typeof temporaryHome>>;
let engine: Engine;
beforeAll(async () => {
  home = await temporaryHome();
  engine = await start();
}, TIMEOUT_MS);
afterAll(async () => {
  await engine.stop("SIGKILL");
  await home.remove();
});

function start(): Promise<Engine> {
  return startEngine({ home: home.home, env: { ENGINE_SANDBOX_RUNTIME: "off", ENGINE_SANDBOX_LEASE_SECS: "60" } });
}

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(engine.url + path, {
    method,
    headers: { "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return await response.json();
}

/** A node as the control plane knows it: it says what a test wants, at the server that there is. */
class PlayedNode {
  readonly #id: string;
  readonly #token: string;
  #batch = 0;
  hold: Hold | undefined;

  constructor(id: string, token: string) {
    this.#id = id;
    this.#token = token;
  }

  async begin(): Promise<void> {
    await this.#with(async (control) => {
      const capacity = { cpuMillis: 8_000, memoryMb: 8_192, diskMb: 65_536, sandboxes: 10 };
      const node = { name: "node-1", runtime: "bubblewrap", labels: {}, images: ["host"], capacity, bootId: "b" };
      return await control.report(node);
    });
  }

  async claim(): Promise<void> {
    const port = new RemotePort(this.#server());
    const signal = new AbortController().signal;
    const [job] = await port.claim({ kinds: [SANDBOX_JOB_KIND], max: 1, waitMs: 5_000, signal });
    await port.close();
    if (job === undefined) throw new Error("the node got nothing");
    this.hold = holdOf(job);
  }

  desiredState() {
    return this.#with((control) => control.desiredState(this.#held()));
  }

  history(sessionId: string) {
    return this.#with((control) => control.history(this.#held(), sessionId));
  }

  record(batch: Partial<SandboxBatch>) {
    return this.#with((control) => control.record(this.#held(), { number: ++this.#batch, events: [], ...batch }));
  }

  #held(): Hold {
    if (this.hold === undefined) throw new Error("the node has no sandbox");
    return this.hold;
  }

  #server() {
    return { url: engine.url, token: this.#token, userAgent: "test" };
  }

  async #with<T>(use: (control: RemoteControlPort) => Promise<T>): Promise<T> {
    const control = new RemoteControlPort(this.#id, this.#server());
    try {
      return await use(control);
    } finally {
      await control.close();
    }
  }
}

it(
  "a message whose server is killed goes on: its answer is there when a server is",
  { timeout: TIMEOUT_MS },
  async () => {
    const worker = await call("POST", "/v1/workers", { name: "node-1", capabilities: ["sandbox"] });
    const node = new PlayedNode(String(fieldOf(worker, "id")), String(fieldOf(worker, "token")));
    await node.begin();
    const sandbox = `/api/v1/sandboxes/${String(fieldOf(await call("POST", "/api/v1/sandboxes", { agent_provider: "codex" }), "id"))}`;
    await node.claim();
    await node.desiredState();
    for (const to of ["creating", "running"] as const) await node.record({ state: { to } });
    const session = `/api/v1/sessions/${String(fieldOf(await call("POST", `${sandbox}/sessions`), "id"))}`;
    const waiting = call("POST", `${session}/messages`, hello).catch((error: unknown) => error);
    await expect.poll(async () => (await node.desiredState()).turns?.length).toBe(1);
    const { turns: [turn] = [], version } = await node.desiredState();
    if (turn === undefined) throw new Error("there is no turn");
    const said = (text: string) => ({
      type: "text_delta" as const,
      atMs: 7,
      data: { text },
      sessionId: turn.sessionId,
    });
    await node.record({ events: [said("one ")] });

    await engine.stop("SIGKILL");
    expect(await waiting).toBeInstanceOf(Error);
    engine = await start();

    expect(await call("GET", session)).toMatchObject({ state: "processing", messages: [hello] });
    await expect(call("POST", `${session}/messages`, hello)).rejects.toThrow("409");
    // The node is told of nothing new, and goes on.
    expect(await node.desiredState()).toMatchObject({ version, turns: [turn] });
    const known = await node.record({ events: [said("two")], knownVersion: version });
    expect(known).toMatchObject({ version, turns: [] });
    const { sessionId, turnId } = turn;
    await node.record({ turns: [{ sessionId, turnId, outcome: "completed", content: [] }] });
    expect(await call("GET", session)).toMatchObject({
      state: "active",
      messages: [hello, { role: "assistant", content: [{ type: "text", text: "one two" }] }],
    });
    // Asked for by a node whose agent does not know the session any more.
    expect(await node.history(sessionId)).toEqual([]);
    const second = call("POST", `${session}/messages`, hello);
    await expect.poll(async () => (await node.desiredState()).turns).toMatchObject([{ messagesBefore: 2 }]);
    expect(await node.history(sessionId)).toEqual([
      hello,
      { role: "assistant", content: [{ type: "text", text: "one two" }] },
    ]);
    expect(await node.history("another")).toEqual([]);
    const next = (await node.desiredState()).turns?.[0]?.turnId ?? "";
    await node.record({ turns: [{ sessionId, turnId: next, outcome: "completed", content: [] }] });
    expect(await second).toMatchObject({ role: "assistant" });
  },
);
