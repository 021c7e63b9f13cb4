import { z } from "zod";
import { nameSchemas } from "../../server/schema-names.ts";
import { NODE_KINDS, TRUSTS, type EdgeRecord, type LifeCycle, type NodeRecord, type Tombstone } from "./model.ts";
import type { Version } from "./rows.ts";
import { usToText, usToTextOrNull } from "./times.ts";

/** Records as they go over the wire. */

const time = z.string().describe("RFC 3339, UTC, in µs.");

const lifeCycle = {
  version: z.int().describe("Counts the versions of the id on this replica."),
  valid_from: time.describe("From when on it holds."),
  valid_to: time.nullable().describe("When it ceases to hold."),
  invalidated_at: time.nullable(),
  invalidated_by: z.string().nullable(),
  invalidation_reason: z.string().nullable(),
  created_at: time,
  updated_at: time.describe("The stamp of the commit that brought this version here."),
  origin_updated_at: time.describe("When this version was made, on whichever replica: the latest one prevails."),
};

export const memoryNode = z.object({
  id: z.string(),
  realm: z.string(),
  kind: z.enum(NODE_KINDS),
  memory_type: z.string().nullable(),
  entity_kind: z.string().nullable(),
  name: z.string().nullable(),
  content: z.string(),
  tags: z.array(z.string()),
  importance: z.number().describe("0 to 1."),
  topic_key: z.string().nullable(),
  props: z.record(z.string(), z.unknown()),
  source: z.string().nullable(),
  trust: z.enum(TRUSTS),
  ...lifeCycle,
});

export const memoryEdge = z.object({
  id: z.string(),
  realm: z.string(),
  src: z.string(),
  dst: z.string(),
  namespace: z.string().describe("Of `dst`: `memory`, or a graph."),
  rel: z.string(),
  weight: z.number(),
  props: z.record(z.string(), z.unknown()),
  ...lifeCycle,
});

export const memoryTombstone = z
  .object({
    id: z.string(),
    realm: z.string(),
    version: z.int(),
    erased_at: time,
    updated_at: time,
    origin_updated_at: time,
  })
  .describe("What is left of a record that was erased.");

nameSchemas({ MemoryNode: memoryNode, MemoryEdge: memoryEdge, MemoryTombstone: memoryTombstone });

export type WireNode = z.infer<typeof memoryNode>;
export type WireEdge = z.infer<typeof memoryEdge>;
export type WireTombstone = z.infer<typeof memoryTombstone>;

export function wireNode(node: NodeRecord): WireNode {
  return {
    id: node.id,
    realm: node.realm,
    kind: node.kind,
    memory_type: node.memoryType ?? null,
    entity_kind: node.entityKind ?? null,
    name: node.name ?? null,
    content: node.content,
    tags: [...node.tags],
    importance: node.importance,
    topic_key: node.topicKey ?? null,
    props: node.props,
    source: node.source ?? null,
    trust: node.trust,
    ...wireLifeCycle(node),
  };
}

export function wireEdge(edge: EdgeRecord): WireEdge {
  const { id, realm, src, dst, namespace, rel, weight, props } = edge;
  return { id, realm, src, dst, namespace, rel, weight, props, ...wireLifeCycle(edge) };
}

export function wireTombstone({ id, realm, version, ...times }: Tombstone): WireTombstone {
  return {
    id,
    realm,
    version,
    erased_at: usToText(times.erasedAtUs),
    updated_at: usToText(times.updatedAtUs),
    origin_updated_at: usToText(times.originUpdatedAtUs),
  };
}

/** A version as replicas exchange it. */
export function wireVersion(version: Version): WireNode | WireEdge | WireTombstone {
  if (version.erased) return wireTombstone(version.record);
  return version.kind === "node" ? wireNode(version.record) : wireEdge(version.record);
}

function wireLifeCycle(record: LifeCycle) {
  return {
    version: record.version,
    valid_from: usToText(record.validFromUs),
    valid_to: usToTextOrNull(record.validToUs),
    invalidated_at: usToTextOrNull(record.invalidatedAtUs),
    invalidated_by: record.invalidatedBy ?? null,
    invalidation_reason: record.invalidationReason ?? null,
    created_at: usToText(record.createdAtUs),
    updated_at: usToText(record.updatedAtUs),
    origin_updated_at: usToText(record.originUpdatedAtUs),
  };
}
