import type { Statement } from "../../db/records.ts";
import { EngineError } from "../../core/errors.ts";
import type { Draft, RecordKey } from "./draft.ts";
import type { EdgeRecord, NodeRecord } from "./model.ts";
import { maySee, type RealmRights } from "./realms.ts";
import type { Operation } from "./writer.ts";

/** The life of a record after it was saved: it is invalidated and restored, which keeps what it said, or erased. */

export type Invalidation = {
  key: RecordKey;
  /** Who says so. */
  by: string;
  reason: string | undefined;
  /** Since when it does not hold; now unless given. */
  validToUs: number | undefined;
};

/** Ends its validity. One that is invalidated already stays as it is. */
export function invalidate({ key, by, reason, validToUs }: Invalidation, rights: RealmRights): Operation<AnyRecord> {
  return {
    items: 1,
    needs: { keys: [key] },
    plan: (draft) => {
      const before = reached(draft, key, rights);
      if (before.invalidatedAtUs !== undefined) return before;
      const to = validToUs ?? Math.max(draft.stampUs, before.validFromUs);
      if (to < before.validFromUs) {
        throw new EngineError("bad_request_body", "valid_to: is before the record's valid_from");
      }
      const said = { invalidatedAtUs: draft.stampUs, invalidatedBy: by, invalidationReason: reason };
      return changed(draft, before, { ...said, validToUs: to });
    },
  };
}

/** Takes an invalidation back. */
export function restore(key: RecordKey, rights: RealmRights): Operation<AnyRecord> {
  return {
    items: 1,
    needs: { keys: [key] },
    plan: (draft) => {
      const before = reached(draft, key, rights);
      if (before.invalidatedAtUs === undefined) return before;
      const nothing = { invalidatedAtUs: undefined, invalidatedBy: undefined, invalidationReason: undefined };
      return changed(draft, before, { ...nothing, validToUs: undefined });
    },
  };
}

/** Erases every version, and those of a node's edges. Tombstones stay. Resolves to how many records that were. */
export function erase(key: RecordKey, rights: RealmRights, also: readonly Statement[]): Operation<number> {
  return {
    items: 1,
    needs: { keys: [key], edgesOf: key.kind === "node" ? [key.id] : [] },
    plan: (draft) => {
      const { realm } = reached(draft, key, rights);
      const edges = key.kind === "node" ? draft.edgesOf(key.id) : [];
      for (const edge of edges) draft.erase({ kind: "edge", id: edge.id, realm: edge.realm });
      draft.erase({ ...key, realm });
      return edges.length + 1;
    },
    also: () => also,
  };
}

type AnyRecord = NodeRecord | EdgeRecord;
type Ending = Pick<AnyRecord, "validToUs" | "invalidatedAtUs" | "invalidatedBy" | "invalidationReason">;

/** Throws `not_found` also for a record that the caller may not see. */
function reached(draft: Draft, { kind, id }: RecordKey, rights: RealmRights): AnyRecord {
  const record = kind === "node" ? draft.node(id) : draft.edge(id);
  if (record !== undefined && maySee(rights, record.realm)) return record;
  throw notInMemory({ kind, id });
}

function changed(draft: Draft, before: AnyRecord, ending: Ending): AnyRecord {
  return "src" in before ? draft.putEdge({ ...before, ...ending }) : draft.putNode({ ...before, ...ending });
}

export function notInMemory({ kind, id }: RecordKey): EngineError {
  return new EngineError("not_found", `the memory of this database has no ${kind} ${JSON.stringify(id.slice(0, 200))}`);
}
