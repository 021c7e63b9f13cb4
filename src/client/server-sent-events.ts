import { sleep, type Clock } from "../core/clock.ts";
import type { Json } from "./api.ts";
import { connectionFailure, type Target } from "./client.ts";
import { CliError } from "./failure.ts";
import { linesOf } from "./lines.ts";

/** An event of a stream: `event` is empty where the server does not name it, `id` that of this event alone. */
export type ReceivedEvent = { event: string; id?: string; data: Json };

/** The same with its data as it came. */
export type EventText = { event: string; id?: string; text: string };

const PAUSE_MS = 1_000;
/** Connections in a row that brought nothing. */
const MOST_IN_VAIN = 10;

/**
 * What comes over as many connections as it takes, until the caller leaves. `connect` opens the next one, which goes on
 * where the one before broke; a `CliError` of it is final. Throws a `CliError` when the server stays away.
 */
export async function* overConnections<T>(
  clock: Clock,
  target: Target,
  connect: () => AsyncIterable<T>,
): AsyncGenerator<T> {
  for (let inVain = 0; ; inVain++) {
    if (inVain > MOST_IN_VAIN) throw new CliError(`${target.url} ends the connection again and again`);
    if (inVain > 0) await sleep(clock, PAUSE_MS);
    try {
      for await (const event of connect()) {
        inVain = 0;
        yield event;
      }
    } catch (error) {
      if (error instanceof CliError) throw error;
      if (inVain >= MOST_IN_VAIN) throw connectionFailure(error, target);
    }
  }
}

/**
 * Reads an answer of the type `text/event-stream`; a comment is no event. Throws a `CliError` for data that is none.
 * `onPosition`: called with an id that comes without an event: where the stream is.
 */
export async function* eventsIn(
  body: AsyncIterable<Uint8Array>,
  target: Target,
  onPosition?: (id: string) => void,
): AsyncGenerator<ReceivedEvent> {
  for await (const { text, ...event } of eventTextsIn(body, onPosition)) yield { ...event, data: dataIn(text, target) };
}

/** As `eventsIn`, for data whose numbers JavaScript would not keep. */
export async function* eventTextsIn(
  body: AsyncIterable<Uint8Array>,
  onPosition?: (id: string) => void,
): AsyncGenerator<EventText> {
  let event = "";
  let id: string | undefined;
  for await (const line of linesOf(body)) {
    const [field, value] = splitField(line);
    if (field === "event") event = value;
    else if (field === "id") id = value;
    else if (field === "data") {
      yield { event, ...(id === undefined ? {} : { id }), text: value };
      [event, id] = ["", undefined];
    } else if (field === "retry" && id !== undefined) {
      onPosition?.(id);
      id = undefined;
    }
  }
}

/** The server writes each event as one line of each field, `data` last; what comes first is no event, with `retry` last. */
function splitField(line: string): [string, string] {
  const colon = line.indexOf(": ");
  return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 2)];
}

export function dataIn(text: string, { url }: Target): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Told below.
  }
  throw new CliError(`what answers at ${url} is no engine`);
}
