import type { Statement } from "../../db/records.ts";
import type { Draft } from "../memory/draft.ts";
import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import { maySee, type RealmRights } from "../memory/realms.ts";
import type { StoredVersion, Version } from "../memory/rows.ts";
import type { Operation } from "../memory/writer.ts";
import { sourceOf } from "./dream-job.ts";
import type { RunChange } from "./runs.ts";

/** Why a change of a run stays. */
export const KEPT_REASONS = ["changed", "erased", "linked", "together", "forbidden"] as const;
export type KeptReason = (typeof KEPT_REASONS)[number];
export type KeptChange = Pick<RunChange, "kind" | "id"> & { reason: KeptReason };

export type Reverted = { taken: RunChange[]; kept: KeptChange[] };

export type RevertRequest = {
  runId: string;
  changes: readonly RunChange[];
  /** The versions before, by `keyOfChange`. */
  former: ReadonlyMap<string, StoredVersion>;
  rights: RealmRights;
  /** Further statements of the transaction. */
  also: (reverted: Reverted) => readonly Statement[];
};

export function keyOfChange({ kind, id }: Pick<RunChange, "kind" | "id">): string {
  return `${kind} ${id}`;
}

/**
 * Takes back what a run wrote, where nothing was built on it:
 *
 * - what it added holds no more, from its first moment on; what it changed or ended says again what it said before;
 * - a record that somebody changed since (`changed`), or erased, stays, and so does an added node with an edge that stays
 *   (`linked`), and whatever the same proposal wrote (`together`).
 *
 * Nothing is erased: what the run said, and that it was taken back, can be asked for by `known_at`.
 */
export function revertOperation({ runId, changes, former, rights, also }: RevertRequest): Operation<Reverted> {
  return {
    items: Math.max(1, changes.length),
    needs: {
      keys: changes.map(({ kind, id }) => ({ kind, id })),
      edgesOf: changes.filter(({ kind }) => kind === "node").map(({ id }) => id),
    },
    plan: (draft) => {
      const kept = keptOf(draft, changes, { former, rights });
      const taken = changes.filter((change) => !kept.has(keyOfChange(change)));
      for (const change of taken) takeBack(draft, change, former.get(keyOfChange(change)), runId);
      return { taken, kept: [...kept.values()] };
    },
    also,
  };
}

/** Which changes stay: those that others built on, and with each of them what belongs to it. */
function keptOf(
  draft: Draft,
  changes: readonly RunChange[],
  { former, rights }: Pick<RevertRequest, "former" | "rights">,
): Map<string, KeptChange> {
  const kept = new Map<string, KeptChange>();
  const keep = ({ kind, id }: RunChange, reason: KeptReason): void => {
    kept.set(keyOfChange({ kind, id }), { kind, id, reason });
  };
  for (const change of changes) {
    const reason = ownReason(draft.version(change.kind, change.id), change, former, rights);
    if (reason !== undefined) keep(change, reason);
  }
  const ofRun = new Set(changes.map(keyOfChange));
  for (let before = -1; before < kept.size;) {
    before = kept.size;
    const proposals = new Set(changes.filter((one) => kept.has(keyOfChange(one))).map(({ proposal }) => proposal));
    for (const change of changes.filter((one) => !kept.has(keyOfChange(one)))) {
      if (proposals.has(change.proposal)) keep(change, "together");
      else if (isLinked(draft, change, ofRun, kept)) keep(change, "linked");
    }
  }
  return kept;
}

function ownReason(
  current: Version | undefined,
  change: RunChange,
  former: RevertRequest["former"],
  rights: RealmRights,
): KeptReason | undefined {
  if (current === undefined || current.erased) return "erased";
  if (!maySee(rights, current.record.realm)) return "forbidden";
  if (current.record.version !== change.versionAfter) return "changed";
  const before = former.get(keyOfChange(change));
  return change.versionBefore !== undefined && (before === undefined || before.erased) ? "changed" : undefined;
}

/** Whether an added node has an edge that holds and stays. */
function isLinked(
  draft: Draft,
  { kind, id, versionBefore }: RunChange,
  ofRun: ReadonlySet<string>,
  kept: ReadonlyMap<string, KeptChange>,
): boolean {
  if (kind !== "node" || versionBefore !== undefined) return false;
  return draft.edgesOf(id).some((edge) => {
    const key = keyOfChange({ kind: "edge", id: edge.id });
    const holds = edge.validToUs === undefined && edge.invalidatedAtUs === undefined;
    return holds && (!ofRun.has(key) || kept.has(key));
  });
}

function takeBack(draft: Draft, { kind, id }: RunChange, before: StoredVersion | undefined, runId: string): void {
  const current = draft.version(kind, id);
  if (current === undefined || current.erased) return;
  if (current.kind === "node") {
    const isSaid = before?.kind === "node" && !before.erased;
    draft.putNode(isSaid ? before.record : neverHeld(current.record, draft, runId));
  } else {
    const isSaid = before?.kind === "edge" && !before.erased;
    draft.putEdge(isSaid ? before.record : neverHeld(current.record, draft, runId));
  }
}

function neverHeld<R extends NodeRecord | EdgeRecord>(record: R, { stampUs }: Draft, runId: string): R {
  return {
    ...record,
    invalidatedAtUs: stampUs,
    invalidatedBy: sourceOf(runId),
    invalidationReason: "the run was taken back",
    validToUs: record.validFromUs,
  };
}
