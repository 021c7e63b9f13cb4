import type { Statement } from "../../../catalog/records.ts";
import type { Origin } from "../../../auth/audit.ts";
import type { Caller } from "../../../auth/caller.ts";
import { EngineError } from "../../../core/errors.ts";
import { turnEnds, whyTurnsEnd } from "../turns/turn-ends.ts";
import { mayAsk, SANDBOX_ACTIONS, type SandboxAction } from "../../contract/states.ts";
import { changeStatements, type Change } from "./change.ts";
import { getSandbox } from "./find.ts";
import { takenBy } from "./place.ts";
import { ATTEMPTS, type SandboxPorts } from "./ports.ts";
import { invalidState, tooBusy } from "../refusals.ts";
import { roomReport } from "../room-report.ts";
import { capacityOf, roomGuard } from "../room.ts";
import { toSandbox, type Sandbox } from "./sandbox.ts";
import { tellOfTurns } from "./tell-of-turns.ts";
import { removeUnheld } from "./unleased.ts";

export type Asked = { action: SandboxAction; caller: Caller; origin: Origin };

/**
 * What a client asks for: the wish, the state that says so, the event and the entry in the audit log, all or nothing.
 * Resolves to the sandbox as it is then. Rejects with `sandbox_not_found`, `sandbox_invalid_state`, and for a start
 * with `unavailable` when its node has no room for it.
 *
 * A sandbox that is deleted and that no node has is gone at once.
 */
export async function act(ports: SandboxPorts, id: string, asked: Asked): Promise<Sandbox> {
  const { action, caller } = asked;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const before = await getSandbox(ports.records, id, caller);
    if (!mayAsk(action, before.state)) {
      throw invalidState(before.state, `${action} needs ${SANDBOX_ACTIONS[action].from.join(" or ")}`);
    }
    const room = action === "start" ? await roomStatement(ports, before) : [];
    const turns = await turnEnds(ports, id, { why: whyTurnsEnd(changeOf(action).to) });
    const changes = changeStatements(before, { ...changeOf(action), turns }, ports);
    const removal = action === "delete" ? removeUnheld(before) : [];
    const outcome = await ports.records.transact([...changes, ...room, ...removal, auditEntry(ports, before, asked)]);
    if (outcome.done) {
      const [row] = outcome.rows[0] ?? [];
      if (row === undefined) throw new Error("a change of a sandbox returned nothing");
      const after = toSandbox(row);
      tell(ports, after, action);
      tellOfTurns(ports, turns);
      return after;
    }
    if (outcome.failed >= changes.length) throw await noRoom(ports, before);
  }
  throw tooBusy(id);
}

function changeOf(action: SandboxAction): Change {
  const { to, wanted } = SANDBOX_ACTIONS[action];
  return { to, wanted, ...(action === "delete" ? { isDeleted: true } : {}) };
}

/** What stopped sandboxes leave free may be another's by now. */
async function roomStatement({ records }: SandboxPorts, { nodeId }: Sandbox): Promise<Statement[]> {
  const capacity = nodeId === undefined ? undefined : await capacityOf(records, nodeId);
  return nodeId === undefined || capacity === undefined ? [] : [roomGuard(nodeId, capacity)];
}

async function noRoom({ records, log }: SandboxPorts, { id, tenant, spec, nodeId }: Sandbox): Promise<EngineError> {
  // Its disk and its volumes are there.
  const { cpuMillis, memoryMb } = takenBy(spec.limits);
  const need = { cpuMillis, memoryMb, diskMb: 0, image: undefined, builtImage: undefined, labels: {}, nodeId };
  const { why, takers } = await roomReport(records, tenant, need);
  log.warn({ sandbox: id, owner: tenant, why, nodes: takers }, "a node has no room for a sandbox that was stopped");
  const message = `the node that has the sandbox has no room for it: ${why}; stop others, or try later`;
  return new EngineError("unavailable", message);
}

function auditEntry({ audit }: SandboxPorts, { id, spec, tenant }: Sandbox, { action, origin }: Asked): Statement {
  const details = { name: spec.name ?? null, tenant };
  return audit.statement({ origin, action: `sandbox.${action}`, target: id, outcome: "ok", details });
}

function tell({ signals }: SandboxPorts, { id, nodeId }: Sandbox, action: SandboxAction): void {
  if (nodeId !== undefined) signals.orderChanged(id, nodeId);
  signals.eventsAdded(id);
  if (action === "delete") signals.roomFreed();
}
