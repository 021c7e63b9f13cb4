import type { RecordRow, Statement } from "../../../catalog/records.ts";
import { messageOf } from "../../../core/errors.ts";
import { optionalText } from "../../../fabric/job.ts";
import type { SandboxState } from "../../contract/states.ts";
import { NO_TURN_ENDS, turnEnds, whyTurnsEnd, type TurnEnds } from "../turns/turn-ends.ts";
import { changeStatements, type Change, type ChangeLimits } from "./change.ts";
import { needOf } from "./place.ts";
import type { SandboxPorts } from "./ports.ts";
import { roomReport, type RoomReport } from "../room-report.ts";
import { SANDBOX_COLUMNS, toSandbox, type Sandbox } from "./sandbox.ts";
import { tellOfTurns } from "./tell-of-turns.ts";
import { removeUnheld, unplace } from "./unleased.ts";
import { cancelQueued } from "../cancel-queued.ts";
import { volumeQuotaProblem } from "../volumes/volume-quota.ts";
import { knownVolumes, newVolumesIn, type KnownVolumes } from "../volumes/volumes.ts";

const AT_ONCE = 500;

/** Of these something was on the node, and is no more. */
const UP: readonly SandboxState[] = ["creating", "running", "pausing", "paused", "stopping"];
/** These wait for a node, or rest; they have a loss only when no node can have them again. */
const RESTING: readonly SandboxState[] = ["pending", "stopped"];

/**
 * What becomes of a sandbox whose node has lost it; undefined where that changes nothing. An ephemeral one has failed.
 * A persistent one waits for its node, and starts from its disk there; one that was being stopped is stopped, for no
 * process of it is left. `isFinal`: no node can have it again.
 */
export function lossOf({ state, spec }: Pick<Sandbox, "state" | "spec">, isFinal: boolean): Change | undefined {
  if (!UP.includes(state) && !(isFinal && RESTING.includes(state))) return undefined;
  const reason = "its node was lost";
  if (isFinal || spec.persistence === "ephemeral") return { to: "failed", reason };
  // What was in its memory is gone: it does not go on being paused.
  return state === "stopping" ? { to: "stopped", reason } : { to: "pending", wanted: "running", reason };
}

/**
 * Settles sandboxes that no node has any more: their jobs were swept, or have ended. Returns how many it changed. Any
 * number of processes may do so at once.
 */
export async function settleLost(ports: SandboxPorts): Promise<number> {
  let settled = 0;
  for (const row of await unheld(ports)) {
    const before = toSandbox(row);
    if (isUnbegun(before, row)) {
      if (await giveBack(ports, before)) settled++;
      continue;
    }
    const isFinal = row["job_status"] !== "queued";
    const isDeleted = before.state === "deleting";
    const turns = isDeleted ? NO_TURN_ENDS : await lostTurns(ports, before, isFinal);
    const statements = isDeleted ? removeUnheld(before) : lossStatements(ports, { before, isFinal, row, turns });
    if (statements.length === 0) continue;
    const { done } = await ports.records.transact(statements);
    if (!done) continue;
    settled++;
    if (!isDeleted && lossOf(before, isFinal)?.to === "failed") ports.metrics.failed("node_lost");
    ports.signals.eventsAdded(before.id);
    ports.signals.roomFreed();
    tellOfTurns(ports, turns);
  }
  return settled;
}

/** Those that wait for their first node, and those that rest, are as they should be. */
async function unheld({ records }: SandboxPorts): Promise<RecordRow[]> {
  const columns = SANDBOX_COLUMNS.split(", ")
    .map((name) => `sandboxes.${name}`)
    .join(", ");
  return await records.rows(
    `SELECT ${columns}, sandboxes.recorded_fence, jobs.status AS job_status, jobs.error AS job_error FROM sandboxes ` +
      "LEFT JOIN jobs ON jobs.id = sandboxes.job_id WHERE sandboxes.job_id IS NOT NULL " +
      `AND coalesce(jobs.status, 'gone') <> 'leased' AND (sandboxes.state IN (${UP.map(() => "?").join(", ")}, 'deleting') ` +
      `OR (sandboxes.state IN (${RESTING.map(() => "?").join(", ")}) AND coalesce(jobs.status, 'gone') <> 'queued')) ` +
      "LIMIT ?",
    [...UP, ...RESTING, AT_ONCE],
  );
}

/**
 * Whether the lease ended before anybody asked what was to be done under it: the answer to a claim was lost. Nothing was
 * made, and nothing can be, for that holder is refused. One whose job an operator cancelled is not meant.
 */
function isUnbegun({ state }: Sandbox, row: RecordRow): boolean {
  return state === "pending" && Number(row["recorded_fence"]) === 0 && row["job_status"] === "failed";
}

/** It waits for a node again, until there is none for too long. */
async function giveBack({ records, signals }: SandboxPorts, { id, jobId }: Sandbox): Promise<boolean> {
  const { done } = await records.transact([{ ...unplace(id, jobId), mustReturn: 1 }]);
  if (done) signals.roomFreed();
  return done;
}

async function lostTurns(ports: SandboxPorts, before: Sandbox, isFinal: boolean): Promise<TurnEnds> {
  const { to, reason } = lossOf(before, isFinal) ?? {};
  return await turnEnds(ports, before.id, { why: whyTurnsEnd(to, reason) });
}

type Lost = { before: Sandbox; isFinal: boolean; row: RecordRow; turns: TurnEnds };

function lossStatements(limits: ChangeLimits, { before, isFinal, row, turns }: Lost): Statement[] {
  const loss = lossOf(before, isFinal);
  if (loss === undefined) return [];
  const error = optionalText(row, "job_error");
  const change = { ...loss, turns, reason: error === undefined ? loss.reason : `${loss.reason}: ${error}` };
  return [...changeStatements(before, change, limits), ...endOfJob(before, change.to)];
}

/** Nobody is to get what has failed. */
function endOfJob({ jobId }: Sandbox, to: SandboxState | undefined): Statement[] {
  return to === "failed" && jobId !== undefined ? [cancelQueued(jobId)] : [];
}

/**
 * Fails sandboxes that no node has begun with for too long since they were made and had an image. Returns how many. Any number of
 * processes may do so at once.
 */
export async function expirePending(ports: SandboxPorts, timeoutMs: number): Promise<number> {
  const rows = await ports.records.rows(
    `SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE state = 'pending' AND recorded_fence = 0 AND state_since_ms <= ? ` +
      "AND awaits_image IS NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = sandboxes.job_id AND jobs.status = 'leased') LIMIT ?",
    [{ nowPlusMs: -timeoutMs }, AT_ONCE],
  );
  let expired = 0;
  for (const row of rows) {
    const before = toSandbox(row);
    const { why, takers } = await noRoomFor(ports, before);
    const reason = `no node had room for it within ${timeoutMs / 1_000} s: ${why}`;
    const { jobId } = before;
    const { done } = await ports.records.transact([
      ...changeStatements(before, { to: "failed", reason }, ports),
      // A node that claims it at this moment goes first.
      ...(jobId === undefined ? [] : [{ ...cancelQueued(jobId), mustReturn: 1 }]),
    ]);
    if (!done) continue;
    expired++;
    ports.metrics.failed("no_room");
    ports.log.warn({ sandbox: before.id, owner: before.tenant, why, nodes: takers }, "no node had room for a sandbox");
    ports.signals.eventsAdded(before.id);
  }
  return expired;
}

function none(why: string): RoomReport {
  return { why, takers: [] };
}

/** Why a sandbox found no place: the last of what was in its way. */
async function noRoomFor(
  { records, volumeLimits }: Pick<SandboxPorts, "records" | "volumeLimits">,
  { tenant, spec, nodeId }: Sandbox,
): Promise<RoomReport> {
  if (nodeId !== undefined) return none("the node that was to have it did not begin with it");
  let known: KnownVolumes;
  try {
    known = await knownVolumes(records, tenant, spec.volumes);
  } catch (error) {
    return none(messageOf(error));
  }
  const added = newVolumesIn(spec.volumes, known);
  const problem = added.length === 0 ? undefined : await volumeQuotaProblem(records, { tenant, added }, volumeLimits);
  return problem === undefined ? await roomReport(records, tenant, needOf(spec, known)) : none(problem);
}
