import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { hashOfEdge, hashOfNode, hashOfTombstone, type EdgeContent, type NodeContent } from "./content-hash.ts";
import { becomesCurrent, type Draft, type RecordKey } from "./draft.ts";
import { edgeId } from "./ids.ts";
import {
  accepted,
  EDGE_DEFAULTS,
  importedEdge,
  importedNode,
  importedTombstone,
  type ImportedEdge,
  type ImportedNode,
  type ImportedTombstone,
} from "./input.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import { DEFAULT_REALM } from "./model.ts";
import { maySee, type RealmRights } from "./realms.ts";
import type { RecordKind } from "./rows.ts";
import { derivedNodeId, nodeSaid, putSaidEdge, saveNode, type Saved } from "./save.ts";
import type { Operation } from "./writer.ts";

/**
 * Records of another replica, or of a file. They are applied in one commit or not at all. Of the versions of an id the one
 * that was made last is current afterwards, wherever it was made; what loses is kept as a former version. So replicas
 * that have seen the same imports, in whatever order, have the same current versions.
 */
export type ImportOutcome = "created" | "updated" | "unchanged" | "superseded" | "erased";
export type ImportCounts = Record<ImportOutcome, number>;
export type ImportResult = { nodes: ImportCounts; edges: ImportCounts };

type Fact<C> = { id: string; originUs: number | undefined; contentAt: (originUs: number) => C };
/** `saved`: nothing says when it was made, so it is saved as if somebody said it now. */
type Item = { place: string; realm: string } & (
  | { kind: "node"; fact: Fact<NodeContent> }
  | { kind: "edge"; fact: Fact<EdgeContent> }
  | { kind: RecordKind; tombstone: ImportedTombstone }
  | { kind: RecordKind; saved: Pick<Operation<Saved<unknown>>, "needs" | "plan"> }
);
type CarriedItem = Exclude<Item, { saved: unknown }>;

/** A clock that is ahead of ours by more would win over every change of tomorrow. */
const MAX_AHEAD_US = 24 * 60 * 60 * 1_000_000;

/** Throws `bad_request_body` naming the item: `memory_nodes.17.content: is empty`. */
export function importRecords(
  { memory_nodes, memory_edges }: { memory_nodes: readonly unknown[]; memory_edges: readonly unknown[] },
  rights: RealmRights,
  newId: IdSource,
): Operation<ImportResult> {
  const count = memory_nodes.length + memory_edges.length;
  if (count > MEMORY_LIMITS.importItems) {
    const message = `${count} items; at most ${MEMORY_LIMITS.importItems} are imported at once: send the others after them`;
    throw new EngineError("bad_request_body", message);
  }
  const items = [
    ...memory_nodes.map((raw, i) => nodeItem(raw, `memory_nodes.${i}`, rights, newId)),
    ...memory_edges.map((raw, i) => edgeItem(raw, `memory_edges.${i}`, rights)),
  ];
  return {
    items: count,
    needs: {
      keys: items.flatMap((item) => ("saved" in item ? item.saved.needs.keys : [keyOf(item)])),
      duplicateKeys: items.flatMap((item) => ("saved" in item ? (item.saved.needs.duplicateKeys ?? []) : [])),
    },
    plan: (draft) => {
      checkItems(items, draft);
      const result: ImportResult = { nodes: noneOf(), edges: noneOf() };
      for (const item of items) {
        const counts = item.kind === "node" ? result.nodes : result.edges;
        counts["saved" in item ? OUTCOME_OF[item.saved.plan(draft).outcome] : apply(item, draft)]++;
      }
      return result;
    },
  };
}

const OUTCOME_OF = { created: "created", updated: "updated", confirmed: "unchanged" } as const;

function nodeItem(raw: unknown, place: string, rights: RealmRights, newId: IdSource): Item {
  if (isTombstone(raw)) return tombstoneItem("node", raw, place, rights);
  const node = accepted(importedNode, raw, place);
  const realm = node.realm ?? DEFAULT_REALM;
  checkImportRealm(rights, realm, place);
  const derived = derivedNodeId(node, realm);
  checkId(node.id, derived, place);
  const id = derived ?? node.id;
  const originUs = node.origin_updated_at;
  // Without an id another import of the same file would add it again: it confirms what says the same.
  if (id === undefined || (originUs === undefined && node.id === undefined)) {
    return { kind: "node", place, realm, saved: saveNode(node, rights, newId) };
  }
  const said = nodeSaid(node, { id, realm });
  const contentAt = (madeAtUs: number): NodeContent => ({ ...said, ...lifeOf(node, madeAtUs) });
  return { kind: "node", place, realm, fact: { id, originUs, contentAt } };
}

function edgeItem(raw: unknown, place: string, rights: RealmRights): Item {
  if (isTombstone(raw)) return tombstoneItem("edge", raw, place, rights);
  const edge = accepted(importedEdge, raw, place);
  const realm = edge.realm ?? DEFAULT_REALM;
  checkImportRealm(rights, realm, place);
  const { src, dst, namespace, rel, origin_updated_at: originUs } = edge;
  const id = edgeId({ realm, src, dst, namespace, rel });
  checkId(edge.id, id, place);
  if (originUs === undefined && edge.id === undefined) {
    const plan = (draft: Draft) => putSaidEdge(edge, { id, realm }, draft);
    return { kind: "edge", place, realm, saved: { needs: { keys: [{ kind: "edge", id }] }, plan } };
  }
  const { weight = EDGE_DEFAULTS.weight, props = EDGE_DEFAULTS.props } = edge;
  const said = { id, realm, src, dst, namespace, rel, weight, props };
  const contentAt = (madeAtUs: number): EdgeContent => ({ ...said, ...lifeOf(edge, madeAtUs) });
  return { kind: "edge", place, realm, fact: { id, originUs, contentAt } };
}

function tombstoneItem(kind: RecordKind, raw: unknown, place: string, rights: RealmRights): Item {
  const tombstone = accepted(importedTombstone, raw, place);
  checkImportRealm(rights, tombstone.realm, place);
  return { kind, place, realm: tombstone.realm, tombstone };
}

function checkImportRealm(rights: RealmRights, realm: string, place: string): void {
  if (!maySee(rights, realm)) throw new EngineError("forbidden", `${place}.realm: is its user's and admins' alone`);
}

function isTombstone(raw: unknown): boolean {
  return typeof raw === "object" && raw !== null && "erased_at" in raw && raw.erased_at !== null;
}

/** An id that follows from what the record is about can be no other. */
function checkId(given: string | undefined, derived: string | undefined, place: string): void {
  if (given === undefined || derived === undefined || given === derived) return;
  const message = `${place}.id: is not the one that follows from what it is about, ${derived}: leave it out`;
  throw new EngineError("bad_request_body", message);
}

/** What is not said follows from when the version was made, which is the same on every replica. */
function lifeOf(item: ImportedNode | ImportedEdge, madeAtUs: number) {
  const validFromUs = item.valid_from ?? Math.min(item.created_at ?? madeAtUs, item.valid_to ?? Infinity);
  return {
    validFromUs,
    validToUs: item.valid_to,
    invalidatedAtUs: item.invalidated_at,
    invalidatedBy: item.invalidated_by,
    invalidationReason: item.invalidation_reason,
    createdAtUs: item.created_at ?? madeAtUs,
  };
}

function keyOf(item: CarriedItem): RecordKey {
  return { kind: item.kind, id: "fact" in item ? item.fact.id : item.tombstone.id };
}

/** When the item was made. */
function originOf(item: CarriedItem, { stampUs }: Draft): number {
  if ("fact" in item) return item.fact.originUs ?? stampUs;
  return item.tombstone.origin_updated_at ?? item.tombstone.erased_at;
}

/**
 * Throws for an item from the future, and for one whose id is in another realm: an id stays in its realm, else whoever
 * knows one could take over what others have.
 */
function checkItems(items: readonly Item[], draft: Draft): void {
  const latestUs = Math.max(draft.nowUs, draft.stampUs) + MAX_AHEAD_US;
  const realms = new Map<string, string>();
  for (const item of items) {
    if ("saved" in item) continue;
    const { kind, id } = keyOf(item);
    if (originOf(item, draft) > latestUs) {
      throw new EngineError("bad_request_body", `${item.place}.origin_updated_at: is more than a day ahead`);
    }
    const key = `${kind} ${id}`;
    const realm = realms.get(key) ?? draft.version(kind, id)?.record.realm ?? item.realm;
    realms.set(key, realm);
    if (realm !== item.realm) throw new EngineError("bad_request_body", `${item.place}.id: is taken in another realm`);
  }
}

function apply(item: CarriedItem, draft: Draft): ImportOutcome {
  const { kind, id } = keyOf(item);
  const originUpdatedAtUs = originOf(item, draft);
  const current = draft.version(kind, id);
  if (!("fact" in item)) {
    const { realm, erased_at: erasedAtUs } = item.tombstone;
    const contentHash = hashOfTombstone({ id, realm, erasedAtUs });
    if (isSame({ originUpdatedAtUs, contentHash }, current?.record)) return "unchanged";
    if (!becomesCurrent({ originUpdatedAtUs, contentHash }, current)) return "superseded";
    draft.erase({ kind, id, realm }, originUpdatedAtUs, erasedAtUs);
    return "erased";
  }
  const content = item.fact.contentAt(originUpdatedAtUs);
  const contentHash = item.kind === "node" ? hashOfNode(content as NodeContent) : hashOfEdge(content as EdgeContent);
  if (isSame({ originUpdatedAtUs, contentHash }, current?.record)) return "unchanged";
  if (becomesCurrent({ originUpdatedAtUs, contentHash }, current)) {
    if (item.kind === "node") draft.putNode(content as NodeContent, originUpdatedAtUs);
    else draft.putEdge(content as EdgeContent, originUpdatedAtUs);
    return current === undefined || current.erased ? "created" : "updated";
  }
  const erasedUs = draft.erasedOriginUs(kind, id);
  if (erasedUs === undefined || originUpdatedAtUs > erasedUs) {
    if (item.kind === "node") draft.addFormer({ kind: "node", content: content as NodeContent }, originUpdatedAtUs);
    else draft.addFormer({ kind: "edge", content: content as EdgeContent }, originUpdatedAtUs);
  }
  return "superseded";
}

type Origin = { originUpdatedAtUs: number; contentHash: string };

function isSame(a: Origin, b: Origin | undefined): boolean {
  return b !== undefined && a.originUpdatedAtUs === b.originUpdatedAtUs && a.contentHash === b.contentHash;
}

function noneOf(): ImportCounts {
  return { created: 0, updated: 0, unchanged: 0, superseded: 0, erased: 0 };
}
