import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import { FIELDS } from "./fields.ts";
import {
  DEFAULT_IMPORTANCE,
  DEFAULT_NAMESPACE,
  DEFAULT_REALM,
  DEFAULT_REL,
  DEFAULT_WEIGHT,
  NODE_KINDS,
  TRUSTS,
} from "./model.ts";

/**
 * Records as they may come from outside, by the names of the wire. What is null or left out is absent; fields that are not
 * named here are those of a newer version, or of an answer, and are left out.
 */

const optional = <T extends z.ZodType>(type: T) => type.nullish().transform((value) => value ?? undefined);

/** What a caller says of a memory or an entity. */
const said = {
  realm: optional(FIELDS.realm),
  kind: z.enum(NODE_KINDS).default("memory"),
  memory_type: optional(FIELDS.word),
  entity_kind: optional(FIELDS.word),
  name: optional(FIELDS.name),
  content: z.preprocess((value) => (value === "" ? undefined : value), optional(FIELDS.content)),
  tags: optional(FIELDS.tags),
  importance: optional(FIELDS.importance),
  topic_key: optional(FIELDS.topicKey),
  props: optional(FIELDS.props),
  source: optional(FIELDS.source),
  trust: optional(z.enum(TRUSTS)),
  valid_from: optional(FIELDS.time),
  valid_to: optional(FIELDS.time),
};

const saidOfEdge = {
  realm: optional(FIELDS.realm),
  src: FIELDS.id,
  dst: FIELDS.id,
  namespace: FIELDS.word.nullish().transform((value) => value ?? DEFAULT_NAMESPACE),
  rel: FIELDS.rel.nullish().transform((value) => value ?? DEFAULT_REL),
  weight: optional(FIELDS.weight),
  props: optional(FIELDS.props),
  valid_from: optional(FIELDS.time),
  valid_to: optional(FIELDS.time),
};

/** What only replicas say. */
const carried = {
  id: optional(FIELDS.id),
  invalidated_at: optional(FIELDS.time),
  invalidated_by: optional(FIELDS.source),
  invalidation_reason: optional(FIELDS.reason),
  created_at: optional(FIELDS.time),
  origin_updated_at: optional(FIELDS.time),
};

type Validity = { valid_from?: number | undefined; valid_to?: number | undefined };
const isOrdered = ({ valid_from: from, valid_to: to }: Validity): boolean =>
  from === undefined || to === undefined || from <= to;
const ORDERED = { error: "ends before it begins", path: ["valid_to"] };

type Named = {
  kind: string;
  content?: string | undefined;
  name?: string | undefined;
  entity_kind?: string | undefined;
  topic_key?: string | undefined;
};

/** What each kind of node must have, and must not. */
function checkKind({ kind, content, name, entity_kind, topic_key }: Named, context: z.RefinementCtx): void {
  const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  if (kind === "memory") {
    if (content === undefined) refuse("content", "is empty");
    if (entity_kind !== undefined) refuse("entity_kind", "belongs to entities");
    return;
  }
  if (name === undefined) refuse("name", "is empty: an entity has a name");
  if (entity_kind === undefined) refuse("entity_kind", "is empty: an entity is a person, a service, …");
  if (topic_key !== undefined) refuse("topic_key", "belongs to memories");
}

export const nodeInput = z.object(said).superRefine(checkKind).refine(isOrdered, ORDERED);
export const edgeInput = z.object(saidOfEdge).refine(isOrdered, ORDERED);
export const importedNode = z
  .object({ ...said, ...carried })
  .superRefine(checkKind)
  .refine(isOrdered, ORDERED);
export const importedEdge = z.object({ ...saidOfEdge, ...carried }).refine(isOrdered, ORDERED);
export const importedTombstone = z.object({
  id: FIELDS.id,
  realm: FIELDS.realm.default(DEFAULT_REALM),
  erased_at: FIELDS.time,
  origin_updated_at: optional(FIELDS.time),
});

export type NodeInput = z.output<typeof nodeInput>;
export type EdgeInput = z.output<typeof edgeInput>;
export type ImportedNode = z.output<typeof importedNode>;
export type ImportedEdge = z.output<typeof importedEdge>;
export type ImportedTombstone = z.output<typeof importedTombstone>;

/** What a node says where its maker said nothing. */
export const NODE_DEFAULTS = { importance: DEFAULT_IMPORTANCE, trust: "stated", tags: [], props: {} } as const;
export const EDGE_DEFAULTS = { weight: DEFAULT_WEIGHT, props: {} } as const;

/** Throws `bad_request_body` that names the field, after `place`. */
export function accepted<T extends z.ZodType>(schema: T, value: unknown, place = ""): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = [place, ...(issue?.path ?? []).map(String)].filter((part) => part !== "").join(".");
  throw new EngineError(
    "bad_request_body",
    `${path === "" ? "the record" : path}: ${issue?.message ?? "not accepted"}`,
  );
}
