import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { agentBaseUrl } from "../../network/gateway/environment.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import type { HeldSandbox } from "../leased-files.ts";
import type { Recorder } from "../recorder.ts";
import type { Machine } from "../../runtime/runtime.ts";
import type { Turn, TurnMessage, TurnReport } from "../../contract/turn.ts";
import type { AgentConfig, SandboxSpec } from "../../contract/spec.ts";
import type { SandboxState } from "../../contract/states.ts";
import { AgentConnection } from "./connection.ts";
import { AgentFault } from "./fault.ts";
import { toAcpServers } from "./mcp-servers.ts";
import { AGENTS, defaultAgentConfig, type AgentProvider } from "../../contract/agents/providers.ts";
import { agentFailure, RunningTurn } from "./running-turn.ts";

export type AgentTurnsOptions = {
  recorder: Pick<Recorder, "event" | "say" | "room">;
  held: Pick<HeldSandbox, "now" | "update" | "begunTurns">;
  order: () => SandboxOrder;
  /** What was said in a session before the turn that is under way. */
  history: (sessionId: string) => Promise<readonly TurnMessage[]>;
  /** While it is up. */
  machine: () => Machine | undefined;
  /** Commands of the operator's choice, by provider. */
  commands: Readonly<Record<string, readonly string[]>>;
  newId: IdSource;
  clock: Clock;
  log: Log;
};

type Live = { connection: AgentConnection; sessions: Map<string, string> };

const HOME = "/home/agent";
/** Events that wait to be written while an agent may say more. */
const WAITING_EVENTS = 400;
const OVER: ReadonlySet<SandboxState> = new Set(["stopping", "stopped", "failed", "deleting"]);
const RESTARTED = "its node was restarted in the middle of it";
const STOPPED = "the sandbox was stopped";

/**
 * The messages that the agent of one sandbox is to answer. `look` makes of them what the order says, whenever that may
 * have changed: those that nobody has begun are begun, those that are to end are ended, and of each it is said once how
 * it ended. All sessions of the sandbox share one process of the agent, which is started by `start` or with the first
 * message, and anew with the next one after it has ended, however it did.
 *
 * A turn that an earlier process of this node had begun is not begun again: the agent may have done half of it.
 */
export class AgentTurns {
  readonly #options: AgentTurnsOptions;
  readonly #running = new Map<string, RunningTurn>();
  /** Turns whose end was said; the order may still have them. */
  #settled = new Set<string>();
  /** Of the earlier process. */
  readonly #cut: ReadonlySet<string>;
  /** Turns that the agent was told of, by whichever process, until the order has them no more. */
  #begun: Set<string>;
  #isAbandoned = false;
  #live: { opening: Promise<Live>; opened?: Live } | undefined;

  constructor(options: AgentTurnsOptions) {
    this.#options = options;
    this.#cut = new Set(options.held.begunTurns);
    this.#begun = new Set(this.#cut);
  }

  /** The machine is one that an earlier process of this node had: its agent is ended. Never rejects. */
  async takeUp(machine: Machine): Promise<void> {
    const { held, log } = this.#options;
    const { agentExecId, sandboxId } = held.now;
    if (agentExecId === undefined) return;
    try {
      await (await machine.attach(agentExecId))?.kill("SIGKILL");
    } catch (error) {
      log.warn({ sandboxId, reason: messageOf(error) }, "the agent of an earlier process of this node was not ended");
    }
  }

  /** Has the agent run before the first message. Rejects with the reason, for the owner of the sandbox. */
  async start(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      throw new Error(agentFailure(error), { cause: error });
    }
  }

  look(): void {
    const { turns = [], state, wanted } = this.#options.order();
    const ids = new Set(turns.map(({ turnId }) => turnId));
    this.#settled = new Set([...this.#settled].filter((id) => ids.has(id)));
    this.#begun = new Set([...this.#begun].filter((id) => ids.has(id)));
    for (const turn of turns) {
      if (this.#settled.has(turn.turnId)) continue;
      const running = this.#running.get(turn.turnId);
      if (running !== undefined) {
        if (turn.isInterrupted) running.interrupt();
        continue;
      }
      if (this.#cut.has(turn.turnId)) this.#settle(notBegun(turn, { outcome: "failed", error: RESTARTED }));
      else if (turn.isInterrupted) this.#settle(notBegun(turn, { outcome: "interrupted" }));
      else if (OVER.has(state) || wanted === "deleted") {
        this.#settle(notBegun(turn, { outcome: "failed", error: STOPPED }));
      } else if (state === "running" && this.#options.machine()?.isPaused === false) this.#begin(turn);
    }
  }

  /** All that runs has failed; the agent is ended. Resolves when that is on its way to the records, in its order. */
  async end(reason = STOPPED): Promise<void> {
    const running = [...this.#running.values()];
    for (const turn of running) turn.fail(reason);
    this.#kill();
    await Promise.all(running.map(({ report }) => report));
  }

  /** This process says nothing more of the sandbox. */
  abandon(): void {
    this.#isAbandoned = true;
    for (const turn of this.#running.values()) turn.fail(STOPPED);
    this.#kill();
  }

  #kill(): void {
    const live = this.#live;
    this.#live = undefined;
    // One that could not be started is none.
    void live?.opening.then(({ connection }) => connection.kill()).catch(() => undefined);
  }

  #begin(turn: Turn): void {
    const { recorder, clock, history } = this.#options;
    const { config, provider } = this.#agent();
    const running = new RunningTurn(turn, {
      config,
      preamble: provider?.takesSystemPrompt === true ? undefined : config.systemPrompt,
      recorder,
      clock,
      connect: () => this.#connect(),
      history,
      onBegin: () => {
        this.#options.held.begunTurns = [...this.#begun.add(turn.turnId)];
      },
    });
    this.#running.set(turn.turnId, running);
    void running.report.then((report) => {
      this.#settle(report);
      this.#running.delete(turn.turnId);
    });
  }

  /** Says how a turn ended; what it said before is on its way already. */
  #settle(report: TurnReport): void {
    this.#settled.add(report.turnId);
    void this.#say(report);
  }

  /** Never rejects. */
  async #say(report: TurnReport): Promise<void> {
    const { recorder, held, log } = this.#options;
    try {
      await recorder.say({ turns: [report] });
    } catch (error) {
      // The next process tells.
      if (this.#isAbandoned) return;
      const [{ sandboxId }, { turnId }, reason] = [held.now, report, messageOf(error)];
      log.warn({ sandboxId, turnId, reason }, "the answer of an agent was refused");
      const refused: TurnReport = {
        ...report,
        outcome: "failed",
        error: `its answer was refused: ${reason}`,
        content: [],
      };
      await recorder.say({ turns: [refused] }).catch((error: unknown) => {
        log.error({ err: error, sandboxId, turnId }, "the end of a turn was refused");
      });
    }
  }

  #connect(): Promise<Live> {
    if (this.#live !== undefined && this.#live.opened?.connection.hasEnded !== true) return this.#live.opening;
    const live: { opening: Promise<Live>; opened?: Live } = { opening: this.#open() };
    this.#live = live;
    const forget = () => {
      if (this.#live === live) this.#live = undefined;
    };
    void live.opening.then((opened) => (live.opened = opened), forget);
    return live.opening;
  }

  async #open(): Promise<Live> {
    const { recorder, held, newId, clock, commands } = this.#options;
    const { config, provider } = this.#agent();
    const { spec } = this.#options.order();
    const machine = this.#options.machine();
    if (machine === undefined) throw new AgentFault("its machine has ended");
    if (provider === undefined) throw new AgentFault(`there is no agent provider ${config.provider}`);
    const execId = newId();
    await held.update({ agentExecId: execId });
    const connection = await AgentConnection.open({
      machine,
      execId,
      provider,
      argv: commands[config.provider] ?? provider.argv,
      settings: provider.settings(config, hasKeyOutside(spec, provider) ? agentBaseUrl : undefined),
      mcpServers: toAcpServers(config.mcpServers ?? [], spec.envVars),
      workingDirectory: spec.workingDirectory ?? HOME,
      room: () => recorder.room(WAITING_EVENTS),
      onErrorLine: (line) => recorder.event("log_line", { line, stream: "stderr" }),
      clock,
    });
    return { connection, sessions: new Map() };
  }

  #agent(): { config: AgentConfig; provider: AgentProvider | undefined } {
    const { spec } = this.#options.order();
    const config = spec.agentConfig ?? defaultAgentConfig(spec.agentProvider);
    return { config, provider: AGENTS.get(config.provider) };
  }
}

/** Whether its key is added to its requests on their way: then they go to the gateway. */
function hasKeyOutside({ credentials = [] }: SandboxSpec, { apiKeyVariable }: AgentProvider): boolean {
  return credentials.some(({ envVar }) => envVar === apiKeyVariable);
}

function notBegun({ sessionId, turnId }: Turn, end: Pick<TurnReport, "outcome" | "error">): TurnReport {
  return { sessionId, turnId, ...end, content: [] };
}
