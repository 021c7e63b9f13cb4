import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Engine } from "../support/engine.ts";
import { loopFiles } from "../../src/sandbox/runtime/loop-files.test-kit.ts";

/** A client of the routes of sandboxes of a server. */
export class SandboxClient {
  readonly #engine: () => Engine;

  constructor(engine: () => Engine) {
    this.#engine = engine;
  }

  async call(method: string, path: string, body?: unknown): Promise<{ status: number; text: string; json: unknown }> {
    const isText = typeof body === "string";
    const response = await fetch(`${this.#engine().url}/api/v1/sandboxes${path}`, {
      method,
      headers: { "content-type": isText ? "application/octet-stream" : "application/json" },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, text, json: isJson ? JSON.parse(text) : undefined };
  }

  /** Makes a sandbox and waits until it runs; returns its id. */
  async create(spec: Record<string, unknown> = {}): Promise<string> {
    const { status, text, json } = await this.call("POST", "", { agent_provider: "codex", ...spec });
    if (status !== 202) throw new Error(`it was not created: ${status} ${text}`);
    const id = String(fieldOf(json, "id"));
    await this.reaches(id, "running");
    return id;
  }

  async stateOf(id: string): Promise<string> {
    const { status, json } = await this.call("GET", `/${id}`);
    return status === 404 ? "gone" : String(fieldOf(json, "state"));
  }

  async reaches(id: string, state: string, timeoutMs = 60_000): Promise<void> {
    let seen = "";
    for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += 50) {
      seen = await this.stateOf(id);
      if (seen === state) return;
      if (seen === "failed") break;
      await pause(50);
    }
    throw new Error(`the sandbox is ${seen} and not ${state}: ${(await this.call("GET", `/${id}`)).text}`);
  }

  /** Runs a command to its end. */
  async exec(id: string, command: string): Promise<{ stdout: string; exitCode: unknown }> {
    const { status, text } = await this.call("POST", `/${id}/exec/stream`, { command });
    if (status !== 200) throw new Error(`the command was not run: ${status} ${text}`);
    return outcomeOf(text);
  }
}

/** What a stream of events of a command says. */
export function outcomeOf(events: string): { stdout: string; exitCode: unknown } {
  let stdout = "";
  let exitCode: unknown;
  for (const { type, data } of eventsIn(events)) {
    if (type === "stdout") stdout += String(fieldOf(data, "text"));
    if (type === "exit") exitCode = fieldOf(data, "exit_code");
  }
  return { stdout, exitCode };
}

export function eventsIn(text: string): { id: string; type: string; data: unknown }[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => {
      const event: unknown = JSON.parse(line.slice("data: ".length));
      return {
        id: String(fieldOf(event, "id")),
        type: String(fieldOf(event, "event_type")),
        data: fieldOf(event, "data"),
      };
    });
}

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}

/** A sandbox is gone for clients before its node has put everything away. */
export async function untilPutAway(home: string): Promise<void> {
  const left = () => readdirSync(join(home, "sandboxes", "machines")).filter((name) => !name.startsWith("warm-"));
  for (let waitedMs = 0; left().length > 0; waitedMs += 50) {
    if (waitedMs > 30_000) throw new Error(`machines are left: ${left().join(", ")}`);
    await pause(50);
  }
}

/** Files of a home behind loop devices. The kernel lets go of one a moment after its last mount, under load later. */
export async function leftLoopFiles(home: string): Promise<string[]> {
  for (let waitedMs = 0; loopFiles(home).length > 0 && waitedMs < 10_000; waitedMs += 50) await pause(50);
  return loopFiles(home);
}
