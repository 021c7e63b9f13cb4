import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import { eventsIn, fieldOf } from "./sandboxes.test-kit.ts";

/** The end of what is read of a stream: it was over, was cut here, or broke there. */
export type Piece = {
  status: number;
  events: ReturnType<typeof eventsIn>;
  end: "over" | "cut" | "broken";
  text: string;
};

export type Seen = { state: string; reason: string | undefined };

const RETRY_MS = 100;
const LOOK_MS = 100;
const REQUEST_TIMEOUT_MS = 30_000;
const GIVE_UP_MS = 60_000;

/** Whoever uses sandboxes: asks any of the control planes, and another one when that is away. */
export class ChaosClient {
  readonly #urls: readonly string[];
  readonly #random: Random;
  readonly #problems: string[];
  #cuts = 0;

  /** @param problems takes what no server may say */
  constructor(urls: readonly string[], random: Random, problems: string[]) {
    this.#urls = urls;
    this.#random = random;
    this.#problems = problems;
  }

  /** Streams that were cut here. */
  get cuts(): number {
    return this.#cuts;
  }

  /** Asks until it is answered with success, or refused for good. The first answer may have been lost. */
  async ask(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown; text: string }> {
    const giveUpAtMs = performance.now() + GIVE_UP_MS;
    for (;;) {
      const answer = await this.#askOnce(method, path, body);
      if (answer.status === 500) this.#problems.push(`${method} ${path}: ${answer.text}`);
      if (answer.status !== 0 && answer.status < 500 && answer.status !== 429) return answer;
      if (performance.now() > giveUpAtMs) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
      await delay(RETRY_MS);
    }
  }

  /** What a sandbox is; undefined when there is none. */
  async see(id: string): Promise<Seen | undefined> {
    const { status, json } = await this.ask("GET", `/${id}`);
    if (status === 404) return undefined;
    const reason = fieldOf(json, "reason");
    return { state: String(fieldOf(json, "state")), reason: typeof reason === "string" ? reason : undefined };
  }

  /** All that are there, by id. */
  async list(): Promise<Map<string, string>> {
    const { json } = await this.ask("GET", "");
    if (!Array.isArray(json)) throw new Error("the list of sandboxes is none");
    return new Map(json.map((one: unknown) => [String(fieldOf(one, "id")), String(fieldOf(one, "state"))]));
  }

  /** Makes a sandbox, by its name: which may be there already, where an answer was lost. */
  async create(name: string, spec: Readonly<Record<string, unknown>>): Promise<string> {
    const { status, json, text } = await this.ask("POST", "", { agent_provider: "codex", name, ...spec });
    if (status === 202) return String(fieldOf(json, "id"));
    if (status !== 409) throw new Error(`it was not created: ${status} ${text}`);
    const all = await this.ask("GET", "");
    const found = (Array.isArray(all.json) ? all.json : []).find((one: unknown) => fieldOf(one, "name") === name);
    if (found === undefined) throw new Error(`there is a sandbox ${name}, and it is not listed`);
    return String(fieldOf(found, "id"));
  }

  /** Waits until it is in one of the states, or is no more; rejects when that takes too long. */
  async reaches(id: string, states: readonly string[], timeoutMs = GIVE_UP_MS): Promise<Seen> {
    const giveUpAtMs = performance.now() + timeoutMs;
    for (;;) {
      const seen = (await this.see(id)) ?? { state: "gone", reason: undefined };
      if (states.includes(seen.state) || seen.state === "gone") return seen;
      if (performance.now() > giveUpAtMs) throw new Error(`${id} is ${seen.state} and not ${states.join(" or ")}`);
      await delay(LOOK_MS);
    }
  }

  /** Reads a stream of events from any of the control planes: to its end, or until it is cut after that time. */
  async read(path: string, init: RequestInit, cutAfterMs: number | undefined): Promise<Piece> {
    const cut = new AbortController();
    const timer = cutAfterMs === undefined ? undefined : setTimeout(() => cut.abort(), cutAfterMs);
    const decoder = new TextDecoder();
    let [status, text]: [number, string] = [0, ""];
    try {
      const response = await fetch(this.#url(path), { ...init, signal: cut.signal });
      status = response.status;
      for await (const piece of response.body ?? []) text += decoder.decode(piece, { stream: true });
      return { status, events: status === 200 ? eventsIn(text) : [], end: "over", text };
    } catch {
      if (cut.signal.aborted) this.#cuts++;
      // What came of an event that is not whole does not count.
      const whole = text.slice(0, text.lastIndexOf("\n\n") + 2);
      return { status, events: eventsIn(whole), end: cut.signal.aborted ? "cut" : "broken", text: whole };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Status 0: it was not answered. */
  async #askOnce(
    method: string,
    path: string,
    body: unknown,
  ): Promise<{ status: number; json: unknown; text: string }> {
    try {
      const response = await fetch(this.#url(path), {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      const text = await response.text();
      return {
        status: response.status,
        text,
        json: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : undefined,
      };
    } catch (error) {
      return { status: 0, text: String(error), json: undefined };
    }
  }

  #url(path: string): string {
    const url = this.#urls[Math.floor(this.#random.next() * this.#urls.length)] ?? "";
    return `${url}/api/v1/sandboxes${path}`;
  }
}
