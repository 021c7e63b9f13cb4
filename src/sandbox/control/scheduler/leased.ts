import type { RecordRow, RecordStore, Statement } from "../../../catalog/records.ts";
import { heldValues, IS_HELD, type Hold } from "../../../fabric/job.ts";
import { leaseLost } from "../../../fabric/refusals.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import { historyOf, turnsOf } from "../turns/order-turns.ts";
import { turnEnds, whyTurnsEnd } from "../turns/turn-ends.ts";
import type { TurnMessage } from "../../contract/turn.ts";
import { changeStatements } from "./change.ts";
import { lossOf } from "./lost.ts";
import { ATTEMPTS, type SandboxPorts } from "./ports.ts";
import { sandboxNotFound, tooBusy } from "../refusals.ts";
import { SANDBOX_COLUMNS, toSandbox, type Sandbox } from "./sandbox.ts";
import { openEnv } from "./sealed-env.ts";
import { tellOfTurns } from "./tell-of-turns.ts";
import { volumesToMount } from "../volumes/volumes.ts";

/** A sandbox as its holder sees it. */
export type HeldSandbox = Sandbox & { recordedFence: number; recordedBatch: number; isBusy: boolean };

const COLUMNS = `${SANDBOX_COLUMNS}, recorded_fence, recorded_batch`;
const IS_BUSY = "EXISTS (SELECT 1 FROM sandbox_sessions WHERE sandbox_id = sandboxes.id AND turn_id IS NOT NULL)";

/** What is to become of the sandbox of a job, for its holder: see `ControlPort.order`. */
export async function order(ports: SandboxPorts, hold: Hold): Promise<SandboxOrder> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const before = await heldSandbox(ports.records, hold);
    if (before.recordedFence >= hold.fence) return orderOf(ports, before);
    const loss = lossOf(before, false) ?? {};
    const turns = await turnEnds(ports, before.id, { why: whyTurnsEnd(loss.to, loss.reason) });
    const recorded = { fence: hold.fence, batch: 0 };
    const outcome = await ports.records.transact([
      holdGuard(hold),
      ...changeStatements(before, { ...loss, turns, recorded }, ports),
    ]);
    if (outcome.done) {
      if (loss.to !== undefined) ports.signals.eventsAdded(before.id);
      if (loss.to === "failed") ports.metrics.failed("node_lost");
      tellOfTurns(ports, turns);
      continue;
    }
    if (outcome.failed === 0) throw leaseLost(hold);
  }
  throw tooBusy(hold.jobId);
}

/** What was said in a session of the sandbox of a job, for its holder: see `ControlPort.history`. */
export async function history(
  { records }: Pick<SandboxPorts, "records">,
  hold: Hold,
  sessionId: string,
): Promise<TurnMessage[]> {
  const { id } = await heldSandbox(records, hold);
  return await historyOf(records, id, sessionId);
}

/** Rejects with `lease_lost`, and with `sandbox_not_found` when its record is gone. */
export async function heldSandbox(records: Pick<RecordStore, "rows">, hold: Hold): Promise<HeldSandbox> {
  const [row] = await records.rows(
    `SELECT ${COLUMNS}, CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE ${IS_HELD}) THEN 1 ELSE 0 END AS is_held, ` +
      `CASE WHEN ${IS_BUSY} THEN 1 ELSE 0 END AS is_busy ` +
      "FROM sandboxes WHERE job_id = ?",
    [...heldValues(hold), hold.jobId],
  );
  if (row === undefined) {
    const held = await records.rows(`SELECT id FROM jobs WHERE ${IS_HELD}`, heldValues(hold));
    throw held.length === 0 ? leaseLost(hold) : sandboxNotFound(`of job ${hold.jobId}`);
  }
  if (Number(row["is_held"]) !== 1) throw leaseLost(hold);
  return toHeld(row);
}

/** Undoes a transaction of one who has lost the lease, and keeps others from getting it before it is done. */
export function holdGuard(hold: Hold): Statement {
  return {
    sql: `SELECT id FROM jobs WHERE ${IS_HELD} FOR SHARE`,
    values: heldValues(hold),
    mustReturn: 1,
  };
}

/** @param knownVersion the order that the holder has: where that is the newest, it is not told of its turns again */
export async function orderOf(
  { envSealing, records }: Pick<SandboxPorts, "envSealing" | "records">,
  held: HeldSandbox,
  knownVersion?: number,
): Promise<SandboxOrder> {
  const { id, tenant, spec, state, wanted, version, recordedBatch } = held;
  const turns = held.isBusy && version !== knownVersion ? await turnsOf(records, id) : [];
  const { volumeKeys, volumes } = await volumesToMount(records, tenant, spec);
  const mounted = { ...spec, volumes };
  const order = { sandboxId: id, tenant, volumeKeys, spec: mounted, state, wanted, version, turns, recordedBatch };
  const opened = openEnv(envSealing, held);
  if ("closed" in opened) return { ...order, closedEnv: opened.closed };
  return { ...order, spec: { ...mounted, envVars: opened.envVars } };
}

function toHeld(row: RecordRow): HeldSandbox {
  return {
    ...toSandbox(row),
    recordedFence: Number(row["recorded_fence"]),
    recordedBatch: Number(row["recorded_batch"]),
    isBusy: Number(row["is_busy"]) === 1,
  };
}
