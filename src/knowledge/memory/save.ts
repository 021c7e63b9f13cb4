import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { duplicateKeyOf, hashOfEdge, hashOfNode, type EdgeContent, type NodeContent } from "./content-hash.ts";
import type { Draft, RecordKey } from "./draft.ts";
import { edgeId, entityId, topicId } from "./ids.ts";
import { EDGE_DEFAULTS, NODE_DEFAULTS, type EdgeInput, type NodeInput } from "./input.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import { DEFAULT_NAMESPACE, DEFAULT_REALM, type EdgeRecord, type NodeRecord } from "./model.ts";
import { checkRealm, isPrivateRealm, maySee, type RealmRights } from "./realms.ts";
import type { Operation } from "./writer.ts";

/**
 * - `created`: the first version, or the first after an erasure.
 * - `updated`: a new version of what was there.
 * - `confirmed`: it was there already.
 */
export type SaveOutcome = "created" | "updated" | "confirmed";
export type Saved<R> = { outcome: SaveOutcome; record: R };

/** The id that follows from what a node is about; undefined for a memory without a topic. */
export function derivedNodeId(node: Pick<NodeInput, "kind" | "entity_kind" | "name" | "topic_key">, realm: string) {
  const { kind, entity_kind: entityKind, name, topic_key: topicKey } = node;
  if (kind === "entity") return entityId(realm, entityKind ?? "", name ?? "");
  return topicKey === undefined ? undefined : topicId(realm, topicKey);
}

/**
 * Saves a memory or an entity. An entity, and a memory with a topic key, become a new version of what has that name or
 * key: a memory says then what is said now, an entity what is said of it together. Of what is not said, what was said
 * before stays. A memory without a topic key that says what another one says confirms that one.
 */
export function saveNode(input: NodeInput, rights: RealmRights, newId: IdSource): Operation<Saved<NodeRecord>> {
  const realm = input.realm ?? DEFAULT_REALM;
  checkRealm(rights, realm);
  const derived = derivedNodeId(input, realm);
  const id = derived ?? newId();
  const duplicateKeys =
    derived === undefined && input.valid_to === undefined
      ? [duplicateKeyOf({ realm, memoryType: input.memory_type, content: input.content ?? "" })]
      : [];
  return {
    items: 1,
    needs: { keys: derived === undefined ? [] : [nodeKey(derived)], duplicateKeys },
    plan: (draft) => {
      const [duplicateKey] = duplicateKeys;
      const before = duplicateKey === undefined ? draft.node(id) : draft.confirmable(duplicateKey);
      if (before === undefined)
        return { outcome: "created", record: draft.putNode(newNode(input, { id, realm }, draft)) };
      const changed = duplicateKey === undefined ? said(input, before, draft) : confirmed(input, before);
      if (hashOfNode(changed) === before.contentHash) return { outcome: "confirmed", record: before };
      return { outcome: duplicateKey === undefined ? "updated" : "confirmed", record: draft.putNode(changed) };
    },
  };
}

function newNode(input: NodeInput, key: { id: string; realm: string }, draft: Draft): NodeContent {
  return { ...nodeSaid(input, key), ...validFrom(input, draft), createdAtUs: draft.stampUs };
}

/** What a node says that is not there yet, without its life. */
export function nodeSaid(input: NodeInput, { id, realm }: { id: string; realm: string }) {
  return {
    id,
    realm,
    kind: input.kind,
    memoryType: input.memory_type,
    entityKind: input.entity_kind,
    name: input.name,
    content: input.content ?? "",
    tags: input.tags ?? NODE_DEFAULTS.tags,
    importance: input.importance ?? NODE_DEFAULTS.importance,
    topicKey: input.topic_key,
    props: input.props ?? NODE_DEFAULTS.props,
    source: input.source,
    trust: input.trust ?? NODE_DEFAULTS.trust,
  };
}

/** What is said of a topic or an entity now. If that is what was said before, its validity stays as it is, too. */
function said(input: NodeInput, before: NodeRecord, draft: Draft): NodeContent {
  const isEntity = input.kind === "entity";
  const merged: NodeRecord = {
    ...before,
    memoryType: input.memory_type ?? before.memoryType,
    // The name as it was first spelled: the id folds it.
    name: isEntity ? before.name : (input.name ?? before.name),
    content: input.content ?? before.content,
    tags: isEntity ? union(before.tags, input.tags) : (input.tags ?? before.tags),
    importance: input.importance ?? before.importance,
    props: isEntity ? { ...before.props, ...input.props } : (input.props ?? before.props),
    source: input.source ?? before.source,
    trust: input.trust ?? before.trust,
  };
  if (keepsValidity(input, before) && hashOfNode(merged) === before.contentHash) return merged;
  return { ...merged, ...validFrom(input, draft) };
}

/** What a memory becomes when the same is said again: nothing else, but that it may matter more. */
function confirmed(input: NodeInput, before: NodeRecord): NodeContent {
  return {
    ...before,
    tags: union(before.tags, input.tags),
    importance: Math.max(before.importance, input.importance ?? 0),
  };
}

/** Whether what is said again leaves open how long it holds, and it holds. */
function keepsValidity(input: NodeInput | EdgeInput, before: NodeRecord | EdgeRecord): boolean {
  const isOpen = before.validToUs === undefined && before.invalidatedAtUs === undefined;
  return isOpen && input.valid_from === undefined && input.valid_to === undefined;
}

function validFrom({ valid_from, valid_to }: Pick<NodeInput, "valid_from" | "valid_to">, { stampUs }: Draft) {
  const validFromUs = valid_from ?? Math.min(stampUs, valid_to ?? stampUs);
  const isNotInvalidated = { invalidatedAtUs: undefined, invalidatedBy: undefined, invalidationReason: undefined };
  return { validFromUs, validToUs: valid_to, ...isNotInvalidated };
}

function union(before: readonly string[], more: readonly string[] = []): readonly string[] {
  return [...new Set([...before, ...more])].slice(0, MEMORY_LIMITS.tags);
}

/**
 * Saves an edge between nodes that are there; `ends` are those of the memory. It lies in their realm: where one end is
 * a user's own, so is the edge.
 */
export function saveEdge(
  input: EdgeInput,
  ends: readonly Pick<NodeRecord, "realm">[],
  rights: RealmRights,
): Operation<Saved<EdgeRecord>> {
  const realm = realmOfEdge(input, ends);
  checkRealm(rights, realm);
  const { src, dst, namespace, rel } = input;
  const id = edgeId({ realm, src, dst, namespace, rel });
  const nodes = endsInMemory(input);
  return {
    items: 1,
    needs: { keys: [{ kind: "edge", id }, ...nodes.map(nodeKey)] },
    plan: (draft) => {
      for (const end of nodes) checkEnd(draft.node(end), end, rights);
      return putSaidEdge(input, { id, realm }, draft);
    },
  };
}

export function putSaidEdge(
  input: EdgeInput,
  { id, realm }: { id: string; realm: string },
  draft: Draft,
): Saved<EdgeRecord> {
  const before = draft.edge(id);
  if (before === undefined) {
    const { src, dst, namespace, rel, weight = EDGE_DEFAULTS.weight, props = EDGE_DEFAULTS.props } = input;
    const content = { id, realm, src, dst, namespace, rel, weight, props, createdAtUs: draft.stampUs };
    return { outcome: "created", record: draft.putEdge({ ...content, ...validFrom(input, draft) }) };
  }
  const changed = edgeSaid(input, before, draft);
  if (hashOfEdge(changed) === before.contentHash) return { outcome: "confirmed", record: before };
  return { outcome: "updated", record: draft.putEdge(changed) };
}

function edgeSaid(input: EdgeInput, before: EdgeRecord, draft: Draft): EdgeContent {
  const merged = { ...before, weight: input.weight ?? before.weight, props: input.props ?? before.props };
  if (keepsValidity(input, before) && hashOfEdge(merged) === before.contentHash) return merged;
  return { ...merged, ...validFrom(input, draft) };
}

/** The ends of an edge that are nodes of the memory. */
export function endsInMemory({ src, dst, namespace }: Pick<EdgeInput, "src" | "dst" | "namespace">): string[] {
  return namespace === DEFAULT_NAMESPACE ? [src, dst] : [src];
}

/** Throws `not_found` also for a node that the caller may not see. */
export function checkEnd(node: NodeRecord | undefined, id: string, rights: RealmRights): NodeRecord {
  if (node !== undefined && maySee(rights, node.realm)) return node;
  throw new EngineError("not_found", `there is no node ${JSON.stringify(id)} in the memory for the edge to end at`);
}

function realmOfEdge({ realm }: EdgeInput, ends: readonly Pick<NodeRecord, "realm">[]): string {
  const own = new Set(ends.map((end) => end.realm).filter(isPrivateRealm));
  const [first, second] = own;
  if (second !== undefined) {
    throw new EngineError(
      "bad_request_body",
      "the edge would join what belongs to two users, each of whom sees their own",
    );
  }
  if (first !== undefined && realm !== undefined && realm !== first) {
    throw new EngineError(
      "bad_request_body",
      `realm: an end of the edge is in ${JSON.stringify(first)}, so must the edge be`,
    );
  }
  return first ?? realm ?? ends[0]?.realm ?? DEFAULT_REALM;
}

export function nodeKey(id: string): RecordKey {
  return { kind: "node", id };
}
