import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";
import type { Era } from "./mcp.test-kit.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

function environment(home: string, more: Record<string, string> = {}): Record<string, string> {
  // Files of whoever runs the test are not synced.
  return { ...cleanEnv(), ENGINE_HOME: home, ENGINE_CA_HOME: join(home, "agent"), ...more };
}

/** `engine mcp` as a coding agent starts it, behind the official client. */
export class StdioAgent {
  readonly client: Client;
  readonly #transport: StdioClientTransport;
  #log = "";
  /** What came on standard output and was no message, and other complaints of the client. */
  readonly problems: string[] = [];

  private constructor(home: string, era: Era, env: Record<string, string>) {
    const mode = era === "legacy" ? era : { pin: era };
    this.client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    this.client.onerror = (error) => this.problems.push(error.message);
    this.#transport = new StdioClientTransport({
      command: process.execPath,
      args: [PROGRAM, "mcp"],
      env: environment(home, env),
      stderr: "pipe",
    });
    this.#transport.stderr?.on("data", (chunk: Buffer) => (this.#log += chunk.toString("utf8")));
  }

  static async start(home: string, era: Era = "2026-07-28", env: Record<string, string> = {}): Promise<StdioAgent> {
    const agent = new StdioAgent(home, era, env);
    await agent.client.connect(agent.#transport);
    return agent;
  }

  /** Whether the engine runs in this process. */
  get isEngine(): boolean {
    return this.#log.includes("agents are answered by this process");
  }

  get log(): string {
    return this.#log;
  }

  kill(signal: NodeJS.Signals): void {
    signalProcess(this.#transport.pid ?? undefined, signal);
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

/** `engine mcp` without a client: lines in, lines out. */
export class StdioProcess {
  readonly child: ChildProcessWithoutNullStreams;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<unknown>;

  constructor(home: string, env: Record<string, string> = {}) {
    this.child = endsWithThisProcess(spawn(process.execPath, [PROGRAM, "mcp"], { env: environment(home, env) }));
    this.child.stdout.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.child.stdin.on("error", () => undefined);
    this.#closed = once(this.child, "close");
  }

  get messages(): Record<string, unknown>[] {
    const lines = this.stdout.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  send(...lines: readonly (string | object)[]): void {
    for (const line of lines) this.child.stdin.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  }

  /** Closes its input, and resolves to its exit code. */
  async end(): Promise<number | null> {
    this.child.stdin.end();
    await this.#closed;
    return this.child.exitCode;
  }
}
