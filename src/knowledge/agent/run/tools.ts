import { z } from "zod";
import type { Caller } from "../../../auth/caller.ts";
import { roleIncludes } from "../../../auth/caller.ts";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { foldName } from "../../../core/names.ts";
import { asEngineError } from "../../../server/error-response.ts";
import { MEMORY_TYPES } from "../../memory/model.ts";
import { errorText, fitted } from "../../mcp/answer.ts";
import type { ToolDeps } from "../../mcp/deps.ts";
import { defineTool, runTool, type Tool, type ToolResult } from "../../mcp/tool.ts";
import { listedTool, TOOLS } from "../../mcp/tools.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { Citations, ToolResultData } from "./events.ts";

/** What a run is about, as its tools see it. */
export type ToolScope = {
  deps: ToolDeps;
  caller: Caller;
  address: string;
  requestId: string;
  database: string;
  runId: string;
  clock: Clock;
  /** Aborted when the run ends. */
  signal: AbortSignal;
  /** How long the run may still last. */
  leftMs: () => number;
};

/** A tool as a model is offered it. */
export type OfferedTool = { name: string; description: string; inputSchema: Record<string, unknown> };

/** What the query of a call was asked of; of a call without one there is none. */
type ReadSnapshot = { id?: number };

/** What a call gave: for the model, for the client, and for what the answer rests on. */
export type ToolOutcome = {
  /** JSON, for the model. */
  text: string;
  result: Omit<ToolResultData, "id" | "name" | "duration_ms">;
};

/**
 * What a run may do: the tools of MCP that read, and, where the caller may write, one that saves a memory. They are called
 * with the caller's own rights, in the database that the question is about, and each has a part of what the run may take.
 */
export class RunTools {
  readonly citations: Citations = { queries: [], memories: [] };
  readonly #scope: ToolScope;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor(scope: ToolScope) {
    this.#scope = scope;
    // A run that asks would begin another.
    const readers = TOOLS.filter(({ role, name }) => role === "read" && name !== "ask");
    const mayWrite = roleIncludes(scope.caller.role, "write");
    const tools = mayWrite ? [...readers, savingTool(scope.runId)] : readers;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  get offered(): OfferedTool[] {
    return [...this.#tools.values()].map((tool) => {
      const { name, description, inputSchema } = listedTool(tool);
      const schema: Record<string, unknown> = inputSchema;
      const { database: _one, ...properties } = (schema["properties"] ?? {}) as Record<string, unknown>;
      return { name, description, inputSchema: { ...schema, properties } };
    });
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Never rejects, but for what ends the run: `signal`'s reason. */
  async call(name: string, input: unknown): Promise<ToolOutcome> {
    const { requestId, signal } = this.#scope;
    const tool = this.#tools.get(name);
    try {
      if (tool === undefined)
        throw new EngineError("not_found", `there is no tool ${JSON.stringify(name.slice(0, 100))}`);
      const args = this.#within(tool, input);
      const read: ReadSnapshot = {};
      const result = await runTool(tool, this.#toolCall(read), args);
      const snapshot = read.id === undefined ? {} : { snapshot_id: String(read.id) };
      this.#cite(name, args, { ...result, ...snapshot });
      const answer = answered(result, tool.lists);
      return { ...answer, result: { ...answer.result, ...snapshot } };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      return refused(asEngineError(error, requestId), requestId);
    }
  }

  #toolCall(read: ReadSnapshot) {
    const { deps, caller, address, requestId, database, signal, leftMs } = this.#scope;
    const budget = () => ({
      wallMs: Math.max(10, Math.min(AGENT_LIMITS.queryMs, Math.floor(leftMs()))),
      memoryBytes: AGENT_LIMITS.queryMemoryBytes,
    });
    const queries: ToolDeps["queries"] = {
      run: async (request) => {
        const result = await deps.queries.run({ ...request, budget: budget() });
        read.id = result.snapshot;
        return result;
      },
    };
    const graphs = deps.graphs.within(budget);
    // A row of this database must not have another one read, whatever its reader may see.
    const within = { ...caller, databases: [foldName(database)] };
    return { deps: { ...deps, queries, graphs }, caller: within, address, requestId, database, signal };
  }

  /** The arguments, if they are about the database of the question. */
  #within(tool: Tool, input: unknown): unknown {
    if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
    const { database, limit, ...others } = input as Record<string, unknown>;
    const asked = this.#scope.database;
    const isAsked = typeof database === "string" && foldName(database) === foldName(asked);
    if (database !== undefined && database !== null && !isAsked) {
      throw new EngineError("forbidden", `the question is about the database ${JSON.stringify(asked)}, and no other`);
    }
    const place = "database" in tool.input.shape ? { database: asked } : {};
    if (limit === undefined || limit === null) return { ...others, ...place };
    return { ...others, ...place, limit: typeof limit === "number" ? Math.min(limit, AGENT_LIMITS.toolRows) : limit };
  }

  #cite(name: string, args: unknown, result: ToolResult): void {
    if (name === "query_sql" || name === "query_kql") {
      const { query: text } = args as { query: string };
      const language = name === "query_sql" ? "sql" : "kql";
      const total_rows = Number(result["row_count"]);
      const snapshot_id = String(result["snapshot_id"]);
      this.citations.queries.push({ language, text, database: this.#scope.database, snapshot_id, total_rows });
    }
    if (name !== "recall_memory" && name !== "get_memory") return;
    const memories = (name === "get_memory" ? [result["memory"]] : result["memories"]) as { id?: unknown }[];
    for (const { id } of memories) {
      if (typeof id === "string" && !this.citations.memories.includes(id)) this.citations.memories.push(id);
    }
  }
}

function answered(result: ToolResult, lists: Tool["lists"]): ToolOutcome {
  const { value, text } = fitted(result, lists, AGENT_LIMITS.toolBytes);
  const rows = Array.isArray(value["rows"]) ? { rows: value["rows"].length } : {};
  const total = typeof result["row_count"] === "number" && "rows" in rows ? { total_rows: result["row_count"] } : {};
  return { text, result: { ok: true, output: value, ...rows, ...total, truncated: value["truncated"] === true } };
}

function refused(error: EngineError, requestId: string): ToolOutcome {
  const text = errorText(error, requestId);
  return { text, result: { ok: false, output: JSON.parse(text) as unknown, truncated: false } };
}

/** What a call that is no call is answered with: of a tool that is not there, or with arguments that are no JSON. */
export function badCall(message: string): ToolOutcome {
  return refused(new EngineError("bad_request_body", message), "");
}

const savingInput = z.strictObject({
  content: z.string().describe("One statement that is understood on its own."),
  memory_type: z.enum(MEMORY_TYPES).default("fact"),
  realm: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
const savingOutput = z.object({ id: z.string(), outcome: z.string() });

/**
 * What a run saves may rest on rows that anybody wrote, so it is `derived`, says which run it is from, and has no topic key:
 * it neither replaces nor ends what a person stated.
 */
function savingTool(runId: string): Tool {
  return defineTool({
    name: "save_memory",
    title: "Save a memory",
    description: "Remembers one fact, decision, preference, learning or procedure, where the person asks for that.",
    role: "write",
    hints: { idempotent: true },
    input: savingInput,
    output: savingOutput,
    run: async ({ deps: { memory }, caller, database }, fields) => {
      const scope = await memory.scope(caller, database);
      const source = `agent run ${runId}`;
      const saved = await memory.saveNode(scope, { ...fields, kind: "memory", trust: "derived", source });
      return { id: saved.record.id, outcome: saved.outcome };
    },
  });
}
