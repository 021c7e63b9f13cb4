import { z } from "zod";
import type { Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import type { Workers } from "../../fabric/workers.ts";
import { SANDBOX_JOB_KIND } from "../contract/sandbox-job.ts";
import { readJson, writeJson } from "./leased-files.ts";

/** The worker that a node is to the control plane. Its id is the name under which the node holds its jobs. */
export type OwnWorker = { workerId: string; token: string };

const kept = z.object({ worker_id: z.string(), token: z.string() });

const ENGINE: Caller = { subject: "engine", kind: "internal", role: "admin", databases: undefined };
const ORIGIN: Origin & { caller: Caller } = { caller: ENGINE, address: "", requestId: "" };

/**
 * The worker of a node whose process has the catalog: nobody needs to admit it. It makes itself one, once, and keeps the
 * token in a file that only its user reads; another when that one was revoked. With the token it connects to the other
 * processes of the control plane.
 */
export async function ownWorker(
  path: string,
  name: string,
  workers: Pick<Workers, "authenticate" | "create">,
): Promise<OwnWorker> {
  const before = await readJson(path, kept);
  if (before !== undefined) {
    const { worker_id: workerId, token } = before;
    if ((await workers.authenticate(token))?.id === workerId) return { workerId, token };
  }
  const made = await workers.create({ name, capabilities: [SANDBOX_JOB_KIND] }, ORIGIN);
  await writeJson(path, { worker_id: made.worker.id, token: made.token });
  return { workerId: made.worker.id, token: made.token };
}
