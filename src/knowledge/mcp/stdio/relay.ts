import { CliError } from "../../../client/failure.ts";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import { linesOf } from "../../../core/lines.ts";
import { MCP_LIMITS } from "../limits.ts";
import type { HomeEngine } from "./home-engine.ts";
import { cancelledBy, failure, isMessage, keyOf, type Message } from "./messages.ts";

export type RelayOptions = {
  input: AsyncIterable<Uint8Array>;
  write: (text: string) => Promise<void>;
  engine: Pick<HomeEngine, "ask">;
  clock: Clock;
};

/** A request that lasts until its client leaves. */
const LISTEN = "subscriptions/listen";
/** How long answers are waited for when the client has closed its side. */
const FINISH_MS = 10_000;

/**
 * MCP over stdio: each message, one a line, goes to the engine at the socket, and what it answers comes back as a line. There
 * are no sessions, so a request that was not answered when an engine ended is sent again to the next, and every request is
 * answered once. Where the first copy was done already, the second finds that: rows by their key, memories and entities by
 * what they say, a transcript by its digest. Two answers differ: a memory that is erased is not found the second time, and
 * one with an end of its validity is saved again.
 */
export class StdioRelay {
  readonly #options: RelayOptions;
  readonly #pending = new Map<string, { method: unknown; cancel: AbortController }>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Until the client closes its side, or `stop` is aborted, and what was asked is answered. */
  async run(stop: AbortSignal): Promise<void> {
    try {
      await this.#readAll();
    } catch (error) {
      if (!stop.aborted) throw error;
    }
    for (const { method, cancel } of this.#pending.values()) if (method === LISTEN) cancel.abort();
    const { clock } = this.#options;
    const tooLate = new Promise<void>((resolve) => void clock.after(FINISH_MS, resolve, { background: true }));
    await Promise.race([Promise.allSettled(this.#running), tooLate]);
    for (const { cancel } of this.#pending.values()) cancel.abort();
  }

  async #readAll(): Promise<void> {
    const maxLineBytes = MCP_LIMITS.bodyBytes;
    const tooLong = () => new CliError(`a message on standard input is longer than ${maxLineBytes} bytes`);
    for await (const line of linesOf(this.#options.input, { maxLineBytes, tooLong })) await this.#take(line);
  }

  async #take(line: string): Promise<void> {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return await this.#write(failure(null, -32_700, "the message is no JSON"));
    }
    for (const message of Array.isArray(value) ? (value as unknown[]) : [value]) await this.#takeMessage(message);
  }

  async #takeMessage(message: unknown): Promise<void> {
    if (!isMessage(message)) return await this.#write(failure(null, -32_600, "the message is no JSON object"));
    const cancelled = cancelledBy(message);
    if (cancelled !== undefined) this.#pending.get(cancelled)?.cancel.abort();
    const key = keyOf(message);
    // Notifications tell nothing that an engine without sessions would keep; it asks clients nothing, so no answers come.
    if (!("method" in message) || !("id" in message)) return;
    if (key === undefined)
      return await this.#write(failure(null, -32_600, "the id of a request is a text or a number"));
    const running = this.#request(message, key).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #request(request: Message, key: string): Promise<void> {
    const pending = { method: request["method"], cancel: new AbortController() };
    const { signal } = pending.cancel;
    this.#pending.set(key, pending);
    try {
      await this.#options.engine.ask(request, { signal, onMessage: (message) => this.#write(message) });
    } catch (error) {
      if (!signal.aborted) await this.#write(failure(request["id"], -32_603, messageOf(error)));
    } finally {
      if (this.#pending.get(key) === pending) this.#pending.delete(key);
    }
  }

  #write(message: Message): Promise<void> {
    return this.#options.write(`${JSON.stringify(message)}\n`);
  }
}
