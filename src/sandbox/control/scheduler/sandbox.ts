import type { RecordRow } from "../../../catalog/records.ts";
import type { Envelope } from "../../../auth/sealing/envelope.ts";
import { jsonOf, optionalNumber, optionalText, ownerOf, textOf, type JobOwner } from "../../../fabric/job.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import type { LogCount } from "../events/quota.ts";
import { SANDBOX_STATES, SANDBOX_WANTS, type SandboxState, type SandboxWant } from "../../contract/states.ts";
import { specOfColumn } from "./sealed-env.ts";

/** A sandbox as the control plane keeps it. Times are the database's, in ms since 1970. */
export type Sandbox = {
  id: string;
  /** Its owner: see `auth/owner.ts`. */
  tenant: string;
  /** With whose rights it has its credentials: who made it, or who it was handed to. */
  owner: JobOwner;
  /** Of its maker and of admins: environment variables may be secrets. Those that are sealed are not in it. */
  spec: SandboxSpec;
  /** See `openEnv`. */
  sealedEnv: Envelope | undefined;
  state: SandboxState;
  wanted: SandboxWant;
  version: number;
  /** Why it is in that state, for people. */
  reason: string | undefined;
  /** The node that has it, or had it last. */
  nodeId: string | undefined;
  jobId: string | undefined;
  /** The newest figures that the node reported, as the specification has them. */
  stats: Readonly<Record<string, number>> | undefined;
  createdAtMs: number;
  updatedAtMs: number;
  stateSinceMs: number;
  /** When `timeout_secs` have passed, while it is up. */
  expiresAtMs: number | undefined;
} & LogCount;

export const SANDBOX_COLUMNS =
  "id, tenant, spec, subject, caller_kind, role, databases, state, wanted, version, reason, node_id, job_id, stats, " +
  "created_at_ms, updated_at_ms, state_since_ms, expires_at_ms, first_seq, events_bytes";

export function toSandbox(row: RecordRow): Sandbox {
  return {
    id: textOf(row, "id"),
    tenant: textOf(row, "tenant"),
    owner: { ...ownerOf(row), owner: textOf(row, "tenant") },
    ...specOfColumn(textOf(row, "spec")),
    state: stateOf(row),
    wanted: wantOf(row),
    version: Number(row["version"]),
    reason: optionalText(row, "reason"),
    nodeId: optionalText(row, "node_id"),
    jobId: optionalText(row, "job_id"),
    stats: jsonOf(row, "stats") as Record<string, number> | undefined,
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
    stateSinceMs: Number(row["state_since_ms"]),
    expiresAtMs: optionalNumber(row, "expires_at_ms"),
    firstSeq: Number(row["first_seq"]),
    eventsBytes: Number(row["events_bytes"]),
  };
}

/** Labels in a form in which each can be searched for: see `labelInColumn`. */
export function labelsToColumn(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(labels);
}

/**
 * The label as a part of that text. It is nowhere else in it: a quote inside a name or a value has a backslash before
 * it, and names have neither.
 */
export function labelInColumn([name, value]: readonly [string, string]): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

function stateOf(row: RecordRow): SandboxState {
  const state = SANDBOX_STATES.find((one) => one === row["state"]);
  if (state === undefined) throw new Error(`the state of a stored sandbox is ${String(row["state"])}`);
  return state;
}

function wantOf(row: RecordRow): SandboxWant {
  const wanted = SANDBOX_WANTS.find((one) => one === row["wanted"]);
  if (wanted === undefined) throw new Error(`what is wanted of a stored sandbox is ${String(row["wanted"])}`);
  return wanted;
}
