import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { AGENTS, defaultAgentConfig } from "../../src/sandbox/contract/agents/providers.ts";
import { AgentTurns } from "../../src/sandbox/node/agent/turns.ts";
import type { NewSandboxEvent } from "../../src/sandbox/contract/event.ts";
import { ProcessMachine } from "../../src/sandbox/node/exec/process-machine.test-kit.ts";
import type { SandboxBatch, DesiredState } from "../../src/sandbox/contract/control-port.ts";
import { LeasedFiles, LeasedSandbox } from "../../src/sandbox/node/leased-files.ts";
import { Recorder } from "../../src/sandbox/node/recorder.ts";
import type { Machine } from "../../src/sandbox/runtime/runtime.ts";
import { specOf } from "../../src/sandbox/contract/spec.test-kit.ts";
import type { ContentBlock } from "../../src/sandbox/contract/content.ts";
import type { Turn, TurnMessage, TurnReport } from "../../src/sandbox/contract/turn.ts";
import type { AgentConfig } from "../../src/sandbox/contract/spec.ts";

const AGENT = fileURLToPath(new URL("acp-agent.ts", import.meta.url));
const AGENT_NAMES = [...AGENTS.keys()];
const SPEC = specOf({ agentProvider: "codex" });

export type AgentWorldOptions = {
  config?: Partial<AgentConfig>;
  envVars?: Readonly<Record<string, string>>;
  /** Arguments of the scripted agent, or another command. */
  args?: readonly string[];
  argv?: readonly string[];
  machine?: Machine;
  workingDirectory?: string;
  /** Called with each batch before it is taken. */
  onBatch?: (batch: SandboxBatch) => Promise<void> | void;
};

/** The agent of one sandbox, with a control plane that takes everything; the agent is a process of its own. */
export class AgentWorld {
  readonly folder = mkdtempSync(join(tmpdir(), "engine-agent-"));
  readonly machine: Machine;
  readonly events: NewSandboxEvent[] = [];
  readonly reports: TurnReport[] = [];
  /** Of every session, before its turn. */
  history: readonly TurnMessage[] = [];
  #gone = new AbortController();
  readonly #options: AgentWorldOptions;
  #order: DesiredState;
  #leased: LeasedSandbox;
  turns: AgentTurns;

  constructor(options: AgentWorldOptions = {}) {
    this.#options = options;
    this.machine = options.machine ?? new ProcessMachine();
    const agentConfig = { ...defaultAgentConfig("codex"), ...options.config };
    const { envVars = {}, workingDirectory = this.folder } = options;
    const spec = { ...SPEC, agentConfig, envVars, workingDirectory };
    this.#order = {
      sandboxId: randomUUID(),
      tenant: "t",
      spec,
      state: "running",
      wanted: "running",
      version: 1,
      turns: [],
      recordedBatch: 0,
    };
    this.#leased = new LeasedSandbox(new LeasedFiles(this.folder), {
      sandboxId: this.#order.sandboxId,
      keepsDisk: false,
      isProvisioned: true,
    });
    this.turns = this.#begin();
  }

  /** As by another process of the node: the one before says nothing more. */
  async restart(): Promise<void> {
    this.#gone.abort(new Error("the process is gone"));
    this.#gone = new AbortController();
    this.turns = this.#begin();
    await this.turns.takeUp(this.machine);
    this.turns.look();
  }

  async change(change: Partial<DesiredState>): Promise<void> {
    this.#order = { ...this.#order, ...change };
    this.turns.look();
  }

  /** A message, and its turn; it is begun by `look`. */
  send(content: string | readonly ContentBlock[], wanted: Partial<Turn> = {}): Turn {
    const turn: Turn = {
      sessionId: randomUUID(),
      turnId: randomUUID(),
      content: typeof content === "string" ? [{ type: "text", text: content }] : content,
      agentSessionId: undefined,
      messagesBefore: 0,
      isInterrupted: false,
      ...wanted,
    };
    this.#order = { ...this.#order, turns: [...(this.#order.turns ?? []), turn] };
    this.turns.look();
    return turn;
  }

  interrupt(turn: Turn): void {
    const others = (this.#order.turns ?? []).filter(({ turnId }) => turnId !== turn.turnId);
    const turns = [...others, { ...turn, isInterrupted: true }];
    this.#order = { ...this.#order, turns };
    this.turns.look();
  }

  /** How a turn ended. */
  async ended({ turnId }: Turn, timeoutMs = 20_000): Promise<TurnReport> {
    const find = () => this.reports.find((one) => one.turnId === turnId);
    return await vi.waitUntil(find, { timeout: timeoutMs, interval: 10 });
  }

  /** A message until its end. */
  async ask(content: string | readonly ContentBlock[], wanted: Partial<Turn> = {}): Promise<TurnReport> {
    return await this.ended(this.send(content, wanted));
  }

  eventsOf({ sessionId }: { sessionId: string }): [string, unknown][] {
    return this.events.filter((one) => one.sessionId === sessionId).map(({ type, data }) => [type, data]);
  }

  async until(isSo: () => boolean): Promise<void> {
    await vi.waitUntil(isSo, { timeout: 60_000, interval: 10 });
  }

  async close(): Promise<void> {
    this.turns.abandon();
    this.#gone.abort(new Error("the test is over"));
    if (this.machine instanceof ProcessMachine) await this.machine.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #begin(): AgentTurns {
    const { argv, args = [], onBatch } = this.#options;
    const io = { clock: systemClock, random: systemRandom, log: silentLog };
    const recorder = new Recorder({
      ...io,
      signal: this.#gone.signal,
      hold: { jobId: "j", holder: "h", fence: 1 },
      lastBatch: 0,
      onDesiredState: () => undefined,
      onLost: () => undefined,
      control: {
        record: async (_, batch) => {
          await onBatch?.(batch);
          this.events.push(...batch.events);
          this.reports.push(...(batch.turns ?? []));
          return this.#order;
        },
      },
    });
    this.#leased = new LeasedSandbox(new LeasedFiles(this.folder), this.#leased.now);
    return new AgentTurns({
      ...io,
      recorder,
      leased: this.#leased,
      desired: () => this.#order,
      history: async () => this.history,
      machine: () => this.machine,
      commands: Object.fromEntries(AGENT_NAMES.map((name) => [name, argv ?? [process.execPath, AGENT, ...args]])),
      newId: () => randomUUID(),
    });
  }
}
