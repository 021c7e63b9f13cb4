import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { questionInput } from "../question.ts";
import { databaseArgument, defineTool, truncatedField } from "../tool.ts";

export const ask = defineTool({
  name: "ask",
  title: "Ask the agent",
  description: "This server's agent answers from data and memory.",
  role: "read",
  input: z.strictObject({
    question: questionInput,
    session_id: z.uuid().optional(),
    database: databaseArgument,
  }),
  output: z.object({
    answer: z.string(),
    session_id: z.string(),
    run_id: z.string(),
    queries: z.array(z.string()),
    truncated: truncatedField,
  }),
  lists: ["queries"],
  run: async (
    { deps, caller, address, requestId, database: own, signal },
    { question, session_id, database = own },
  ) => {
    if (deps.asker === undefined) {
      throw new EngineError("not_configured", "this process answers no questions: ask a server, as of `engine serve`");
    }
    const asked = { question, database, sessionId: session_id, source: "mcp" };
    const { answer, sessionId, runId, queries } = await deps.asker.ask(asked, { caller, address, requestId }, signal);
    return { answer, session_id: sessionId, run_id: runId, queries: [...queries] };
  },
});
