import { hash } from "node:crypto";

/**
 * Ids that follow from what a record is about. Replicas that have never heard of each other give the same entity, topic or
 * edge the same id. They look like UUIDs, of version 8 (RFC 9562 §5.8).
 */

export function entityId(realm: string, entityKind: string, name: string): string {
  return derivedId("entity", realm, entityKind, foldEntityName(name));
}

export function topicId(realm: string, topicKey: string): string {
  return derivedId("topic", realm, topicKey);
}

export function edgeId(edge: { realm: string; src: string; dst: string; namespace: string; rel: string }): string {
  return derivedId("edge", edge.realm, edge.src, edge.rel, edge.namespace, edge.dst);
}

/** Under which key the vector of a node's text is stored: that of another node, or of another text, is another one. */
export function textKey(nodeId: string, text: string): string {
  return derivedId("text", nodeId, text);
}

/** Under which names are the same entity: compatible spellings, cases and blanks make no other one. */
export function foldEntityName(name: string): string {
  return name.normalize("NFKC").toLowerCase().normalize("NFKC").replace(/\s+/gu, " ").trim();
}

/** The digits by which equal things are found, and ties broken. Parts are told apart whatever they contain. */
export function digestOf(parts: readonly unknown[]): string {
  return hash("sha256", JSON.stringify(parts), "hex").slice(0, 32);
}

function derivedId(...parts: readonly string[]): string {
  const hex = digestOf(parts);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return [...groups, hex.slice(20)].join("-");
}
