import { z } from "zod";
import type { JobKind } from "../../fabric/kinds.ts";

/** The kind of the job by which a node has a sandbox, and its payload. */
export const SANDBOX_JOB_KIND = "sandbox";
export type SandboxJobPayload = { sandbox_id: string };

/** The jobs by which nodes have sandboxes. */
export function sandboxJobKind(leaseMs: number): JobKind {
  return {
    name: SANDBOX_JOB_KIND,
    payload: z.strictObject({ sandbox_id: z.uuid() }),
    enqueue: "nobody",
    claim: "both",
    needsAdmission: true,
    leaseMs,
  };
}
