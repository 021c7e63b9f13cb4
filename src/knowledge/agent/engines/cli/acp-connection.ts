import { z } from "zod";
import type { Clock } from "../../../../core/clock.ts";
import type { AgentProcess } from "./agent-process.ts";
import { AgentFault } from "./agent-fault.ts";

const SHOWN_CHARS = 200;
const METHOD_NOT_FOUND = -32_601;

const id = z.union([z.string(), z.number(), z.null()]);
const failure = z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() });
/** A request, a notification or a reply of JSON-RPC: which of them, its fields say. */
const message = z.object({
  id: id.optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: failure.optional(),
});
type Message = z.output<typeof message>;

/** What the program may tell and ask. Whatever a hook throws ends the connection. */
export type AcpHooks = {
  onNotification: (method: string, params: unknown) => void;
  /** The answer to a request; undefined for a method that is not offered. */
  onRequest: (method: string, params: unknown) => object | undefined;
};

type Waiting = { what: string; settle: PromiseWithResolvers<unknown> };

/**
 * The Agent Client Protocol with one program: JSON-RPC, a message a line. Any fault of the program ends it, and rejects
 * whatever waits.
 */
export class AcpConnection {
  readonly #program: AgentProcess;
  readonly #hooks: AcpHooks;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #fault: Error | undefined;

  constructor(program: AgentProcess, hooks: AcpHooks, clock: Clock) {
    this.#program = program;
    this.#hooks = hooks;
    this.#clock = clock;
    void this.#read();
  }

  /**
   * Asks the program for something; `what` completes "it did not …". Rejects with `AgentFault`, also when it takes longer
   * than `timeoutMs`.
   */
  async ask(what: string, method: string, params: object, timeoutMs?: number): Promise<unknown> {
    if (this.#fault !== undefined) throw this.#fault;
    const requestId = ++this.#lastId;
    const settle = Promise.withResolvers<unknown>();
    this.#waiting.set(requestId, { what, settle });
    this.#send({ id: requestId, method, params });
    if (timeoutMs === undefined) return await settle.promise;
    const late = (): void => {
      const message = `it did not ${what} within ${timeoutMs / 1_000} s`;
      this.#fail(new AgentFault(message, { code: "engine_timeout" }));
    };
    const timer = this.#clock.after(timeoutMs, late, { background: true });
    try {
      return await settle.promise;
    } finally {
      timer.cancel();
    }
  }

  async #read(): Promise<void> {
    try {
      for await (const line of this.#program.lines()) {
        if (this.#fault !== undefined) return;
        if (line.trim() !== "") this.#take(messageIn(line));
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #take({ id: messageId, method, params, result, error }: Message): void {
    if (method === undefined) {
      this.#settle(messageId, { result, error });
      return;
    }
    if (messageId === undefined) this.#hooks.onNotification(method, params);
    else this.#answer(messageId, method, params);
  }

  #answer(messageId: Message["id"], method: string, params: unknown): void {
    const answer = this.#hooks.onRequest(method, params);
    if (answer !== undefined) this.#send({ id: messageId, result: answer });
    else this.#send({ id: messageId, error: { code: METHOD_NOT_FOUND, message: `${method} is not offered here` } });
  }

  /** Replies to what nobody asked are passed over. */
  #settle(messageId: Message["id"], { result, error }: Pick<Message, "result" | "error">): void {
    if (typeof messageId !== "number") return;
    const waiting = this.#waiting.get(messageId);
    this.#waiting.delete(messageId);
    if (waiting === undefined) return;
    if (error === undefined) waiting.settle.resolve(result);
    else waiting.settle.reject(new AgentFault(`it did not ${waiting.what}: ${wordsOf(error)}`));
  }

  #send(sent: object): void {
    try {
      this.#program.write(JSON.stringify({ jsonrpc: "2.0", ...sent }));
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#fault ??= error as Error;
    for (const { settle } of this.#waiting.values()) settle.reject(this.#fault);
    this.#waiting.clear();
  }
}

/** Throws `AgentFault`. */
function messageIn(line: string): Message {
  try {
    return message.parse(JSON.parse(line));
  } catch (error) {
    const fault = `it said what is no message of the protocol: ${line.slice(0, SHOWN_CHARS)}`;
    throw new AgentFault(fault, { cause: error });
  }
}

const detailed = z.object({ details: z.string() });

/** Programs tell what happened beside the name of the error. */
function wordsOf({ message: words, data }: z.output<typeof failure>): string {
  const { data: told } = detailed.safeParse(data);
  return told === undefined ? words : `${words}: ${told.details}`;
}
