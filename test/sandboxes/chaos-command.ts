import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import type { ChaosClient, Piece } from "./chaos-client.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";

/** The machine that a command ran in is no more, or the command is not known there. */
export class CommandLost extends Error {}

/** A command that writes numbered lines, to both streams, and ends with a code of its own. */
export type Numbered = { lines: number; everyMs: number; exitCode: number };

/** `onBegun` is told when the command is known to run. */
export type CommandPorts = { client: ChaosClient; random: Random; id: string; onBegun?: () => void };

const RETRY_MS = 200;
const GIVE_UP_MS = 90_000;
const ERR_EVERY = 10;
const CUT_MS = { least: 50, spread: 1_200 };
/** Of connections, the share that is not cut. */
const LASTS = 0.3;

/**
 * Runs the command and follows it over connections that are cut, through any control plane, to its end. Resolves to what
 * is wrong with what came, nothing when all of it did, once and in order, and the true exit code. Rejects with
 * `CommandLost`.
 */
export async function runNumbered(ports: CommandPorts, numbered: Numbered): Promise<string | undefined> {
  const seen = await new CommandRun(ports).run(numbered);
  const { exitCode, signal } = seen;
  if (signal === "SIGKILL") throw new CommandLost("it was killed with its machine");
  const how = `a command that ends with ${numbered.exitCode} ended with ${JSON.stringify({ exitCode, signal })}`;
  const wanted = wantedOf(numbered);
  for (const stream of ["stdout", "stderr"] as const) {
    if (seen[stream] !== wanted[stream]) return `${how}; ${stream}: ${difference(seen[stream], wanted[stream])}`;
  }
  return exitCode === numbered.exitCode ? undefined : how;
}

function scriptOf({ lines, everyMs, exitCode }: Numbered, nonce: number): string {
  const loop = `echo line $i; [ $((i % ${ERR_EVERY})) -ne 0 ] || echo error $i >&2; sleep ${everyMs / 1_000}`;
  // One that is begun twice says so.
  return `mkdir ~/begun-${nonce} || echo again; i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); ${loop}; done; exit ${exitCode}`;
}

function wantedOf({ lines }: Numbered): { stdout: string; stderr: string } {
  const numbers = Array.from({ length: lines }, (_, i) => i + 1);
  return {
    stdout: numbers.map((n) => `line ${n}\n`).join(""),
    stderr: numbers.flatMap((n) => (n % ERR_EVERY === 0 ? [`error ${n}\n`] : [])).join(""),
  };
}

function difference(seen: string, wanted: string): string {
  const [got, expected] = [seen.split("\n"), wanted.split("\n")];
  const at = expected.findIndex((line, i) => got[i] !== line);
  const place = at === -1 ? expected.length : at;
  return `line ${place + 1} of ${expected.length} is ${JSON.stringify(got.slice(place, place + 3))}`;
}

class CommandRun {
  readonly #client: ChaosClient;
  readonly #random: Random;
  readonly #id: string;
  readonly #onBegun: (() => void) | undefined;
  #execId: string | undefined;
  #lastId: string | undefined;
  #stdout = "";
  #stderr = "";
  #exit: { exitCode: unknown; signal: unknown } | undefined;

  constructor({ client, random, id, onBegun }: CommandPorts) {
    this.#client = client;
    this.#random = random;
    this.#id = id;
    this.#onBegun = onBegun;
  }

  async run(numbered: Numbered): Promise<{ stdout: string; stderr: string; exitCode: unknown; signal: unknown }> {
    const giveUpAtMs = performance.now() + GIVE_UP_MS + numbered.lines * numbered.everyMs;
    for (;;) {
      const piece = await this.#readOn(numbered);
      for (const { id, type, data } of piece.events) this.#take(id, type, data);
      if (this.#exit !== undefined) return { stdout: this.#stdout, stderr: this.#stderr, ...this.#exit };
      if ([404, 409].includes(piece.status)) throw new CommandLost(piece.text);
      if (performance.now() > giveUpAtMs)
        throw new Error(`a command in ${this.#id} does not end: ${piece.status} ${piece.text}`);
      if (piece.end !== "cut") await delay(RETRY_MS);
    }
  }

  /** Begins it, as long as no number of it is known; and goes on with it then. */
  async #readOn(numbered: Numbered): Promise<Piece> {
    const path = `/${this.#id}/exec`;
    const cutMs = CUT_MS.least + this.#random.next() * CUT_MS.spread;
    const cutAfterMs = this.#random.next() < LASTS ? undefined : cutMs;
    if (this.#execId === undefined) {
      const command = scriptOf(numbered, Math.floor(this.#random.next() * 1e9));
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify({ command }) };
      return await this.#client.read(`${path}/stream`, init, cutAfterMs);
    }
    const headers: Record<string, string> = this.#lastId === undefined ? {} : { "last-event-id": this.#lastId };
    return await this.#client.read(`${path}/${this.#execId}/stream`, { headers }, cutAfterMs);
  }

  #take(id: string, type: string, data: unknown): void {
    if (id !== "") this.#lastId = id;
    if (type === "connected") this.#begun(String(fieldOf(data, "exec_id")));
    else if (type === "stdout") this.#stdout += String(fieldOf(data, "text"));
    else if (type === "stderr") this.#stderr += String(fieldOf(data, "text"));
    else if (type === "exit") this.#exit = { exitCode: fieldOf(data, "exit_code"), signal: fieldOf(data, "signal") };
    else if (type === "error") this.#fail(String(fieldOf(data, "code")), String(fieldOf(data, "message")));
  }

  #begun(execId: string): void {
    this.#execId = execId;
    this.#onBegun?.();
  }

  #fail(code: string, message: string): void {
    if (["gone", "not_found", "sandbox_not_found"].includes(code)) throw new CommandLost(message);
    // Output that is lost is missed by itself. Of another code it is the last event, and the command may go on.
    if (code === "output_lost") this.#stdout += `(${message})`;
  }
}
