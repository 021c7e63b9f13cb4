import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import { MEMORY_TYPES } from "../memory/model.ts";
import type { Extractor, ExtractedStatement } from "../mcp/deps.ts";
import type { AgentEngines } from "./engines/engines.ts";
import { smallTask } from "./engines/small-task.ts";
import { jsonIn } from "../../core/json-text.ts";

const TIMEOUT_MS = 30_000;
const MAX_TOKENS = 2_000;
const MAX_STATEMENTS = 20;
/** Of a transcript: its end, where more of it is. */
const TRANSCRIPT_CHARS = 120_000;
const STATEMENT_CHARS = 2_000;

const TASK =
  "From this conversation, note what later conversations should know: facts, decisions, preferences, learnings, procedures " +
  "that will hold beyond it. Nothing that is only about this moment, no guesses, no keys or passwords. Each statement must " +
  "be understood on its own, in the language of the conversation. Answer with JSON lines and nothing else, at most " +
  `${MAX_STATEMENTS}, each {"turn": number of the turn that says it, "memory_type": ${JSON.stringify(MEMORY_TYPES)}, ` +
  '"content": "the statement"}. Where there is nothing to note, answer with an empty line.';

const statement = z.object({
  turn: z.int().min(1),
  memory_type: z.enum(MEMORY_TYPES),
  content: z.string().trim().min(3).max(STATEMENT_CHARS),
});

/** What the engine of the agent finds in transcripts, beyond what they state outright. */
export function extractor(deps: {
  engines: Pick<AgentEngines, "current" | "open">;
  clock: Clock;
  random: Random;
}): Extractor {
  return async ({ turns, origin, signal }) => {
    if ((await deps.engines.current()) === undefined) return undefined;
    const engine = await deps.engines.open(origin);
    const text = turns.map(({ turn, role, content }) => `Turn ${turn} (${role}): ${content}`).join("\n");
    const asked = { task: TASK, origin: "the conversation", text: text.slice(-TRANSCRIPT_CHARS), signal };
    const said = await smallTask(engine, { ...asked, maxOutputTokens: MAX_TOKENS, timeoutMs: TIMEOUT_MS }, deps);
    return statementsIn(said, new Set(turns.map(({ turn }) => turn)));
  };
}

/** Lines that are no statement of a turn there is are left out: a model may say anything. */
function statementsIn(said: string, turns: ReadonlySet<number>): ExtractedStatement[] {
  const found = new Map<string, ExtractedStatement>();
  for (const line of said.split("\n")) {
    const read = statement.safeParse(jsonIn(line.trim()));
    if (!read.success || !turns.has(read.data.turn) || found.size >= MAX_STATEMENTS) continue;
    const { turn, memory_type: memoryType, content } = read.data;
    found.set(content.toLowerCase(), { turn, memoryType, content });
  }
  return [...found.values()];
}
