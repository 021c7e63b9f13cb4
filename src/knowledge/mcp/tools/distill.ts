import { createHash } from "node:crypto";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { FIREHOSE_TABLE } from "../../memory/service.ts";
import { MCP_LIMITS } from "../limits.ts";
import { statementsOf, turnsOf, type Turn } from "../statements.ts";
import { databaseArgument, defineTool, truncatedField } from "../tool.ts";
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
  output: z.object({
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
    const saved = await Promise.all(
      statementsOf(turns).map(async ({ memoryType, content, turn }) => {
        const fields = {
          kind: "memory",
          memory_type: memoryType,
          content,
          source,
          ...(realm !== undefined && { realm }),
        };
        const { record, outcome } = await memory.saveNode(scope, fields);
        return { id: record.id, outcome, memory_type: memoryType, content: record.content, turn };
      }),
    );
    return { firehose_rows: ack.rows, replayed: ack.replayed, saved };
  },
});

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
