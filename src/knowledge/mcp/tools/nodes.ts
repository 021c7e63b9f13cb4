import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { EdgeRecord, NodeRecord } from "../../memory/model.ts";
import { wireNode, type WireNode } from "../../memory/wire.ts";

/**
 * Memories and entities as tools answer with them: what is empty is left out, for a model reads every word. The schema
 * names what each of them has, for every client reads the schemas of all tools.
 */
export const toolNode = z.looseObject({ id: z.string(), kind: z.string(), content: z.string() });

export type ToolNode = z.infer<typeof toolNode>;

export function nodeOf(record: NodeRecord | EdgeRecord): ToolNode {
  if ("src" in record) throw new EngineError("internal", `the node ${record.id} is stored as an edge`);
  return shortNode(wireNode(record));
}

export function shortNode(node: WireNode): ToolNode {
  const { id, realm, kind, content, importance, trust, valid_from, updated_at } = node;
  const { memory_type, entity_kind, name, topic_key, source, valid_to, invalidated_at, invalidation_reason } = node;
  const optional = { memory_type, entity_kind, name, topic_key, source, valid_to, invalidated_at, invalidation_reason };
  const said = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)) as Partial<ToolNode>;
  return {
    id,
    realm,
    kind,
    ...said,
    content,
    ...(node.tags.length > 0 && { tags: node.tags }),
    ...(Object.keys(node.props).length > 0 && { props: node.props }),
    importance,
    trust,
    valid_from,
    updated_at,
  };
}
