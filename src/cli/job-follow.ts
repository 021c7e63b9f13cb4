import { sleep } from "../core/clock.ts";
import type { Json } from "./api.ts";
import { apiFailure, connectionFailure, openClient, readApiError, type EngineClient, type Target } from "./client.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failure.ts";
import { linesOf } from "./lines.ts";

/** An event of `GET /v1/jobs/{id}/events`. */
export type JobEvent = { event: string; id?: number; data: Json };

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;
const PAUSE_MS = 1_000;
/** Connections in a row that brought nothing. */
const MOST_IN_VAIN = 5;

/**
 * The events of a job until it is finished, over as many connections as that takes; each line of the log comes once.
 * Throws a `CliError` for a job that is not there, and when the server stays away.
 */
export async function* followJob(context: CliContext, target: Target, jobId: string): AsyncGenerator<JobEvent> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  let lastId = 0;
  try {
    for (let inVain = 0; ; inVain++) {
      if (inVain > MOST_IN_VAIN) throw new CliError(`${target.url} ends the connection again and again`);
      if (inVain > 0) await sleep(context.deps.clock, PAUSE_MS);
      try {
        for await (const event of eventsAfter(client, target, jobId, lastId)) {
          inVain = 0;
          lastId = event.id ?? lastId;
          yield event;
          if (event.event === "end") return;
        }
      } catch (error) {
        if (error instanceof CliError) throw error;
        if (inVain >= MOST_IN_VAIN) throw connectionFailure(error, target);
      }
    }
  } finally {
    await client.close();
  }
}

async function* eventsAfter(
  client: EngineClient,
  target: Target,
  jobId: string,
  lastId: number,
): AsyncGenerator<JobEvent> {
  const reply = await client.send({
    method: "GET",
    path: `/v1/jobs/${encodeURIComponent(jobId)}/events`,
    headers: { accept: "text/event-stream", "last-event-id": String(lastId) },
    timeoutMs: SILENCE_MS,
  });
  // The server is about to stop, or many watch there: a moment later there may be another one.
  if (reply.status === 503 || reply.status === 429) throw new Error((await readApiError(reply)).message);
  if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
  let event = "";
  let id: number | undefined;
  for await (const line of linesOf(reply.body)) {
    const [field, value] = splitField(line);
    if (field === "event") [event, id] = [value, undefined];
    else if (field === "id") id = Number(value);
    else if (field === "data") yield { event, ...(id === undefined ? {} : { id }), data: dataIn(value, target) };
  }
}

/** The server writes each event as one line of each field, `data` last. */
function splitField(line: string): [string, string] {
  const colon = line.indexOf(": ");
  return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 2)];
}

function dataIn(text: string, { url }: Target): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Told below.
  }
  throw new CliError(`what answers at ${url} is no engine`);
}
