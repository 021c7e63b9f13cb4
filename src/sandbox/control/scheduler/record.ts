import { EngineError } from "../../../core/errors.ts";
import { readEarly, type Statement } from "../../../catalog/records.ts";
import type { Hold } from "../../../fabric/job.ts";
import { boundedJson, boundedText, leaseLost } from "../../../fabric/refusals.ts";
import type { NewSandboxEvent, StoredEvent } from "../../contract/event.ts";
import { removeEvents } from "../events/removal.ts";
import type { SandboxBatch, SandboxOrder } from "../../contract/control-port.ts";
import { removeSessions } from "../turns/removal.ts";
import { NO_TURN_ENDS, turnEnds, whyTurnsEnd, type TurnEnds } from "../turns/turn-ends.ts";
import { mayMove, SANDBOX_ACTIONS, type SandboxState } from "../../contract/states.ts";
import { changeStatements, type Change } from "./change.ts";
import { heldSandbox, holdGuard, orderOf, type HeldSandbox } from "./leased.ts";
import { ATTEMPTS, type SandboxPorts } from "./ports.ts";
import { invalidState, tooBusy } from "../refusals.ts";
import { toSandbox } from "./sandbox.ts";
import { tellOfTurns } from "./tell-of-turns.ts";

/** What one report may bring. */
export const BATCH_LIMITS = { events: 1_000, eventBytes: 64 * 1_024, reasonChars: 4_096 } as const;

/** Somebody waits for the end of a turn; what the agent said last comes with it. */
const MOST_URGENT_EVENTS = 20;

/** Writes what a node reports of a sandbox: see `ControlPort.record`. */
export async function record(ports: SandboxPorts, hold: Hold, batch: SandboxBatch): Promise<SandboxOrder> {
  const events = batch.events.map(toStored);
  if (events.length > BATCH_LIMITS.events) {
    throw new EngineError("bad_request_body", `events: at most ${BATCH_LIMITS.events} are recorded at once`);
  }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const before = await heldSandbox(readEarly(ports.records), hold);
    if (before.recordedFence === hold.fence && batch.number <= before.recordedBatch) {
      return orderOf(ports, await heldSandbox(ports.records, hold), batch.knownVersion);
    }
    const recorded = { fence: hold.fence, batch: batch.number };
    const move = moveOf(before, batch);
    const turns = await endsOf(ports, before, { move, events, batch });
    const change: Change = { ...move, events, turns, recorded, stats: batch.stats };
    const removal = batch.removed === true ? removalOf(before) : [];
    const statements = [holdGuard(hold), ...changeStatements(before, change, ports), ...removal];
    const isAwaited = turns.ended.length > 0 && events.length <= MOST_URGENT_EVENTS;
    const outcome = await ports.records.transact(statements, isAwaited ? { early: true } : {});
    if (outcome.done) {
      // What follows is prepared meanwhile.
      const durable = outcome.durable?.();
      const [row] = outcome.rows[1] ?? [];
      if (row === undefined) throw new Error("a report of a sandbox returned nothing");
      tell(ports, before, change, batch);
      const after = toSandbox(row);
      ports.metrics.moved(before, after);
      tellOfTurns(ports, turns);
      const recordedNow = { recordedFence: hold.fence, recordedBatch: batch.number };
      const isBusy = before.isBusy && turns.left !== 0;
      const order = await orderOf(ports, { ...after, ...recordedNow, isBusy }, batch.knownVersion);
      await durable;
      return order;
    }
    if (outcome.failed === 0) throw leaseLost(hold);
  }
  throw tooBusy(hold.jobId);
}

function toStored({ type, atMs, data, sessionId }: NewSandboxEvent): StoredEvent {
  boundedJson(data, BATCH_LIMITS.eventBytes, "the data of an event");
  return { type, at: atMs, data, sessionId };
}

/** Throws `sandbox_invalid_state`. */
function moveOf({ state, wanted }: HeldSandbox, batch: SandboxBatch): Pick<Change, "to" | "wanted" | "reason"> {
  const { to, reason } = batch.state ?? {};
  if (to === undefined || to === state) return {};
  if (!mayMove(state, to, "node")) {
    if (isOvertaken(state, to)) return {};
    throw invalidState(state, `no node moves it to ${to}`);
  }
  const shown = reason === undefined ? undefined : boundedText(reason, BATCH_LIMITS.reasonChars);
  // Its time is over, whatever was wanted before.
  return { to, reason: shown, wanted: to === "stopping" ? "stopped" : wanted };
}

/** Whether the node could have written the state before a client's wish led to the one that is. */
function isOvertaken(state: SandboxState, to: SandboxState): boolean {
  return Object.values(SANDBOX_ACTIONS).some((action) => {
    const from: readonly SandboxState[] = action.from;
    return action.to === state && from.some((before) => before === to || mayMove(before, to, "node"));
  });
}

/** Throws `sandbox_invalid_state` for one that nobody deleted. */
function removalOf({ id, state }: HeldSandbox): Statement[] {
  if (state !== "deleting") throw invalidState(state, "nobody deleted it");
  return [{ sql: "DELETE FROM sandboxes WHERE id = ?", values: [id] }, ...removeSessions(id), ...removeEvents(id)];
}

type Reported = { move: Pick<Change, "to" | "reason">; events: readonly StoredEvent[]; batch: SandboxBatch };

/** The turns that end by the report: those of which it says so, and all when the agent is gone. */
async function endsOf(
  { records, newId }: SandboxPorts,
  before: HeldSandbox,
  { move, events, batch }: Reported,
): Promise<TurnEnds> {
  if (!before.isBusy) return NO_TURN_ENDS;
  const why = whyTurnsEnd(move.to, move.reason);
  return await turnEnds({ records: readEarly(records), newId }, before.id, { reports: batch.turns, events, why });
}

function tell(
  { signals }: SandboxPorts,
  { id }: HeldSandbox,
  { to, events = [], turns }: Change,
  batch: SandboxBatch,
): void {
  const hasNews = to !== undefined || events.length > 0 || (turns?.ended.length ?? 0) > 0;
  if (hasNews || batch.removed === true) signals.eventsAdded(id);
  const freesRoom = to === "paused" || to === "stopped" || to === "failed" || batch.removed === true;
  if (freesRoom) signals.roomFreed();
}
