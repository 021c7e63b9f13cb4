import { roleIncludes } from "../../../auth/caller.ts";
import { Semaphore } from "../../../core/concurrency.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import type { ToolDeps } from "../../mcp/deps.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { FIREHOSE_TABLE } from "../../memory/service.ts";
import { AGENT_LIMITS } from "../limits.ts";
import { smallTask } from "../engines/small-task.ts";
import type { AnsweredTurn, AskOrigin, EngineSource } from "./service.ts";
import type { Session, Sessions, SessionTurn } from "../sessions/sessions.ts";

export type AfterTurnDeps = {
  tools: ToolDeps;
  sessions: Pick<Sessions, "get" | "turns" | "saveSummary" | "saveTitle">;
  engines: Pick<EngineSource, "open">;
  /** Turns after which a summary is made anew. */
  summaryEvery: number;
  clock: Clock;
  random: Random;
  log: Log;
};

/** Requests to the model at a time: those of questions come first. */
const AT_A_TIME = 2;
const TIMEOUT_MS = 30_000;
const TITLE_TOKENS = 40;
const SUMMARY_TOKENS = 700;
/** Of each turn, for a title or a summary. */
const TURN_CHARS = 8_000;

/**
 * What a model does with a session when a question was answered: a title after the first, and a summary of what was said
 * every so many turns, which takes the place of those turns where the model is shown the session again. Nobody waits for
 * either; without them a session has its first question for a title, and its newest turns.
 */
export class AfterTurn {
  readonly #deps: AfterTurnDeps;
  readonly #turn = new Semaphore(AT_A_TIME);
  readonly #stop = new AbortController();

  constructor(deps: AfterTurnDeps) {
    this.#deps = deps;
  }

  close(): void {
    this.#stop.abort();
  }

  /** Never rejects. */
  async run(turn: AnsweredTurn): Promise<void> {
    await Promise.all([this.#keep(turn), this.#describe(turn)]);
  }

  /** As raw observations, for dreams: of those who may write, so that a reader writes nothing. */
  async #keep({ runId, sessionId, database, question, answer, origin }: AnsweredTurn): Promise<void> {
    const { tools, log } = this.#deps;
    const { caller } = origin;
    if (!roleIncludes(caller.role, "write")) return;
    try {
      const { agent } = await tools.memory.settings(await tools.memory.scope(caller, database));
      if (!agent.firehose_turns) return;
      const { storeRows } = await import("../../mcp/tools/data.ts");
      const common = { label: "agent_turn", session_id: sessionId, run_id: runId };
      const rows = [
        { ...common, role: "user", body: maskSecrets(question) },
        { ...common, role: "assistant", body: maskSecrets(answer) },
      ];
      const where = { database, table: FIREHOSE_TABLE, idempotencyKey: `agent run ${runId}` };
      await storeRows({ deps: tools, caller }, { ...where, rows });
    } catch (error) {
      log.warn({ err: error, runId }, "a question and its answer were not kept as observations");
    }
  }

  async #describe({ sessionId, isNew, origin }: AnsweredTurn): Promise<void> {
    const { sessions, log } = this.#deps;
    try {
      const session = await sessions.get(sessionId, origin.caller);
      const isDue = session.turnCount - session.summarizedTurns >= this.#deps.summaryEvery;
      if (isNew) await this.#turn.run(() => this.#title(session, origin));
      if (isDue) await this.#turn.run(() => this.#summarise(session, origin));
    } catch (error) {
      if (!this.#stop.signal.aborted)
        log.warn({ err: error, sessionId }, "a session has no title or summary of the model");
    }
  }

  async #title({ id: sessionId }: Session, origin: AskOrigin): Promise<void> {
    const { sessions } = this.#deps;
    const { turns } = await sessions.turns(sessionId, origin.caller);
    const task = "Give this conversation a title of at most eight words, in its language. Answer with the title alone.";
    const said = await this.#ask(task, textOf(turns.slice(0, 2)), TITLE_TOKENS, origin);
    const title = said
      .slice(0, TURN_CHARS)
      .replaceAll(/["'#*]/gu, "")
      .trim();
    if (title !== "") await sessions.saveTitle({ sessionId, title: title.slice(0, AGENT_LIMITS.titleChars) });
  }

  async #summarise(session: Session, origin: AskOrigin): Promise<void> {
    const { sessions } = this.#deps;
    const { turns } = await sessions.turns(session.id, origin.caller, { after: session.summarizedTurns - 1 });
    const last = turns.at(-1);
    if (last === undefined) return;
    const before =
      session.rollingSummary === undefined ? [] : [`Summary of what was said before:\n${session.rollingSummary}`];
    const task =
      "Summarise this conversation for yourself, so that you can go on without it: what was asked, what was found (numbers, " +
      "names, queries that worked), what is open. At most 300 words, in its language. Answer with the summary alone.";
    const summary = await this.#ask(task, [...before, textOf(turns)].join("\n\n"), SUMMARY_TOKENS, origin);
    if (summary !== "") await sessions.saveSummary({ sessionId: session.id, summary, upToTurn: last.turnIndex + 1 });
  }

  async #ask(task: string, text: string, maxOutputTokens: number, origin: AskOrigin): Promise<string> {
    const engine = await this.#deps.engines.open(origin);
    const { signal } = this.#stop;
    const asked = { task, origin: "the conversation", text, maxOutputTokens, timeoutMs: TIMEOUT_MS, signal };
    return await smallTask(engine, asked, this.#deps);
  }
}

function textOf(turns: readonly SessionTurn[]): string {
  return turns
    .map(({ role, content }) => `${role === "user" ? "Question" : "Answer"}: ${content.slice(0, TURN_CHARS)}`)
    .join("\n\n");
}
