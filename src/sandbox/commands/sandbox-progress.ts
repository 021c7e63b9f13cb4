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
import { CliError } from "../../client/failure.ts";
import { sandboxPath } from "./sandbox-path.ts";
import { eventsIn, overConnections, type ReceivedEvent } from "../../client/server-sent-events.ts";

const TIMEOUT_MS = 60_000;

/** A step of making a sandbox, as its events tell. */
export type Progress = { step: string; status: string };

/**
 * Tells of the steps of making a sandbox as they happen, from the first on. Resolves when it runs; throws when it could
 * not be made, saying why, or was deleted.
 */
export async function followProvisioning(
  context: CliContext,
  target: Target,
  { id, onStep }: { id: string; onStep: (progress: Progress) => void },
): Promise<void> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  let lastId: string | undefined;
  const connect = () => eventsOf(client, target, { id, lastId, onPosition: (at) => (lastId = at) });
  try {
    for await (const { id: at, data: event } of overConnections(context.deps.clock, target, connect)) {
      lastId = at ?? lastId;
      const { event_type: type, data } = event;
      const fields = data as Json;
      if (type === "provisioning_step") onStep({ step: String(fields["step"]), status: String(fields["status"]) });
      if (type !== "sandbox_state_changed") continue;
      const { to, reason } = fields;
      if (to === "running") return;
      if (to === "failed") throw new CliError(`sandbox ${id} failed: ${String(reason)}`);
    }
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

type Position = { id: string; lastId: string | undefined; onPosition: (id: string) => void };

async function* eventsOf(
  client: EngineClient,
  target: Target,
  { id, lastId, onPosition }: Position,
): AsyncGenerator<ReceivedEvent> {
  const reply = await client.send({
    method: "GET",
    path: `${sandboxPath(id)}/stream?from=start`,
    headers: { accept: "text/event-stream", ...(lastId !== undefined && { "last-event-id": lastId }) },
    timeoutMs: TIMEOUT_MS,
  });
  if (reply.status !== 200) {
    const error = await readApiError(reply);
    if (reply.status === 429 || reply.status === 503) throw new Error(error.message);
    throw apiFailure(error, target);
  }
  yield* eventsIn(reply.body, target, onPosition);
}
