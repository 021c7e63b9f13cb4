import { NOW, type RecordValue, type Statement } from "../../../catalog/records.ts";
import type { StoredEvent } from "../../contract/event.ts";
import { eventBytes, quotaStatements, type LogCount } from "../events/quota.ts";
import { NO_TURN_ENDS, type TurnEnds } from "../turns/turn-ends.ts";
import type { SandboxState, SandboxWant } from "../../contract/states.ts";
import { SANDBOX_COLUMNS, type Sandbox } from "./sandbox.ts";

/** What is to be changed of a sandbox, with what is told of it. */
export type Change = {
  to?: SandboxState;
  wanted?: SandboxWant;
  /** Of the new state, for people. */
  reason?: string | undefined;
  /** Before the one about the state. */
  events?: readonly StoredEvent[];
  /** The report that this is of; nothing is changed by one that was taken before. */
  recorded?: { fence: number; batch: number };
  stats?: Readonly<Record<string, number>> | undefined;
  /** Turns that end in the same transaction: the order has them no more. */
  turns?: TurnEnds;
  isDeleted?: true;
};

type Before = Pick<Sandbox, "id" | "version" | "state" | "wanted" | "spec" | "reason"> & LogCount;

/** What a change has to keep to. */
export type ChangeLimits = {
  /** Bytes of events that one sandbox has: see `events/quota.ts`. */
  eventsQuotaBytes: number;
};

const EVENTS_PER_STATEMENT = 500;
const GIVEN = "(CAST(? AS bigint), CAST(? AS bigint), ?, CAST(? AS text), ?, CAST(? AS bigint))";

/**
 * The statements of a transaction that changes a sandbox, if its version is still the one before: the first returns it
 * as it is then, or nothing, and undoes the transaction.
 */
export function changeStatements(
  before: Before,
  change: Change,
  { eventsQuotaBytes: quotaBytes }: ChangeLimits,
): [Statement, ...Statement[]] {
  const { to = before.state, wanted = before.wanted, events = [], recorded, stats, turns = NO_TURN_ENDS } = change;
  const moved = to === before.state ? [] : [stateChanged(before.state, to, reasonOf(before, change))];
  const all = [...events, ...turns.events, ...moved].map(measured);
  const addedBytes = all.reduce((sum, { bytes }) => sum + bytes, 0);
  const set: [string, RecordValue][] = [];
  if (moved.length > 0) {
    set.push(["state = ?", to], ["state_since_ms = ?", NOW], ["reason = ?", reasonOf(before, change) ?? null]);
    const expiry = expiryOf(before, to);
    if (expiry !== undefined) set.push(["expires_at_ms = ?", expiry]);
  }
  if (moved.length > 0 || wanted !== before.wanted) {
    set.push(["wanted = ?", wanted], ["version = version + ?", 1], ["updated_at_ms = ?", NOW]);
  } else if (turns.ended.length > 0) set.push(["version = version + ?", 1]);
  if (change.isDeleted) set.push(["deleted_at_ms = ?", NOW]);
  if (recorded !== undefined) set.push(["recorded_fence = ?", recorded.fence], ["recorded_batch = ?", recorded.batch]);
  if (stats !== undefined) set.push(["stats = ?", JSON.stringify(stats)]);
  set.push(["last_seq = last_seq + ?", all.length], ["events_bytes = events_bytes + ?", addedBytes]);
  const update = {
    sql:
      `UPDATE sandboxes SET ${set.map(([assignment]) => assignment).join(", ")} WHERE id = ? AND version = ? ` +
      `${recorded === undefined ? "" : IS_NEW}RETURNING ${SANDBOX_COLUMNS}`,
    values: [...set.map(([, value]) => value), before.id, before.version, ...isNewValues(recorded)],
    mustReturn: 1,
  };
  return [
    update,
    ...eventStatements(before.id, all),
    ...quotaStatements(before.id, before, { addedBytes, quotaBytes }),
    ...(moved.length > 0 ? volumesUsed(before) : []),
    ...turns.statements,
  ];
}

/** An event with its data as they are stored, and what it counts for. */
type MeasuredEvent = Omit<StoredEvent, "data"> & { data: string; bytes: number };

function measured(event: StoredEvent): MeasuredEvent {
  const data = JSON.stringify(event.data);
  return { ...event, data, bytes: eventBytes(data) };
}

/** Its volumes are used for as long as something happens to it. */
function volumesUsed({ id, spec: { volumes } }: Before): Statement[] {
  if (volumes.length === 0) return [];
  const names = volumes.map(({ name }) => name);
  const sql =
    "UPDATE sandbox_volumes SET used_at_ms = ? WHERE tenant = (SELECT tenant FROM sandboxes WHERE id = ?) " +
    `AND name IN (${names.map(() => "?").join(", ")})`;
  return [{ sql, values: [NOW, id, ...names] }];
}

const IS_NEW = "AND (recorded_fence < ? OR (recorded_fence = ? AND recorded_batch < ?)) ";

function isNewValues(recorded: Change["recorded"]): RecordValue[] {
  return recorded === undefined ? [] : [recorded.fence, recorded.fence, recorded.batch];
}

/** A sandbox is stopped for the reason for which it was stopping: `timeout_secs` have passed, its machine ended. */
function reasonOf(before: Before, { to, reason }: Change): string | undefined {
  return reason ?? (before.state === "stopping" && to === "stopped" ? before.reason : undefined);
}

function stateChanged(from: SandboxState, to: SandboxState, reason: string | undefined): StoredEvent {
  const why = reason === undefined ? {} : { reason };
  return { type: "sandbox_state_changed", at: NOW, data: { from, to, ...why } };
}

const NOT_UP: ReadonlySet<SandboxState> = new Set(["pending", "stopped", "failed", "deleting"]);

/** When a sandbox that begins to be up is to be stopped; null where it is not up; undefined: as before. */
function expiryOf({ spec: { timeoutSecs } }: Before, to: SandboxState): RecordValue | undefined {
  if (NOT_UP.has(to)) return null;
  if (to !== "creating") return undefined;
  return timeoutSecs === undefined ? null : { nowPlusMs: timeoutSecs * 1_000 };
}

/** Numbers events on: `last_seq` counts them already. */
function eventStatements(sandboxId: string, events: readonly MeasuredEvent[]): Statement[] {
  const statements: Statement[] = [];
  for (let from = 0; from < events.length; from += EVENTS_PER_STATEMENT) {
    const given = events.slice(from, from + EVENTS_PER_STATEMENT);
    // Each is numbered back from the last by how many come after it.
    const values = given.flatMap(({ type, at, data, bytes, sessionId = null }, i): RecordValue[] => [
      events.length - from - i - 1,
      at,
      type,
      sessionId,
      data,
      bytes,
    ]);
    statements.push({
      sql:
        "INSERT INTO sandbox_events (sandbox_id, seq, tenant, at_ms, event_type, session_id, data, size_bytes) " +
        "SELECT id, last_seq - column1, tenant, column2, column3, column4, column5, column6 " +
        `FROM sandboxes CROSS JOIN (VALUES ${given.map(() => GIVEN).join(", ")}) AS given WHERE id = ? ` +
        // Statements may run before it is known that the one before them changed nothing.
        "ON CONFLICT DO NOTHING RETURNING seq",
      values: [...values, sandboxId],
      mustReturn: given.length,
    });
  }
  return statements;
}
