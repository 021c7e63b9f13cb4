import type { Json } from "../../client/api.ts";
import { apiFailure, openClient, readApiError, type EngineClient, type Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { eventsIn, overConnections } from "../../client/server-sent-events.ts";

/** An event of `GET /v1/jobs/{id}/events`. */
export type JobEvent = { event: string; id?: number; data: Json };

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;

/**
 * The events of a job until it is finished, over as many connections as that takes; each line of the log comes once.
 * Throws a `CliError` for a job that is not there, and when the server stays away.
 */
export async function* followJob(context: CliContext, target: Target, jobId: string): AsyncGenerator<JobEvent> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  let lastId = 0;
  try {
    const events = overConnections(context.deps.clock, target, () => eventsAfter(client, target, jobId, lastId));
    for await (const event of events) {
      lastId = event.id ?? lastId;
      yield event;
      if (event.event === "end") return;
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
  for await (const { event, id, data } of eventsIn(reply.body, target)) {
    yield { event, ...(id === undefined ? {} : { id: Number(id) }), data };
  }
}
