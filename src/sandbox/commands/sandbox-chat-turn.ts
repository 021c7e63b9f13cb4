import { sleep } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { onStopSignal } from "../../core/stop-signal.ts";
import { callTarget, type Json } from "../../client/api.ts";
import { apiFailure, connectionFailure, readApiError, type EngineClient, type Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { sessionPath } from "./sandbox-path.ts";
import { eventsIn, overConnections, type ReceivedEvent } from "../../client/server-sent-events.ts";
import { visible } from "../../client/text.ts";

type TurnOptions = { client: EngineClient; target: Target; sessionId: string; json: boolean };

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;
const INTERRUPT_TIMEOUT_MS = 10_000;
/** The end of a turn is in the stream and in the answer to its message, one soon after the other. */
const SOON_MS = 2_000;
/** As a shell has it for a command that SIGINT ended. */
const INTERRUPTED = 130;
/** The server may be back in a moment. */
const PASSING: ReadonlySet<number> = new Set([429, 503, 504]);
/** About the connection alone. */
const NOT_PRINTED: ReadonlySet<unknown> = new Set(["connected", "keepalive", "reconnect"]);
/** Of no server: the stream has ended for good. */
const ENDED = "ended";

/**
 * One message and its answer. The stream of the session is opened before the message is sent, so that nothing is missed;
 * it goes on over as many connections as it takes. When the answer to the message itself is lost, the stream has the end.
 */
export class ChatTurn {
  readonly #context: CliContext;
  readonly #options: TurnOptions;
  /** Rejects when the message is not taken. */
  readonly #refused = Promise.withResolvers<never>();
  #lastId: string | undefined;
  #sent: Promise<void> | undefined;
  #isInterrupted = false;
  /** What was printed of a text that is not complete. */
  #printed = "";

  constructor(context: CliContext, options: TurnOptions) {
    this.#context = context;
    this.#options = options;
    // Nobody may listen when it happens.
    this.#refused.promise.catch(() => undefined);
  }

  /** The exit code. Throws when the agent failed, or does not take the message. */
  async run(message: Json): Promise<number> {
    const { clock } = this.#context.deps;
    const events = overConnections(clock, this.#options.target, () => this.#events());
    const letSignalsBe = onStopSignal(() => {
      this.#interrupt().catch((error: unknown) => this.#context.warn(visible(messageOf(error))));
    });
    try {
      for (;;) {
        const step = await Promise.race([events.next(), this.#refused.promise]);
        if (step.done === true) throw new Error("events end by themselves");
        const code = await this.#take(step.value, message);
        if (code !== undefined) return code;
      }
    } finally {
      letSignalsBe();
      if (this.#printed !== "") await this.#context.writeLine();
    }
  }

  /** The exit code, once there is one. */
  async #take({ id, data }: ReceivedEvent, message: Json): Promise<number | undefined> {
    this.#lastId = id ?? this.#lastId;
    const { event_type: type } = data;
    if (type === "connected") this.#sent ??= this.#send(message);
    if (type === ENDED) throw new CliError("the sandbox was deleted");
    await this.#tell(data);
    if ((type === "session_completed" || type === "session_failed") && (await this.#isOwn())) {
      if (type === "session_completed") return this.#isInterrupted ? INTERRUPTED : EXIT.ok;
      throw new CliError(`the agent failed: ${visible(String(fieldsOf(data)["error"]))}`);
    }
    if (!this.#context.readerGone) return undefined;
    await this.#interrupt();
    return EXIT.ok;
  }

  /** Whether the turn that has ended is that of the message: another may have ended as it was sent. */
  async #isOwn(): Promise<boolean> {
    if (this.#sent === undefined) return false;
    const late = sleep(this.#context.deps.clock, SOON_MS).then(() => false);
    return await Promise.race([this.#sent.then(() => true), late]);
  }

  /** Resolves when the turn has ended, or when only the stream can say so. Never rejects. */
  async #send(message: Json): Promise<void> {
    const { client, target, sessionId } = this.#options;
    try {
      const reply = await client.send({
        method: "POST",
        path: `${sessionPath(sessionId)}/messages`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(message),
        timeoutMs: SILENCE_MS,
      });
      if (reply.status !== 200) {
        const error = await readApiError(reply);
        // That the agent failed is in the stream, too.
        if (error.code === "agent_communication_error") return;
        if (error.status !== 503) return this.#refused.reject(apiFailure(error, target));
        return await this.#checkIsTaken(apiFailure(error, target));
      }
      // What is in it has come as events; it ends when the turn does.
      for await (const _ of reply.body);
    } catch (error) {
      await this.#checkIsTaken(connectionFailure(error, target));
    }
  }

  /** The server may have stopped before it took the message, or after. */
  async #checkIsTaken(failure: CliError): Promise<void> {
    const { target, sessionId } = this.#options;
    // A turn that has just ended is in the stream by then.
    await sleep(this.#context.deps.clock, SOON_MS);
    const session = await callTarget(this.#context, target, "GET", `${sessionPath(sessionId)}?limit=1`).catch(
      () => ({}),
    );
    if ((session as Json)["state"] !== "processing") this.#refused.reject(failure);
  }

  /** Without `reconnect` before it, the end of the stream is the end of the sandbox. */
  async *#events(): AsyncGenerator<ReceivedEvent> {
    const { client, target, sessionId } = this.#options;
    const reply = await client.send({
      method: "GET",
      path: `${sessionPath(sessionId)}/stream`,
      headers: { accept: "text/event-stream", ...(this.#lastId !== undefined && { "last-event-id": this.#lastId }) },
      timeoutMs: SILENCE_MS,
    });
    if (reply.status !== 200) {
      const error = await readApiError(reply);
      if (PASSING.has(reply.status)) throw new Error(error.message);
      throw apiFailure(error, target);
    }
    let comesAgain = false;
    for await (const received of eventsIn(reply.body, target, (id) => (this.#lastId = id))) {
      comesAgain = received.data["event_type"] === "reconnect";
      yield received;
    }
    if (!comesAgain) yield { event: "", data: { event_type: ENDED } };
  }

  async #tell(event: Json): Promise<void> {
    const { event_type: type } = event;
    if (this.#options.json) {
      if (!NOT_PRINTED.has(type)) await this.#context.writeLine(JSON.stringify(event));
      return;
    }
    const data = fieldsOf(event);
    if (type === "text_delta") await this.#tellText(String(data["text"]));
    else if (type === "text_complete") await this.#tellRest(String(data["text"]));
    else if (type === "tool_use_start") {
      this.#context.note(visible(`[${String(data["name"])}] ${JSON.stringify(data["input"] ?? {})}`));
    } else if (type === "error" && data["code"] !== "agent_communication_error") {
      // That one comes again, as the end of the turn.
      this.#context.warn(visible(String(data["message"])));
    }
  }

  async #tellText(text: string): Promise<void> {
    this.#printed += text;
    await this.#context.write(visibleText(text));
  }

  /** Of a text some of which may have come in pieces. */
  async #tellRest(text: string): Promise<void> {
    const rest = text.startsWith(this.#printed) ? text.slice(this.#printed.length) : "";
    this.#printed = "";
    await this.#context.writeLine(visibleText(rest));
  }

  async #interrupt(): Promise<void> {
    const { client, sessionId } = this.#options;
    this.#isInterrupted = true;
    const path = `${sessionPath(sessionId)}/interrupt`;
    const reply = await client.send({ method: "POST", path, timeoutMs: INTERRUPT_TIMEOUT_MS });
    // A turn that has ended by itself needs none.
    if (reply.status !== 200 && reply.status !== 409) throw new Error((await readApiError(reply)).message);
  }
}

function fieldsOf({ data }: Json): Json {
  return typeof data === "object" && data !== null ? (data as Json) : {};
}

/** Lines stay lines. */
function visibleText(text: string): string {
  return text.replace(/[^\n\t]+/g, visible);
}
