import { digestOf } from "./ids.ts";
import type { EdgeRecord, LifeCycle, NodeRecord, Tombstone } from "./model.ts";

/** What replicas exchange of a record: all but what each of them counts and stamps for itself. */
export type NodeContent = Omit<NodeRecord, keyof LocalFields>;
export type EdgeContent = Omit<EdgeRecord, keyof LocalFields>;
type LocalFields = Pick<LifeCycle, "version" | "updatedAtUs" | "originUpdatedAtUs" | "contentHash">;

export function hashOfNode(node: NodeContent): string {
  return digestOf([
    node.id,
    node.realm,
    node.kind,
    node.memoryType,
    node.entityKind,
    node.name,
    node.content,
    node.tags,
    node.importance,
    node.topicKey,
    sorted(node.props),
    node.source,
    node.trust,
    ...lifeOf(node),
  ]);
}

export function hashOfEdge(edge: EdgeContent): string {
  const { id, realm, src, dst, namespace, rel, weight, props } = edge;
  return digestOf([id, realm, src, dst, namespace, rel, weight, sorted(props), ...lifeOf(edge)]);
}

/** Greater than every hash: of an erasure and a change of one moment, the erasure prevails. */
export function hashOfTombstone({ id, realm, erasedAtUs }: Pick<Tombstone, "id" | "realm" | "erasedAtUs">): string {
  return `x${digestOf([id, realm, erasedAtUs])}`;
}

/** The same for memories that say the same: in the same realm, of the same type, in the same words. */
export function duplicateKeyOf(node: Pick<NodeRecord, "realm" | "memoryType" | "content">): string {
  return digestOf([node.realm, node.memoryType, node.content.replace(/\s+/gu, " ")]);
}

function lifeOf(life: Omit<LifeCycle, keyof LocalFields>): unknown[] {
  return [
    life.validFromUs,
    life.validToUs,
    life.invalidatedAtUs,
    life.invalidatedBy,
    life.invalidationReason,
    life.createdAtUs,
  ];
}

/** With the keys of all objects in order, for the order in which they were sent says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
