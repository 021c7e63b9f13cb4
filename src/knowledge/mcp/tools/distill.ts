import { createHash } from "node:crypto";
import { z } from "zod";
import { EngineError, messageOf } from "../../../core/errors.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { FIREHOSE_TABLE } from "../../memory/service.ts";
import { MCP_LIMITS } from "../limits.ts";
import { statementsOf, turnsOf, type Turn } from "../statements.ts";
import type { ExtractedStatement } from "../deps.ts";
import { databaseArgument, defineTool, truncatedField, type ToolCall } from "../tool.ts";
import { storeRows } from "./data.ts";

const message = z.strictObject({
  role: z.enum(["user", "assistant", "system", "tool"]),
  content: z.string(),
  at: z.string().max(64).optional().describe("RFC 3339."),
});

/** A turn with the time at which it was said, where that is known. */
type Said = Turn & { at?: string | undefined };

export const distillTranscript = defineTool({
  name: "distill_transcript",
  title: "Distill a transcript",
  description:
    'Keeps a conversation as raw observations (table `firehose`), and saves what its user states outright ("remember …", ' +
    '"we decided …", "I prefer …"). A transcript that comes again changes nothing.',
  role: "write",
  hints: { idempotent: true },
  input: z.strictObject({
    transcript: z
      .string()
      .max(MCP_LIMITS.transcriptChars)
      .optional()
      .describe("Plain text, whose lines may begin with `User:` and `Assistant:`; or `messages`."),
    messages: z.array(message).max(MCP_LIMITS.messagesOfTranscript).optional(),
    session_id: z.string().max(200).optional(),
    realm: z.string().optional().describe("Of what is saved."),
    database: databaseArgument,
  }),
  // With `extraction_error` where the model that was to find more failed.
  output: z.looseObject({
    firehose_rows: z.int(),
    replayed: z.boolean().describe("It was here before."),
    saved: z.array(
      z.looseObject({
        id: z.string(),
        outcome: z.string(),
        memory_type: z.string(),
        content: z.string(),
        turn: z.int().describe("Which turn says it; the first is 1."),
      }),
    ),
    truncated: truncatedField,
  }),
  lists: ["saved"],
  run: async (call, { transcript, messages, session_id: sessionId, realm, database }) => {
    const turns = turnsIn(transcript, messages);
    const name = database ?? call.database;
    const { memory } = call.deps;
    const scope = await memory.scope(call.caller, name);
    const rows = turns.map(({ role, content, at }, i) => ({
      ...(at !== undefined && { at }),
      label: "transcript",
      body: maskSecrets(content),
      role,
      turn: i + 1,
      ...(sessionId !== undefined && { session_id: maskSecrets(sessionId) }),
    }));
    const hash = createHash("sha256").update(JSON.stringify(rows)).digest("hex");
    const ack = await storeRows(call, {
      database: name,
      table: FIREHOSE_TABLE,
      rows,
      idempotencyKey: `transcript:${hash}`,
    });
    const source = sessionId === undefined ? "transcript" : `transcript ${sessionId}`;
    const save = async ({ memoryType, content, turn }: ExtractedStatement, trust: "stated" | "derived") => {
      const said = { kind: "memory", memory_type: memoryType, content, source, trust };
      const { record, outcome } = await memory.saveNode(scope, { ...said, ...(realm !== undefined && { realm }) });
      return { id: record.id, outcome, memory_type: memoryType, content: record.content, turn, trust };
    };
    const saved = await Promise.all(statementsOf(turns).map((statement) => save(statement, "stated")));
    // A transcript that comes again would have the model find other words for the same.
    const found = ack.replayed ? { statements: [] } : await extracted(call, turns);
    const derived = await Promise.all(found.statements.map((statement) => save(statement, "derived")));
    return {
      firehose_rows: ack.rows,
      replayed: ack.replayed,
      saved: [...saved, ...derived],
      ...(found.problem !== undefined && { extraction_error: found.problem }),
    };
  },
});

/** What a model finds besides. Without one, and where it fails, what is stated outright is saved all the same. */
async function extracted(
  { deps, caller, address, requestId, signal }: ToolCall,
  turns: readonly Said[],
): Promise<{ statements: ExtractedStatement[]; problem?: string }> {
  try {
    // What tools answered is full of what others wrote, as pages that an agent has read.
    const masked = turns
      .map(({ role, content }, i) => ({ turn: i + 1, role, content: maskSecrets(content) }))
      .filter(({ role }) => role === "user" || role === "assistant");
    const origin = { caller, address, requestId };
    return { statements: (await deps.extractor?.({ turns: masked, origin, signal })) ?? [] };
  } catch (error) {
    signal.throwIfAborted();
    return { statements: [], problem: messageOf(error) };
  }
}

/** Throws `bad_request_body` where nothing was said, or too much. */
function turnsIn(transcript: string | undefined, messages: readonly Said[] | undefined): Said[] {
  if ((transcript === undefined) === (messages === undefined)) {
    throw new EngineError("bad_request_body", "give either `transcript` or `messages`");
  }
  const turns: Said[] = transcript === undefined ? [...(messages ?? [])] : turnsOf(transcript);
  if (turns.every(({ content }) => content.trim() === "")) {
    throw new EngineError("bad_request_body", "the transcript is empty");
  }
  if (turns.length > MCP_LIMITS.messagesOfTranscript) {
    throw new EngineError("bad_request_body", `the transcript has more than ${MCP_LIMITS.messagesOfTranscript} turns`);
  }
  return turns;
}
