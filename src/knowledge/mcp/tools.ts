import { z } from "zod";
import type { CallerRole } from "../../config/kinds.ts";
import { mayCall, type Tool, type ToolHints } from "./tool.ts";
import { ask } from "./tools/ask.ts";
import { describeTable, ingestRows, listTables, queryKql, querySql } from "./tools/data.ts";
import { graphNeighbors, graphSearch, graphSubgraph, listGraphs } from "./tools/graphs.ts";
import { distillTranscript } from "./tools/distill.ts";
import { getMemory, memoryOverviewTool, recallMemory } from "./tools/recall.ts";
import { listSkills, readSkill } from "./tools/skills.ts";
import { forgetMemory, ingestEntity, invalidateMemory, saveMemories, saveMemory } from "./tools/remember.ts";

/** Every tool, in the order in which clients are shown them. */
export const TOOLS: readonly Tool[] = [
  recallMemory,
  getMemory,
  memoryOverviewTool,
  listTables,
  describeTable,
  querySql,
  queryKql,
  listGraphs,
  graphSearch,
  graphNeighbors,
  graphSubgraph,
  listSkills,
  readSkill,
  ask,
  saveMemory,
  saveMemories,
  invalidateMemory,
  forgetMemory,
  ingestEntity,
  distillTranscript,
  ingestRows,
];

const BY_NAME: ReadonlyMap<string, Tool> = new Map(TOOLS.map((tool) => [tool.name, tool]));

export function toolNamed(name: string): Tool | undefined {
  return BY_NAME.get(name);
}

/** A tool as `tools/list` has it. */
export type ListedTool = ReturnType<typeof listedTool>;

const lists = new Map<CallerRole, readonly ListedTool[]>();

/** The tools that a caller with the role may call. Made once: every client asks for it. */
export function toolsFor(role: CallerRole): readonly ListedTool[] {
  const made = lists.get(role) ?? TOOLS.filter((tool) => mayCall(tool, role)).map(listedTool);
  lists.set(role, made);
  return made;
}

/** The tool in the words of the protocol. */
export function listedTool({ name, title, description, role, hints, input, output }: Tool) {
  return {
    name,
    title,
    description,
    inputSchema: { ...schemaOf(input, { depth: 3 }), additionalProperties: false },
    outputSchema: schemaOf(output, { depth: 1 }),
    annotations: annotationsOf(role, hints),
  };
}

/** Without what clients assume: a tool changes something, and not twice the same. */
function annotationsOf(role: Tool["role"], { destructive, idempotent }: ToolHints) {
  if (role === "read") return { readOnlyHint: true, openWorldHint: false };
  const isIdempotent = idempotent === true && { idempotentHint: true };
  return { destructiveHint: destructive === true, ...isIdempotent, openWorldHint: false };
}

type Json = Record<string, unknown>;
type ObjectSchema = { type: "object" } & Json;

/** By schema and depth: a run offers its tools in each step, and making their schemas takes milliseconds. */
const schemas = new WeakMap<z.ZodObject, Map<number, ObjectSchema>>();

/** `depth`: of the levels of objects that are described; clients are told less of answers, which explain themselves. */
function schemaOf(schema: z.ZodObject, { depth }: { depth: number }): ObjectSchema {
  const made = schemas.get(schema) ?? new Map<number, ObjectSchema>();
  schemas.set(schema, made);
  const known = made.get(depth);
  if (known !== undefined) return known;
  const { $schema: _dialect, ...own } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json;
  const shown = shortened(own, depth) as ObjectSchema;
  made.set(depth, shown);
  return shown;
}

/**
 * Without what a model need not read: the forms and lengths of texts, the bounds of every number, null beside a type (all
 * arguments may be null) and what goes without saying. A call is checked by the whole schema.
 */
function shortened(schema: Json, depth: number): Json {
  const {
    pattern: _form,
    format: _kind,
    minLength: _shortest,
    maxLength: _longest,
    propertyNames: _names,
    additionalProperties: _more,
    ...rest
  } = schema;
  const { anyOf, properties, required, ...plain } = rest;
  const [only, ...others] = ((anyOf ?? []) as Json[])
    .filter(({ type }) => type !== "null")
    .map((one) => shortened(one, depth));
  const own: Json = { ...plain, ...(others.length > 0 ? { anyOf: [only, ...others] } : only) };
  if (own["minimum"] === Number.MIN_SAFE_INTEGER) delete own["minimum"];
  if (own["maximum"] === Number.MAX_SAFE_INTEGER) delete own["maximum"];
  if (own["description"] === "") delete own["description"];
  if (Array.isArray(own["type"])) own["type"] = own["type"].find((type) => type !== "null");
  if (depth === 0) delete own["items"];
  else if (own["items"] !== undefined) own["items"] = shortened(own["items"] as Json, depth);
  const described = Object.entries((properties ?? {}) as Record<string, Json>);
  if (described.length === 0 || depth === 0) return own;
  own["properties"] = Object.fromEntries(described.map(([name, inner]) => [name, shortened(inner, depth - 1)]));
  return required === undefined ? own : { ...own, required };
}
