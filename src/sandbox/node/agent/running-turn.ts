import type { StopReason } from "@agentclientprotocol/sdk";
import type { Clock } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import { messageOf } from "../../../core/errors.ts";
import { boundedText } from "../../../fabric/refusals.ts";
import type { Recorder } from "../recorder.ts";
import type { Turn, TurnMessage, TurnReport } from "../../contract/turn.ts";
import type { AgentConfig } from "../../contract/spec.ts";
import { Answer } from "./answer.ts";
import type { AgentConnection, SessionListener } from "./connection.ts";
import { answerTo, CANCELLED } from "./permissions.ts";
import { promptOf } from "./prompt.ts";

export type RunningTurnOptions = {
  config: AgentConfig;
  /** Stands before the first message of a session, where the agent has no setting for it. */
  preamble: string | undefined;
  recorder: Pick<Recorder, "event">;
  clock: Clock;
  /** The agent, started where it does not run. */
  connect: () => Promise<{ connection: AgentConnection; sessions: Map<string, string> }>;
  /** What was said in a session before. */
  history: (sessionId: string) => Promise<readonly TurnMessage[]>;
  /** The agent is about to be told: from here on, no later process of the node may begin the turn again. */
  onBegin: () => void;
};

/** An agent that does not end a turn so long after it was asked to is killed. */
const CANCEL_MS = 10_000;

const REASON_CHARS = 2_000;

/** What is said of an agent that has failed, to the owner of its sandbox. */
export function agentFailure(error: unknown): string {
  return `the agent failed: ${boundedText(messageOf(error), REASON_CHARS)}`;
}

/** Why a turn ends that the agent has not ended. */
class TurnCut extends Error {
  readonly outcome: "interrupted" | "failed";

  constructor(outcome: "interrupted" | "failed", reason: string) {
    super(reason);
    this.outcome = outcome;
  }
}

/** One message to an agent, and what it answers. */
export class RunningTurn {
  readonly report: Promise<TurnReport>;
  readonly #turn: Turn;
  readonly #options: RunningTurnOptions;
  readonly #answer: Answer;
  readonly #cut = new AbortController();
  #isOver = false;
  #isInterrupted = false;
  #agentSessionId: string | undefined;
  /** The agent, while it answers. */
  #answering: AgentConnection | undefined;

  constructor(turn: Turn, options: RunningTurnOptions) {
    this.#turn = turn;
    this.#options = options;
    this.#agentSessionId = turn.agentSessionId;
    const { recorder } = options;
    this.#answer = new Answer((type, data) => recorder.event(type, data, turn.sessionId));
    this.report = this.#run();
  }

  /** Asks the agent to end; the turn ends soon, in any case. Repeatable. */
  interrupt(): void {
    if (this.#isInterrupted) return;
    this.#isInterrupted = true;
    const agent = this.#answering;
    const cut = new TurnCut("interrupted", "it was interrupted");
    if (agent === undefined || this.#agentSessionId === undefined) {
      this.#cut.abort(cut);
      return;
    }
    agent.cancel(this.#agentSessionId);
    const timer = this.#options.clock.after(CANCEL_MS, () => {
      this.#cut.abort(cut);
      void agent.kill();
    });
    const stop = () => timer.cancel();
    void this.report.then(stop);
  }

  /** Ends it at once, as failed. */
  fail(reason: string): void {
    this.#cut.abort(new TurnCut("failed", reason));
  }

  /** Never rejects. */
  async #run(): Promise<TurnReport> {
    const end = await this.#end();
    // What comes of it from here on is said to nobody.
    this.#isOver = true;
    this.#answer.end();
    const { sessionId, turnId } = this.#turn;
    const known = this.#agentSessionId === undefined ? {} : { agentSessionId: this.#agentSessionId };
    return { sessionId, turnId, ...end, content: this.#answer.content, ...known };
  }

  async #end(): Promise<Pick<TurnReport, "outcome" | "error">> {
    try {
      const stopReason = await untilAborted(this.#converse(), this.#cut.signal);
      this.#noteStop(stopReason);
      return { outcome: stopReason === "cancelled" ? "interrupted" : "completed" };
    } catch (error) {
      if (error instanceof TurnCut) {
        return error.outcome === "failed" ? { outcome: "failed", error: error.message } : { outcome: "interrupted" };
      }
      // Some agents end what is cancelled with an error.
      if (this.#isInterrupted) return { outcome: "interrupted" };
      return { outcome: "failed", error: agentFailure(error) };
    }
  }

  async #converse(): Promise<StopReason> {
    const { connect, history, onBegin, preamble } = this.#options;
    const { signal } = this.#cut;
    // As soon as it can be waited for: a turn may be cut before it begins.
    await Promise.resolve();
    const { connection, sessions } = await connect();
    signal.throwIfAborted();
    const { id, isNew } = await this.#session(connection, sessions);
    signal.throwIfAborted();
    const earlier = isNew && this.#turn.messagesBefore > 0 ? await history(this.#turn.sessionId) : [];
    signal.throwIfAborted();
    onBegin();
    this.#agentSessionId = id;
    this.#answering = connection;
    const prompt = promptOf(this.#turn, {
      takesImages: connection.takesImages,
      history: earlier,
      preamble: isNew ? preamble : undefined,
    });
    return await connection.prompt(id, prompt, this.#listener());
  }

  /** The session as the agent has it: in this process of it, from an earlier one, or a new one. */
  async #session(connection: AgentConnection, sessions: Map<string, string>): Promise<{ id: string; isNew: boolean }> {
    const { sessionId, agentSessionId } = this.#turn;
    const open = sessions.get(sessionId);
    if (open !== undefined) return { id: open, isNew: false };
    if (agentSessionId !== undefined && (await connection.loadSession(agentSessionId))) {
      sessions.set(sessionId, agentSessionId);
      return { id: agentSessionId, isNew: false };
    }
    const id = await connection.newSession();
    sessions.set(sessionId, id);
    return { id, isNew: true };
  }

  #listener(): SessionListener {
    return {
      take: (update) => {
        if (!this.#isOver) this.#answer.take(update);
      },
      permit: ({ toolCallId, names, options }) => {
        if (this.#isOver || this.#isInterrupted) return CANCELLED;
        const all = new Set([...names, ...this.#answer.namesOf(toolCallId)]);
        return answerTo(this.#options.config, { options }, [...all]);
      },
    };
  }

  /** What the agent has said is its answer; that it could not say all of it is told beside. */
  #noteStop(stopReason: StopReason): void {
    if (stopReason === "end_turn" || stopReason === "cancelled") return;
    const { recorder } = this.#options;
    const message = `the agent stopped before it was done: ${stopReason}`;
    recorder.event("error", { code: "agent_stopped", message }, this.#turn.sessionId);
  }
}
