import type { Caller } from "../../../auth/caller.ts";
import { checkMayUse } from "../../../auth/caller.ts";
import type { Asker } from "../../../auth/owner.ts";
import { ownerOf } from "../../../auth/owner.ts";
import type { Catalog } from "../../../catalog/catalog.ts";
import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { foldName } from "../../../core/names.ts";
import type { Random } from "../../../core/random.ts";
import type { ToolDeps } from "../../mcp/deps.ts";
import type { EngineConfig, OpenedEngine } from "../engines/engine.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { AgentMetrics } from "../metrics.ts";
import type { Sessions, SessionTurn } from "../sessions/sessions.ts";
import { Admission, type AdmissionOptions } from "./admission.ts";
import type { NumberedEvent } from "./events.ts";
import type { OfferedSkill } from "./prompt.ts";
import type { AgentRun, Prepared } from "./run.ts";
import { RunStopped } from "./run-end.ts";
import type { RunStore, StoredEvent, StoredRun } from "./run-store.ts";

/** Who asks, and how the request came. */
export type AskOrigin = { caller: Caller; address: string; requestId: string };

export type Question = {
  question: string;
  database: string;
  includeThinking: boolean;
  sessionId?: string | undefined;
  source?: string | undefined;
};

/** What gives a run its model. */
export type EngineSource = {
  current(): Promise<EngineConfig | undefined>;
  /** @throws EngineError `not_configured` */
  open(origin: AskOrigin): Promise<OpenedEngine>;
};

/** A question with its answer, when the run is over. */
export type AnsweredTurn = {
  runId: string;
  sessionId: string;
  isNew: boolean;
  database: string;
  question: string;
  answer: string;
  origin: AskOrigin;
};

export type AgentServiceDeps = {
  tools: ToolDeps;
  catalog: Pick<Catalog, "database" | "tables" | "tableStats">;
  engines: EngineSource;
  sessions: Pick<Sessions, "begin">;
  skills: { enabled(): Promise<readonly OfferedSkill[]> };
  store: RunStore;
  admission: AdmissionOptions;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
  metrics: AgentMetrics;
  /** What is done with a session after a turn that was answered. Must not reject. */
  afterTurn: (turn: AnsweredTurn) => void;
};

/** How long runs may go on when the server drains. */
const DRAIN_MS = 5_000;

/** Answers questions: see `AgentRun`. */
export class AgentService {
  readonly #deps: AgentServiceDeps;
  readonly #admission: Admission;
  readonly #running = new Set<AgentRun>();
  #sweep: TimerHandle | undefined;
  #isClosed = false;
  #drain: TimerHandle | undefined;

  constructor(deps: AgentServiceDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps.admission);
    deps.metrics.running.watch({}, () => this.#admission.running);
  }

  /** Looks after runs whose process died, also those of other nodes. */
  start(): void {
    this.#sweepSoon(0);
  }

  /** When the server drains: runs have a moment to end by themselves. */
  endStreams(): void {
    const ended = new RunStopped("interrupted", "the server stops", { retryable: true });
    this.#drain = this.#deps.clock.after(DRAIN_MS, () => this.#stopAll(ended), { background: true });
  }

  close(): void {
    this.#isClosed = true;
    this.#sweep?.cancel();
    this.#drain?.cancel();
    this.#stopAll(new RunStopped("interrupted", "the server stops", { retryable: true }));
  }

  /**
   * Begins a run. Its events are to be read, or given up, which ends it.
   *
   * @throws EngineError `forbidden`, `database_not_found`, `too_many_requests`, and what `Sessions.begin` throws
   */
  async ask(question: Question, origin: AskOrigin): Promise<AsyncIterator<NumberedEvent, undefined>> {
    const admittedMs = this.#deps.clock.monotonicMs();
    const { caller } = origin;
    checkMayUse(caller, question.database);
    const database = await this.#databaseOf(question.database);
    const leave = this.#enter(`${ownerOf(caller)}\0${foldName(database)}`);
    try {
      const run = await this.#begin({ ...question, database }, origin, { admittedMs, leave });
      return run.events;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** @throws EngineError `not_found` */
  async run(runId: string, caller: Asker): Promise<StoredRun> {
    return await this.#deps.store.get(runId, caller);
  }

  /** Events of a run that the caller may see, after that number. */
  async events(runId: string, page: { after: number; limit: number }): Promise<StoredEvent[]> {
    return await this.#deps.store.events(runId, page);
  }

  #enter(tenant: string): () => void {
    try {
      return this.#admission.enter(tenant);
    } catch (error) {
      this.#deps.metrics.refused.inc();
      throw error;
    }
  }

  /** As the catalog spells it. The one that everybody has by default need not be there. */
  async #databaseOf(name: string): Promise<string> {
    const found = await this.#deps.catalog.database(name);
    if (found !== undefined) return found.name;
    if (foldName(name) === "default") return "default";
    throw new EngineError("database_not_found", `database ${JSON.stringify(name)} does not exist`);
  }

  async #begin(
    question: Question,
    origin: AskOrigin,
    { admittedMs, leave }: { admittedMs: number; leave: () => void },
  ): Promise<AgentRun> {
    const { sessions, store, engines, newId } = this.#deps;
    const { caller } = origin;
    // With the first question: a library of this size takes a part of a second, and most servers are never asked.
    const { AgentRun } = await import("./run.ts");
    const { database, source } = question;
    const runId = newId();
    const config = await engines.current();
    const engine = config === undefined ? undefined : { kind: config.kind, model: config.model };
    const begun = await sessions.begin({
      sessionId: question.sessionId,
      caller,
      database,
      source,
      question: question.question,
      runId,
      along: (sessionId) => [
        store.insertion({ runId, caller, database, question: question.question, engine }, sessionId),
      ],
    });
    const { sessionId, isNew } = begun;
    const run: AgentRun = new AgentRun(
      {
        runId,
        sessionId,
        database,
        engine,
        admittedMs,
        includeThinking: question.includeThinking,
        prepare: (signal) => this.#prepare(question, origin, { ...begun, runId, admittedMs, signal }),
        onEnd: ({ answer }) => {
          this.#running.delete(run);
          leave();
          if (answer === undefined) return;
          this.#deps.afterTurn({ runId, sessionId, isNew, database, question: question.question, answer, origin });
        },
      },
      this.#deps,
    );
    this.#running.add(run);
    if (this.#isClosed) run.stop(new RunStopped("interrupted", "the server stops", { retryable: true }));
    void run.run();
    return run;
  }

  async #prepare(
    { question, database }: Question,
    { caller, address, requestId }: AskOrigin,
    run: {
      runId: string;
      admittedMs: number;
      signal: AbortSignal;
      summary: string | undefined;
      turns: readonly SessionTurn[];
    },
  ): Promise<Prepared> {
    const { engines, skills, catalog, clock, random } = this.#deps;
    const [{ KnownAddresses }, { Fence }, { promptOf, schemaText }, { RunTools }] = await Promise.all([
      import("./addresses.ts"),
      import("../engines/fence.ts"),
      import("./prompt.ts"),
      import("./tools.ts"),
    ]);
    const fence = new Fence(random);
    const [engine, schema, offered] = await Promise.all([
      engines.open({ caller, address, requestId }),
      schemaText(catalog, caller, database),
      skills.enabled(),
    ]);
    const now = new Date(clock.nowMs()).toISOString();
    const { summary, turns, signal, runId } = run;
    const prompt = promptOf({ fence, now, database, schema, skills: offered, summary, turns, question });
    const known = new KnownAddresses();
    for (const text of [question, ...turns.filter(({ role }) => role === "user").map(({ content }) => content)])
      known.learn(text);
    const leftMs = () => AGENT_LIMITS.runMs - (clock.monotonicMs() - run.admittedMs);
    const tools = new RunTools({
      deps: this.#deps.tools,
      caller,
      address,
      requestId,
      database,
      runId,
      clock,
      signal,
      leftMs,
    });
    return { engine, prompt, tools, fence, known };
  }

  #stopAll(reason: RunStopped): void {
    for (const run of this.#running) run.stop(reason);
  }

  #sweepSoon(delayMs: number): void {
    const { clock, log, store } = this.#deps;
    const sweep = async (): Promise<void> => {
      try {
        const ended = await store.endForsaken();
        if (ended > 0) log.warn({ runs: ended }, "runs of the agent were ended, whose process is gone");
      } catch (error) {
        log.warn(
          { err: error },
          "runs of the agent whose process is gone could not be looked for; it will be tried again",
        );
      }
      if (!this.#isClosed) this.#sweepSoon(AGENT_LIMITS.leasePollMs);
    };
    this.#sweep = clock.after(delayMs, () => void sweep(), { background: true });
  }
}
