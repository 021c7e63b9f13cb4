import {
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type ClientConnection,
  type ContentBlock,
  type AgentRequestParamsByMethod,
  type InitializeResponse,
  type McpServer,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionModeState,
  type StopReason,
} from "@agentclientprotocol/sdk";
import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Exec, Machine } from "../../runtime/runtime.ts";
import { AgentFault } from "./fault.ts";
import { checkServers } from "./mcp-servers.ts";
import { CANCELLED } from "./permissions.ts";
import type { AgentProvider, AgentSettings } from "../../contract/agents/providers.ts";
import { stdioOf, type StdioOptions } from "./stdio.ts";
import { askedNames, readUpdate, type Update } from "./updates.ts";

export type AgentConnectionOptions = Pick<StdioOptions, "room" | "onErrorLine"> & {
  machine: Machine;
  /** Of the command, by which a later process of the node finds it. */
  execId: string;
  provider: AgentProvider;
  argv: readonly string[];
  settings: AgentSettings;
  /** That it uses in each session. */
  mcpServers: McpServer[];
  /** Inside. */
  workingDirectory: string;
  clock: Clock;
};

/** What is told of a session while a turn of it is under way. */
export type SessionListener = {
  take(update: Update): void;
  /** Answers a request for permission to use the tool of these names. */
  permit(request: { toolCallId: string; names: readonly string[]; options: Options }): RequestPermissionResponse;
};
type Options = RequestPermissionRequest["options"];

/** An agent that says nothing for so long when it is asked who it is, has failed. */
const INITIALIZE_MS = 30_000;
/** And to begin or load a session: it may start programs of its own for it. */
const SESSION_MS = 60_000;
const MAX_NAME_CHARS = 1_000;
const AUTH_REQUIRED = -32_000;

/**
 * An agent that runs in a machine, and the connection of the Agent Client Protocol to it. It ends when its process does,
 * when it breaks the protocol, and when it is killed; whatever waits for it rejects with an `AgentFault` then.
 */
export class AgentConnection {
  readonly #options: AgentConnectionOptions;
  readonly #exec: Exec;
  readonly #reading = new AbortController();
  readonly #connection: ClientConnection;
  readonly #listeners = new Map<string, SessionListener>();
  #about: InitializeResponse | undefined;

  private constructor(options: AgentConnectionOptions, exec: Exec) {
    this.#options = options;
    this.#exec = exec;
    const onUpdate = (params: unknown) => this.#update(params);
    const stream = stdioOf(exec, { ...options, onUpdate, signal: this.#reading.signal });
    this.#connection = client({ name: "engine" })
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#permit(params))
      .connect(stream);
    // What broke is said by the requests that wait; and a process without a connection is of no use.
    void this.#connection.closed.then(() => this.kill());
  }

  /** Starts the agent. Rejects with `AgentFault`. */
  static async open(options: AgentConnectionOptions): Promise<AgentConnection> {
    const { machine, execId, argv, provider, settings, workingDirectory } = options;
    const exec = await machine
      .exec({
        id: execId,
        argv: withFile(argv, settings.file),
        cwd: workingDirectory,
        env: settings.env,
        user: "agent",
        timeoutMs: undefined,
        tty: undefined,
        isSoleUser: true,
      })
      .catch((error: unknown) => {
        const hint = `the image must have ${provider.package}, or a command of the operator's choice`;
        throw new AgentFault(`it cannot be started: ${messageOf(error)} (${hint})`, { cause: error });
      });
    const connection = new AgentConnection(options, exec);
    try {
      await connection.#initialize();
      return connection;
    } catch (error) {
      await connection.kill();
      throw error;
    }
  }

  /** Whether it answers nothing any more. */
  get hasEnded(): boolean {
    return this.#connection.signal.aborted;
  }

  get takesImages(): boolean {
    return this.#about?.agentCapabilities?.promptCapabilities?.image === true;
  }

  /** Begins a session; returns the agent's name for it. */
  async newSession(): Promise<string> {
    const begin = async () => {
      const request = this.#sessionRequest();
      const answer = await this.#ask("begin a session", SESSION_MS, methods.agent.session.new, request);
      const sessionId = checkName(answer.sessionId);
      await this.#enterMode(sessionId, answer.modes);
      return sessionId;
    };
    try {
      return await begin();
    } catch (error) {
      const { authMethod, apiKeyVariable } = this.#options.provider;
      if (!isAuthRequired(error)) throw error;
      if (!(this.#about?.authMethods ?? []).some(({ id }) => id === authMethod) || authMethod === undefined) {
        throw new AgentFault(`it asks for a login; it looks for its API key in ${apiKeyVariable}`, { cause: error });
      }
      await this.#ask("log in", SESSION_MS, methods.agent.authenticate, { methodId: authMethod });
      return await begin();
    }
  }

  /**
   * Loads a session that an earlier process of the agent had. False when the agent cannot, or does not know it. What it
   * replays of the session meanwhile is told to nobody.
   */
  async loadSession(sessionId: string): Promise<boolean> {
    if (this.#about?.agentCapabilities?.loadSession !== true) return false;
    try {
      const request = { ...this.#sessionRequest(), sessionId };
      const { modes } = await this.#ask("load a session", SESSION_MS, methods.agent.session.load, request);
      await this.#enterMode(sessionId, modes);
      return true;
    } catch (error) {
      if (this.#connection.signal.aborted) throw error;
      return false;
    }
  }

  /** Resolves when the agent has done what it was asked to; `listener` is told of it meanwhile. */
  async prompt(sessionId: string, prompt: ContentBlock[], listener: SessionListener): Promise<StopReason> {
    this.#listeners.set(sessionId, listener);
    try {
      return (await this.#ask("answer", undefined, methods.agent.session.prompt, { sessionId, prompt })).stopReason;
    } finally {
      this.#listeners.delete(sessionId);
    }
  }

  /** Asks it to end what it does. */
  cancel(sessionId: string): void {
    // One that does not take it is killed by whoever waits.
    void this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined);
  }

  /** Breaks the connection: whatever waits rejects with this. */
  #fail(fault: AgentFault): void {
    this.#connection.close(fault);
  }

  /** Ends its process, with all that it has started. Never rejects. */
  async kill(): Promise<void> {
    this.#connection.close(new AgentFault("it was ended"));
    this.#reading.abort();
    // It ends with its machine otherwise.
    await this.#exec.kill("SIGKILL").catch(() => undefined);
  }

  async #initialize(): Promise<void> {
    this.#about = await this.#ask("say who it is", INITIALIZE_MS, methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      // It has files and commands of its own, inside.
      clientCapabilities: {},
      clientInfo: { name: "engine", version: "1" },
    });
    const { protocolVersion } = this.#about;
    if (protocolVersion !== PROTOCOL_VERSION) {
      throw new AgentFault(`it speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`);
    }
    checkServers(this.#options.mcpServers, this.#about.agentCapabilities?.mcpCapabilities);
  }

  /** In another mode it might use what it has to ask for. One of the operator's choice may have no modes. */
  async #enterMode(sessionId: string, modes: SessionModeState | null | undefined): Promise<void> {
    const modeId = this.#options.settings.sessionMode;
    if (modeId === undefined || modes === undefined || modes === null || modes.currentModeId === modeId) return;
    const request = { sessionId, modeId };
    await this.#ask(`go into the mode ${modeId}`, SESSION_MS, methods.agent.session.setMode, request);
  }

  #sessionRequest() {
    const { workingDirectory, settings, mcpServers } = this.#options;
    const meta = settings.sessionMeta;
    return { cwd: workingDirectory, mcpServers, ...(meta !== undefined && { _meta: meta }) };
  }

  /** A request that is answered in time. Rejects with `AgentFault`. */
  async #ask<M extends Method>(what: string, timeoutMs: number | undefined, method: M, params: Params<M>) {
    const timer = timeoutMs === undefined ? undefined : this.#limit(what, timeoutMs);
    try {
      return await this.#connection.agent.request(method, params);
    } catch (error) {
      if (error instanceof AgentFault) throw error;
      throw new AgentFault(`it did not ${what}: ${reasonOf(error)}`, { cause: error });
    } finally {
      timer?.cancel();
    }
  }

  /** Time in which its machine stands still is not its own. */
  #limit(what: string, timeoutMs: number): { cancel(): void } {
    const { clock, machine } = this.#options;
    let leftMs = timeoutMs;
    return clock.every(LOOK_EVERY_MS, () => {
      if (machine.isPaused) return;
      leftMs -= LOOK_EVERY_MS;
      if (leftMs <= 0) this.#fail(new AgentFault(`it did not ${what} in ${timeoutMs / 1_000} seconds`));
    });
  }

  #update(params: unknown): void {
    const { sessionId, update } = readUpdate(params);
    if (update !== undefined) this.#listeners.get(sessionId)?.take(update);
  }

  #permit({ sessionId, toolCall, options }: { sessionId: string; toolCall: unknown; options: Options }) {
    const asked = askedNames(toolCall);
    const listener = this.#listeners.get(sessionId);
    if (asked === undefined || listener === undefined) return CANCELLED;
    return listener.permit({ toolCallId: asked.id, names: asked.names, options });
  }
}

const LOOK_EVERY_MS = 1_000;

/** `$1` the folder, `$2` the file in it, `$3` its content. */
const WRITE = 'mkdir -p -- "$HOME/$1" && printf %s "$3" > "$HOME/$1/$2" && shift 3 && exec "$@"';

/** A command that writes a file before it runs the other one. */
function withFile(argv: readonly string[], file: AgentSettings["file"]): readonly string[] {
  if (file === undefined) return argv;
  return ["/bin/sh", "-c", WRITE, "sh", file.folder, file.name, file.content, ...argv];
}

type Method = keyof AgentRequestParamsByMethod;
type Params<M extends Method> = AgentRequestParamsByMethod[M];

/** It is kept: anything that is short and text. */
function checkName(sessionId: string): string {
  if (sessionId.length <= MAX_NAME_CHARS && sessionId.isWellFormed() && !sessionId.includes("\0")) return sessionId;
  throw new AgentFault("it gave a session a name that is none");
}

function isAuthRequired(error: unknown): boolean {
  const cause = error instanceof AgentFault ? error.cause : error;
  return cause instanceof RequestError && cause.code === AUTH_REQUIRED;
}

const detailsSchema = z.object({ details: z.string() });

/** Agents tell what happened beside the name of the error. */
function reasonOf(error: unknown): string {
  const { data } = detailsSchema.safeParse(error instanceof RequestError ? error.data : undefined);
  return data === undefined ? messageOf(error) : `${messageOf(error)}: ${data.details}`;
}
