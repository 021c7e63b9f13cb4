import { DEFAULT_NAMESPACE, DEFAULT_REL, type EdgeRecord, type NodeRecord } from "../memory/model.ts";

/**
 * When a dream may end one thing for another: where both are about the same two entities, or about the same entity, at the
 * same end and by the same relation. An edge is about its ends; a memory is about what it is linked with.
 */

/** Relations that say no more than that two things have to do with each other. */
const VAGUE: ReadonlySet<string> = new Set([DEFAULT_REL, "mentions", "follows"]);

type Ends = Pick<EdgeRecord, "src" | "dst" | "rel" | "namespace">;
type IsEntity = (id: string) => boolean;

/** An entity that something is about: at which end of which relation it stands. */
type About = { entity: string; end: "src" | "dst"; rel: string };

export function mayReplaceEdge(old: Ends, by: Ends, isEntity: IsEntity): boolean {
  if (old.namespace !== DEFAULT_NAMESPACE || by.namespace !== DEFAULT_NAMESPACE) return false;
  const areEntities = isEntity(old.src) && isEntity(old.dst);
  const samePair = [old.src, old.dst].toSorted().join() === [by.src, by.dst].toSorted().join();
  if (areEntities && samePair && !VAGUE.has(by.rel)) return true;
  const sameEnd = (old.src === by.src && isEntity(old.src)) || (old.dst === by.dst && isEntity(old.dst));
  return old.rel === by.rel && !VAGUE.has(old.rel) && sameEnd;
}

/** `oldEdges` and `byEdges` are the edges of the memories that hold. */
export function mayReplaceNode(
  old: Pick<NodeRecord, "id" | "kind">,
  oldEdges: readonly Ends[],
  by: Pick<NodeRecord, "id" | "kind">,
  byEdges: readonly Ends[],
  isEntity: IsEntity,
): boolean {
  // An entity is no statement: nothing replaces it.
  if (old.kind !== "memory" || by.kind !== "memory") return false;
  const [ofOld, ofBy] = [aboutOf(old.id, oldEdges, isEntity), aboutOf(by.id, byEdges, isEntity)];
  const entities = new Set(ofBy.map(({ entity }) => entity));
  const shared = new Set(ofOld.map(({ entity }) => entity).filter((entity) => entities.has(entity)));
  if (shared.size >= 2) return true;
  return ofOld.some(
    (a) => !VAGUE.has(a.rel) && ofBy.some((b) => a.entity === b.entity && a.end === b.end && a.rel === b.rel),
  );
}

function aboutOf(id: string, edges: readonly Ends[], isEntity: IsEntity): About[] {
  return edges.flatMap(({ src, dst, rel, namespace }): About[] => {
    if (namespace !== DEFAULT_NAMESPACE) return [];
    if (src === id && isEntity(dst)) return [{ entity: dst, end: "dst", rel }];
    return dst === id && isEntity(src) ? [{ entity: src, end: "src", rel }] : [];
  });
}
