import { z } from "zod";
import type { Caller } from "../../auth/caller.ts";
import { roleIncludes } from "../../auth/caller.ts";
import type { CallerRole } from "../../config/kinds.ts";
import { EngineError } from "../../core/errors.ts";
import { prototypeKeyIn } from "../../core/prototype-keys.ts";
import { accepted } from "../memory/input.ts";
import type { ToolDeps } from "./deps.ts";

/** One call of a tool: who asks, and for what of the process. */
export type ToolCall = {
  deps: ToolDeps;
  caller: Caller;
  /** For the audit log. */
  address: string;
  requestId: string;
  /** What the connection is about, where the call names no database. */
  database: string;
  /** Aborted when the client leaves or takes the call back. */
  signal: AbortSignal;
};

export type ToolResult = Record<string, unknown>;

/** A tool as the server offers it. */
export type Tool = {
  name: string;
  title: string;
  /** For the model that chooses among tools. */
  description: string;
  role: "read" | "write";
  hints: ToolHints;
  input: z.ZodObject;
  output: z.ZodObject;
  /** Arrays of the result whose ends are left out where the text would be too long: what matters most first. */
  lists: readonly string[];
  run: (call: ToolCall, input: never) => Promise<ToolResult>;
};

/** What clients may rely on when they ask people before they call. */
export type ToolHints = {
  /** It takes away what cannot be brought back. */
  destructive?: true;
  /** The same call again changes nothing. */
  idempotent?: true;
};

type Typed<I extends z.ZodObject, O extends z.ZodObject> = Omit<
  Tool,
  "input" | "output" | "run" | "hints" | "lists"
> & {
  hints?: ToolHints;
  lists?: readonly string[];
  input: I;
  output: O;
  run: (call: ToolCall, input: z.output<I>) => Promise<z.input<O>>;
};

/** Types `run` by the tool's own schemas. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(tool: Typed<I, O>): Tool {
  return { hints: {}, lists: [], ...tool };
}

/** Throws `forbidden`, `bad_request_body` that names the argument, and what the tool itself throws. */
export async function runTool(tool: Tool, call: ToolCall, args: unknown): Promise<ToolResult> {
  if (!mayCall(tool, call.caller.role)) {
    throw new EngineError("forbidden", `${tool.name} needs the role ${tool.role}; the token has ${call.caller.role}`);
  }
  const place = prototypeKeyIn(args);
  if (place !== undefined) throw new EngineError("bad_request_body", `${place}: the key is not accepted`);
  return await tool.run(call, accepted(tool.input, withoutNulls(args)) as never);
}

export function mayCall({ role }: Pick<Tool, "role">, callers: CallerRole): boolean {
  return roleIncludes(callers, role);
}

/** Models say null for what they leave out. */
function withoutNulls(args: unknown): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args ?? {};
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

/** An argument of almost every tool: the connection's database unless given, as the server's instructions say. */
export const databaseArgument = z.string().max(128).optional();

/** Whether parts of the answer are left out. */
export const truncatedField = z.boolean().optional();
