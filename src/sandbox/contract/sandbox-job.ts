import { z } from "zod";
import type { JobKind } from "../../fabric/kinds.ts";
import { SANDBOX_JOB_KIND } from "./control-port.ts";

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
