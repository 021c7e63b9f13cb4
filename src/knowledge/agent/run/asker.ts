import { EngineError } from "../../../core/errors.ts";
import type { Asker } from "../../mcp/deps.ts";
import type { Citations, RunErrorCode } from "./events.ts";
import type { AgentService } from "./service.ts";

/** Questions of tools: the whole answer at once. */
export function askerOf(agent: Pick<AgentService, "ask">): Asker {
  return {
    async ask(question, origin, signal) {
      const events = await agent.ask({ ...question, includeThinking: false }, origin);
      const leave = (): void => void events.return?.();
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const answer = { answer: "", sessionId: "", runId: "", queries: [] as string[] };
      try {
        for (let step = await events.next(); step.done !== true; step = await events.next()) {
          const { event, data } = step.value;
          if (event === "run_started") Object.assign(answer, { sessionId: data.session_id, runId: data.run_id });
          if (event === "answer_final") Object.assign(answer, { answer: data.text, queries: textsOf(data.citations) });
          if (event === "run_error") throw failureOf(data);
        }
        signal.throwIfAborted();
        return answer;
      } finally {
        signal.removeEventListener("abort", leave);
        leave();
      }
    },
  };
}

function textsOf({ queries }: Citations): string[] {
  return queries.map(({ text }) => text);
}

function failureOf({ code, message }: { code: RunErrorCode; message: string }): EngineError {
  switch (code) {
    case "not_configured":
    case "engine_timeout":
      return new EngineError(code, message);
    case "timeout":
      return new EngineError("engine_timeout", message);
    case "cancelled":
      return new EngineError("cancelled", message);
    case "interrupted":
      return new EngineError("unavailable", message);
    case "engine_failed":
    case "rate_limited":
    case "context_too_large":
    case "tool_loop":
    case "internal":
      return new EngineError("engine_failed", message);
  }
}
