import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import { mayMove, SANDBOX_ACTIONS, SANDBOX_STATES, type SandboxState } from "../../src/sandbox/contract/states.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";

const CUT_MS = { least: 100, spread: 3_000 };
const RETRY_MS = 100;

/** Follows the events of a sandbox from its first one to its end, over connections that are cut. */
export class EventFollower {
  readonly #client: ChaosClient;
  readonly #random: Random;
  readonly #id: string;
  readonly #numbers: number[] = [];
  readonly #problems: string[] = [];
  readonly #ended: Promise<void>;
  #state: string | undefined;
  #returns = 0;

  constructor(client: ChaosClient, random: Random, id: string) {
    this.#client = client;
    this.#random = random;
    this.#id = id;
    this.#ended = this.#follow();
    this.#ended.catch(() => undefined);
  }

  /** Events that came. */
  get count(): number {
    return this.#numbers.length;
  }

  /** How often it waited for its node to come back. */
  get returns(): number {
    return this.#returns;
  }

  /** After the sandbox was deleted: resolves, when its events are over, to what is wrong with them. */
  async end(): Promise<string[]> {
    await this.#ended;
    return this.#problems.map((problem) => `events of ${this.#id}: ${problem}`);
  }

  async #follow(): Promise<void> {
    for (;;) {
      const last = this.#numbers.at(-1);
      const init = last === undefined ? {} : { headers: { "last-event-id": String(last) } };
      const cutAfterMs = CUT_MS.least + this.#random.next() * CUT_MS.spread;
      const { status, events, end } = await this.#client.read(`/${this.#id}/stream?from=start`, init, cutAfterMs);
      let isToComeAgain = false;
      for (const { id, type, data } of events) {
        if (type === "reconnect") isToComeAgain = true;
        this.#take(id, type, data);
      }
      // It was deleted while nobody followed; or its stream has told of it.
      if (status === 404 || (status === 200 && end === "over" && !isToComeAgain)) return;
      if (end !== "cut") await delay(RETRY_MS);
    }
  }

  #take(id: string, type: string, data: unknown): void {
    if (id === "") {
      if (type === "error") this.#problems.push(JSON.stringify(data));
      return;
    }
    const [number, wanted] = [Number(id), (this.#numbers.at(-1) ?? 0) + 1];
    if (number !== wanted) this.#problems.push(`number ${number} came instead of ${wanted}`);
    this.#numbers.push(number);
    if (type === "sandbox_state_changed") this.#move(String(fieldOf(data, "from")), String(fieldOf(data, "to")));
  }

  #move(from: string, to: string): void {
    if (this.#state !== undefined && from !== this.#state) {
      this.#problems.push(`it was ${this.#state}, and went from ${from} to ${to}`);
    } else if (this.#state !== undefined && !isAllowed(from, to)) this.#problems.push(`it went from ${from} to ${to}`);
    if (this.#state !== undefined && to === "pending") this.#returns++;
    this.#state = to;
  }
}

function isAllowed(from: string, to: string): boolean {
  const [before, after] = [stateOf(from), stateOf(to)];
  if (mayMove(before, after, "node") || mayMove(before, after, "control plane")) return true;
  return Object.values(SANDBOX_ACTIONS).some((action) => {
    const allowed: readonly SandboxState[] = action.from;
    return action.to === after && allowed.includes(before);
  });
}

function stateOf(text: string): SandboxState {
  const state = SANDBOX_STATES.find((one) => one === text);
  if (state === undefined) throw new Error(`${text} is no state of a sandbox`);
  return state;
}
