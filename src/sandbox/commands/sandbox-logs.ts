import type { Json } from "../../client/api.ts";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  type EngineClient,
  type Target,
} from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { linesOf } from "../../client/lines.ts";
import { sandboxPath } from "./sandbox-path.ts";
import { eventsIn, overConnections, type ReceivedEvent } from "../../client/server-sent-events.ts";
import { visible } from "../../client/text.ts";

export type LogRequest = { id: string; tail: string; follow: boolean; json: true | undefined };

const TIMEOUT_MS = 60_000;

/**
 * Prints lines of a sandbox's log, with `json` as NDJSON; those that follow until the sandbox is deleted, over as many
 * connections as that takes.
 */
export async function printLogs(context: CliContext, target: Target, request: LogRequest): Promise<number> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  const log = new LogReader(client, target, request);
  try {
    const lines = request.follow ? log.follow(context) : log.past();
    for await (const line of lines) {
      await context.writeLine(request.json ? line : visible(line));
      if (context.readerGone) break;
    }
    return EXIT.ok;
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

class LogReader {
  readonly #client: EngineClient;
  readonly #target: Target;
  readonly #request: LogRequest;
  #lastId: string | undefined;

  constructor(client: EngineClient, target: Target, request: LogRequest) {
    this.#client = client;
    this.#target = target;
    this.#request = request;
  }

  async *past(): AsyncGenerator<string> {
    yield* linesOf((await this.#ask(this.#request.json ? "application/x-ndjson" : "text/plain")).body);
  }

  async *follow(context: CliContext): AsyncGenerator<string> {
    for await (const { id, data } of overConnections(context.deps.clock, this.#target, () => this.#events())) {
      this.#lastId = id ?? this.#lastId;
      const { event_type: type, data: fields } = data;
      if (type === ENDED) return;
      if (type === "log_line") yield this.#lineOf(data);
      else if (type === "error") context.warn(visible(String((fields as Json)["message"])));
    }
  }

  /** Without `reconnect` before it, the end of the stream is the end of the sandbox. */
  async *#events(): AsyncGenerator<ReceivedEvent> {
    let comesAgain = false;
    const { body } = await this.#ask("text/event-stream");
    for await (const received of eventsIn(body, this.#target, (id) => (this.#lastId = id))) {
      comesAgain = received.data["event_type"] === "reconnect";
      yield received;
    }
    if (!comesAgain) yield { event: "", data: { event_type: ENDED } };
  }

  async #ask(accept: string) {
    const { id, tail, follow } = this.#request;
    const query = new URLSearchParams({ tail, ...(follow && { follow: "true" }) });
    const reply = await this.#client.send({
      method: "GET",
      path: `${sandboxPath(id)}/logs?${query.toString()}`,
      headers: { accept, ...(this.#lastId !== undefined && { "last-event-id": this.#lastId }) },
      timeoutMs: TIMEOUT_MS,
    });
    if (reply.status === 200) return reply;
    const error = await readApiError(reply);
    if (follow && (reply.status === 429 || reply.status === 503)) throw new Error(error.message);
    throw apiFailure(error, this.#target);
  }

  #lineOf({ id, timestamp, data }: Json): string {
    const { stream, line } = data as Json;
    if (this.#request.json) return JSON.stringify({ seq: Number(id), timestamp, stream, line });
    return String(line).replaceAll(/[\r\n]+/g, " ");
  }
}

/** Of no server: the stream has ended for good. */
const ENDED = "ended";
