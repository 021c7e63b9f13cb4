import { z } from "zod";
import { sleep } from "../../../../core/clock.ts";
import { untilAborted } from "../../../../core/concurrency.ts";
import { VERSION } from "../../../../core/version.ts";
import type { LentToolsByToken } from "../../../mcp/lent-tools.ts";
import { AGENT_LIMITS } from "../../limits.ts";
import { AcpConnection } from "./acp-connection.ts";
import { AgentFault } from "./agent-fault.ts";
import { AgentProcess, type ProgramOptions } from "./agent-process.ts";
import { permissionFor } from "./permissions.ts";
import { saidIn } from "./updates.ts";

export type LentTool = { name: string; description: string; inputSchema: Record<string, unknown> };

/** One prompt for a program. */
export type TurnRequest = {
  text: string;
  /** As the program calls it; `default` leaves the choice to it. */
  model: string;
  tools: readonly LentTool[];
};

export type TurnDeps = ProgramOptions & {
  lent: LentToolsByToken;
  /** Where the program reaches its tools; undefined where it has none. */
  mcpUrl: string | undefined;
};

export type ProgramCall = { id: string; name: string; input: string };
export type ToolAnswer = { text: string; isError: boolean };
export type TurnUsage = { inputTokens: number; outputTokens: number };

export type TurnItem =
  | { type: "text" | "thinking"; text: string }
  /** To be answered by `answer`; the program waits meanwhile. */
  | { type: "calls"; calls: ProgramCall[] }
  | { type: "end"; stopReason: string; usage: TurnUsage | undefined };

const PROTOCOL_VERSION = 1;
/** A program that does not say who it is, or begins no session, for so long has failed. */
const START_MS = 15_000;
/** Calls that a program makes at the same moment are made together. */
const GATHER_MS = 15;
const MAX_PENDING = 32;

/**
 * A program at work on one prompt. Its calls of tools come over HTTP with a token of this turn, and wait here until whoever
 * reads the turn answers them: so a run counts, bounds and records them like those of any model. Ending the turn ends the
 * program, its children and the token.
 */
export class AcpTurn {
  readonly #deps: TurnDeps;
  readonly #request: TurnRequest;
  readonly #program: Promise<AgentProcess>;
  readonly #work: Promise<void>;
  readonly #pending = new Map<string, PromiseWithResolvers<ToolAnswer>>();
  #said: Extract<TurnItem, { text: string }>[] = [];
  #calls: ProgramCall[] = [];
  #end: Extract<TurnItem, { type: "end" }> | undefined;
  #fault: Error | undefined;
  #changed = Promise.withResolvers<void>();
  #saidBytes = 0;
  #callCount = 0;
  #endLoan = (): void => {};
  #isEnded = false;

  constructor(request: TurnRequest, deps: TurnDeps) {
    this.#deps = deps;
    this.#request = request;
    this.#program = AgentProcess.start(deps);
    this.#work = this.#run();
  }

  /** What the program does next. Rejects with `AgentFault`, or with the signal's reason. */
  async next(signal: AbortSignal | undefined): Promise<TurnItem> {
    const stop = signal ?? new AbortController().signal;
    for (let isGathered = false; ;) {
      stop.throwIfAborted();
      const said = this.#said.shift();
      if (said !== undefined) return said;
      if (this.#fault !== undefined) throw this.#fault;
      if (this.#calls.length > 0 && isGathered) return { type: "calls", calls: this.#calls.splice(0) };
      if (this.#calls.length > 0) {
        await sleep(this.#deps.clock, GATHER_MS, stop);
        isGathered = true;
        continue;
      }
      if (this.#end !== undefined) return this.#end;
      await untilAborted(this.#changed.promise, stop);
    }
  }

  /** Gives the program the answer to a call; harmless for a call that there is not. */
  answer(callId: string, answer: ToolAnswer): void {
    this.#pending.get(callId)?.resolve(answer);
    this.#pending.delete(callId);
  }

  /** Never rejects. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#endLoan();
    const program = await this.#program.catch(() => undefined);
    await program?.end();
    for (const { reject } of this.#pending.values()) reject(new AgentFault("the run is over"));
    this.#pending.clear();
    await this.#work;
  }

  /** Never rejects: what fails is told by `next`. */
  async #run(): Promise<void> {
    try {
      this.#end = await this.#prompt(await this.#program);
    } catch (error) {
      this.#fault = error as Error;
    }
    this.#change();
  }

  async #prompt(program: AgentProcess): Promise<Extract<TurnItem, { type: "end" }>> {
    const { clock } = this.#deps;
    const names = new Set(this.#request.tools.map(({ name }) => name));
    const hooks = {
      onNotification: (method: string, params: unknown) => {
        if (method === "session/update") this.#update(params);
      },
      onRequest: (method: string, params: unknown) =>
        method === "session/request_permission" ? permissionFor(params, names) : undefined,
    };
    const connection = new AcpConnection(program, hooks, clock);
    const about = await connection.ask(
      "say who it is",
      "initialize",
      {
        protocolVersion: PROTOCOL_VERSION,
        // Neither files nor a terminal.
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
        clientInfo: { name: "engine", version: VERSION },
      },
      START_MS,
    );
    const sessionId = await this.#beginSession(connection, program, about);
    const prompt = [{ type: "text", text: this.#request.text }];
    const asked = await connection.ask("answer", "session/prompt", { sessionId, prompt });
    const { stopReason, usage } = read(promptAnswer, asked, "the end of its answer");
    return { type: "end", stopReason, usage: usage ?? undefined };
  }

  async #beginSession(connection: AcpConnection, { folder: cwd }: AgentProcess, about: unknown): Promise<string> {
    const { protocolVersion, agentCapabilities } = read(initializeAnswer, about, "who it is");
    if (protocolVersion !== PROTOCOL_VERSION) {
      throw new AgentFault(`it speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`);
    }
    const mcpServers = this.#lend();
    if (mcpServers.length > 0 && agentCapabilities?.mcpCapabilities?.http !== true) {
      throw new AgentFault("it takes no tools over HTTP: ENGINE_AGENT_MCP_URL=off asks it without tools");
    }
    // Adapters that know the wish offer no tools of their own; of others every request to use one is refused.
    const request = { cwd, mcpServers, _meta: { disableBuiltInTools: true } };
    const answer = await connection.ask("begin a session", "session/new", request, START_MS);
    const { sessionId, modes, configOptions } = read(sessionAnswer, answer, "its session");
    // In this mode programs ask before they do something.
    if (modes?.currentModeId !== ASKING && modes?.availableModes.some(({ id }) => id === ASKING) === true) {
      await connection.ask("enter its mode", "session/set_mode", { sessionId, modeId: ASKING }, START_MS);
    }
    const choice = modelChoice(configOptions ?? [], this.#request.model);
    if (choice !== undefined) {
      await connection.ask("choose its model", "session/set_config_option", { sessionId, ...choice }, START_MS);
    }
    return sessionId;
  }

  #lend(): object[] {
    const { lent, mcpUrl: url } = this.#deps;
    const { tools } = this.#request;
    if (url === undefined || tools.length === 0 || this.#isEnded) return [];
    const { token, end } = lent.lend({
      listed: tools,
      call: (name, args, signal) => this.#call({ name, input: JSON.stringify(args) }, signal),
    });
    this.#endLoan = end;
    return [{ type: "http", name: "engine", url, headers: [{ name: "Authorization", value: `Bearer ${token}` }] }];
  }

  async #call(call: Omit<ProgramCall, "id">, signal: AbortSignal): Promise<ToolAnswer> {
    if (this.#pending.size >= MAX_PENDING) return { text: `at most ${MAX_PENDING} calls at a time`, isError: true };
    const callId = `call_${++this.#callCount}`;
    const settle = Promise.withResolvers<ToolAnswer>();
    this.#pending.set(callId, settle);
    this.#calls.push({ ...call, id: callId });
    this.#change();
    return await untilAborted(settle.promise, signal);
  }

  /** Throws `AgentFault`. */
  #update(params: unknown): void {
    const said = saidIn(params);
    if (said === undefined || said.text === "") return;
    this.#saidBytes += Buffer.byteLength(said.text);
    if (this.#saidBytes > AGENT_LIMITS.outputBytes) {
      throw new AgentFault(`it said more than ${AGENT_LIMITS.outputBytes} bytes`);
    }
    this.#said.push({ type: said.kind, text: said.text });
    this.#change();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

const ASKING = "default";

const initializeAnswer = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z.object({ mcpCapabilities: z.object({ http: z.boolean().nullish() }).nullish() }).nullish(),
});

const value = z.object({ value: z.string() });
const option = z.object({
  id: z.string(),
  type: z.string().nullish(),
  category: z.string().nullish(),
  options: z.array(z.union([value, z.object({ options: z.array(value) })])).nullish(),
});
const sessionAnswer = z.object({
  sessionId: z.string().min(1).max(1_000),
  modes: z.object({ currentModeId: z.string(), availableModes: z.array(z.object({ id: z.string() })) }).nullish(),
  configOptions: z.array(option).nullish(),
});

const tokens = z.int().min(0);
const promptAnswer = z.object({
  stopReason: z.string(),
  usage: z.object({ inputTokens: tokens, outputTokens: tokens }).nullish().catch(undefined),
});

function read<T extends z.ZodType>(schema: T, answer: unknown, what: string): z.output<T> {
  const { data, error } = schema.safeParse(answer);
  if (error !== undefined) throw new AgentFault(`it did not say ${what} as the protocol has it`, { cause: error });
  return data;
}

/** How a program that offers models is told which one. Throws `AgentFault` for one that it does not offer. */
function modelChoice(
  options: readonly z.output<typeof option>[],
  model: string,
): { configId: string; value: string } | undefined {
  const models = options.find(({ category, type }) => category === "model" && type !== "boolean");
  if (models === undefined || model === DEFAULT_MODEL) return undefined;
  const offered = (models.options ?? []).flatMap((each) => ("value" in each ? [each] : each.options));
  if (offered.some((each) => each.value === model)) return { configId: models.id, value: model };
  const names = offered.slice(0, 20).map((each) => each.value);
  throw new AgentFault(`it does not offer the model ${model}; it offers ${names.join(", ") || "none"}`);
}

/** The name of whatever model a program chooses by itself. */
export const DEFAULT_MODEL = "default";
