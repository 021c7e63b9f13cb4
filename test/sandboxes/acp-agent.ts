/**
 * An agent without a model: it speaks the Agent Client Protocol over its standard input and output, and does what the
 * lines of the last text of a prompt say, one after the other:
 *
 * | line | what |
 * |---|---|
 * | `say TEXT`, `image`, `log TEXT` | a piece of text; a picture; a line on its standard error |
 * | `flood N` | N pieces of text, `0 ` to `N-1 ` |
 * | `think TEXT` | a thought |
 * | `use NAME TEXT` | a tool that is used without asking, with TEXT as its input and its result |
 * | `ask KIND NAME PATH` | a tool that asks first; then it writes the file |
 * | `begin NAME` | a tool that does not end |
 * | `blocks` | says what the prompt was made of |
 * | `history` | says all that was said in the session before |
 * | `mode` | says in which mode the session is, `auto` at first |
 * | `servers` | says which servers of MCP the session has |
 * | `where` | says its folder, and the variables that begin with `AGENT_` |
 * | `sleep MS` | |
 * | `wait` | until it is cancelled |
 * | `hang` | for ever, whatever is asked |
 * | `stop REASON` | ends the turn so |
 * | `fail TEXT` | answers with an error |
 * | `garbage TEXT` | writes TEXT to its standard output |
 * | `die CODE` | |
 *
 * Arguments: `--store FILE` (sessions outlive it and may be loaded), `--dead` (ends at once), `--login` (asks for one),
 * `--late` (offers no `allow_once`), `--http` (takes servers of MCP over HTTP).
 */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AgentContext,
  type AgentApp,
  type ContentBlock,
  type McpServer,
  type SessionModeState,
  type SessionUpdate,
  type StopReason,
} from "@agentclientprotocol/sdk";

export type AgentBehaviour = {
  store?: Map<string, string[]>;
  onStored?: () => void;
  /** It answers nothing. */
  isSilent?: boolean;
  asksLogin?: boolean;
  offersOnlyAlways?: boolean;
  /** Servers of MCP that it takes beside programs. */
  takesHttp?: boolean;
  write?: (text: string) => void;
  log?: (text: string) => void;
  exit?: (code: number) => void;
  newId?: () => string;
};

/** A picture of one pixel. */
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

type Running = { cancelled: Promise<void>; cancel: () => void };

class Turn {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  readonly #prompt: readonly ContentBlock[];
  readonly #history: readonly string[];
  readonly #servers: readonly McpServer[];
  readonly #mode: string;
  readonly #behaviour: AgentBehaviour;
  readonly #running: Running;
  #tools = 0;

  constructor(
    parts: {
      client: AgentContext;
      sessionId: string;
      prompt: readonly ContentBlock[];
      history: readonly string[];
      servers: readonly McpServer[];
      mode: string;
    },
    behaviour: AgentBehaviour,
    running: Running,
  ) {
    this.#client = parts.client;
    this.#sessionId = parts.sessionId;
    this.#prompt = parts.prompt;
    this.#history = parts.history;
    this.#servers = parts.servers;
    this.#mode = parts.mode;
    this.#behaviour = behaviour;
    this.#running = running;
  }

  async run(): Promise<StopReason> {
    const script = this.#prompt.findLast((block) => block.type === "text")?.text ?? "";
    for (const line of script.split("\n")) {
      const [, verb = "", rest = ""] = /^(\S*) ?(.*)$/.exec(line) ?? [];
      const stop = await this.#do(verb, rest);
      if (stop !== undefined) return stop;
    }
    return "end_turn";
  }

  async #do(verb: string, rest: string): Promise<StopReason | undefined> {
    const { write, log, exit } = this.#behaviour;
    switch (verb) {
      case "say":
        await this.#say(rest);
        return undefined;
      case "image":
        await this.#update({
          sessionUpdate: "agent_message_chunk",
          content: { type: "image", mimeType: "image/png", data: PICTURE },
        });
        return undefined;
      case "log":
        log?.(`${rest}\n`);
        return undefined;
      case "flood":
        for (let i = 0; i < Number(rest); i++) await this.#say(`${i} `);
        return undefined;
      case "think":
        await this.#update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: rest } });
        return undefined;
      case "use":
        await this.#use(rest);
        return undefined;
      case "ask":
        return await this.#ask(rest);
      case "begin":
        await this.#begin(rest, "other", {});
        return undefined;
      case "blocks":
        await this.#say(this.#prompt.map((block) => (block.type === "text" ? block.text : block.type)).join("|"));
        return undefined;
      case "history":
        await this.#say(this.#history.join("|"));
        return undefined;
      case "mode":
        await this.#say(this.#mode);
        return undefined;
      case "servers":
        await this.#say(JSON.stringify(this.#servers));
        return undefined;
      case "where": {
        const variables = Object.entries(process.env).filter(([name]) => name.startsWith("AGENT_"));
        await this.#say(JSON.stringify({ folder: process.cwd(), ...Object.fromEntries(variables) }));
        return undefined;
      }
      case "sleep":
        await new Promise((resolve) => setTimeout(resolve, Number(rest)));
        return undefined;
      case "wait":
        await this.#running.cancelled;
        return "cancelled";
      case "hang":
        return await new Promise<never>(() => undefined);
      case "stop":
        return rest as StopReason;
      case "fail":
        throw new RequestError(-32_603, rest);
      case "garbage":
        write?.(`${rest}\n`);
        return undefined;
      case "die":
        exit?.(Number(rest));
        return await new Promise<never>(() => undefined);
      default:
        return undefined;
    }
  }

  #say(text: string): Promise<void> {
    return this.#update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  async #begin(title: string, kind: "execute" | "edit" | "other", rawInput: unknown): Promise<string> {
    const toolCallId = `tool-${++this.#tools}`;
    await this.#update({ sessionUpdate: "tool_call", toolCallId, title, kind, status: "pending", rawInput });
    return toolCallId;
  }

  async #end(toolCallId: string, status: "completed" | "failed", text: string): Promise<void> {
    const content = [{ type: "content" as const, content: { type: "text" as const, text } }];
    await this.#update({ sessionUpdate: "tool_call_update", toolCallId, status, content });
  }

  async #use(rest: string): Promise<void> {
    const [name = "", ...words] = rest.split(" ");
    const id = await this.#begin(name, "other", { text: words.join(" ") });
    await this.#update({ sessionUpdate: "tool_call_update", toolCallId: id, status: "in_progress" });
    await this.#end(id, "completed", words.join(" "));
  }

  async #ask(rest: string): Promise<StopReason | undefined> {
    const [kind = "", title = "", path = ""] = rest.split(" ");
    const toolCallId = await this.#begin(title, kind === "edit" ? "edit" : "execute", { path });
    const { outcome } = await this.#client.request(methods.client.session.requestPermission, {
      sessionId: this.#sessionId,
      toolCall: { toolCallId },
      options: [
        { optionId: "always", name: "Always", kind: "allow_always" },
        ...(this.#behaviour.offersOnlyAlways === true
          ? []
          : [{ optionId: "once", name: "Once", kind: "allow_once" as const }]),
        { optionId: "no", name: "No", kind: "reject_once" },
      ],
    });
    if (outcome.outcome === "cancelled") {
      await this.#end(toolCallId, "failed", "nobody answered");
      return undefined;
    }
    if (outcome.optionId === "no") {
      await this.#end(toolCallId, "failed", "it was denied");
      return undefined;
    }
    writeFileSync(path, outcome.optionId);
    await this.#end(toolCallId, "completed", "it is done");
    return undefined;
  }

  async #update(update: SessionUpdate): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId: this.#sessionId, update });
  }
}

/** As `Promise.withResolvers`, which Node of an image may be too old for. */
function cancellation(): Running {
  const resolvers: (() => void)[] = [];
  const cancelled = new Promise<void>((resolve) => void resolvers.push(resolve));
  return { cancelled, cancel: () => resolvers.forEach((resolve) => resolve()) };
}

function modesOf(modes: ReadonlyMap<string, string>, sessionId: string): SessionModeState {
  const availableModes = ["auto", "default"].map((id) => ({ id, name: id }));
  return { currentModeId: modes.get(sessionId) ?? "auto", availableModes };
}

/** The agent, to be connected. */
export function scriptedAgent(behaviour: AgentBehaviour): AgentApp {
  const sessions = behaviour.store ?? new Map<string, string[]>();
  const turns = new Map<string, Running>();
  const servers = new Map<string, readonly McpServer[]>();
  const modes = new Map<string, string>();
  const { newId = randomUUID } = behaviour;
  let isIn = behaviour.asksLogin !== true;
  return agent({ name: "scripted" })
    .onRequest(methods.agent.initialize, async () => {
      if (behaviour.isSilent === true) return await new Promise<never>(() => undefined);
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentCapabilities: {
          loadSession: behaviour.store !== undefined,
          promptCapabilities: { image: true },
          mcpCapabilities: { http: behaviour.takesHttp === true },
        },
        authMethods: [{ id: "api-key", name: "An API key" }],
      };
    })
    .onRequest(methods.agent.authenticate, ({ params }) => {
      isIn = params.methodId === "api-key";
      return {};
    })
    .onRequest(methods.agent.session.new, ({ params }) => {
      if (!isIn) throw RequestError.authRequired();
      const sessionId = newId();
      sessions.set(sessionId, []);
      servers.set(sessionId, params.mcpServers);
      return { sessionId, modes: modesOf(modes, sessionId) };
    })
    .onRequest(methods.agent.session.load, async ({ params: { sessionId, mcpServers }, client }) => {
      servers.set(sessionId, mcpServers);
      const said = sessions.get(sessionId);
      if (said === undefined) throw RequestError.resourceNotFound(sessionId);
      for (const text of said) {
        const update = { sessionUpdate: "agent_message_chunk" as const, content: { type: "text" as const, text } };
        await client.notify(methods.client.session.update, { sessionId, update });
      }
      return { modes: modesOf(modes, sessionId) };
    })
    .onRequest(methods.agent.session.setMode, ({ params: { sessionId, modeId } }) => {
      modes.set(sessionId, modeId);
      return {};
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => turns.get(params.sessionId)?.cancel())
    .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
      const history = sessions.get(sessionId);
      if (history === undefined) throw RequestError.resourceNotFound(sessionId);
      const { cancelled, cancel } = cancellation();
      turns.set(sessionId, { cancelled, cancel });
      const turn = new Turn(
        {
          client,
          sessionId,
          prompt,
          history: [...history],
          servers: servers.get(sessionId) ?? [],
          mode: modesOf(modes, sessionId).currentModeId,
        },
        behaviour,
        { cancelled, cancel },
      );
      const said = prompt.flatMap((block) => (block.type === "text" ? [block.text] : []));
      sessions.set(sessionId, [...history, ...said]);
      behaviour.onStored?.();
      return { stopReason: await turn.run() };
    });
}

function main(args: readonly string[]): void {
  if (args.includes("--dead")) {
    process.stderr.write("no such model\n");
    process.exit(3);
  }
  const at = args.indexOf("--store");
  const path = at < 0 ? undefined : args[at + 1];
  const stored = path !== undefined && existsSync(path) ? readFileSync(path, "utf8") : "[]";
  const store = new Map(JSON.parse(stored) as [string, string[]][]);
  scriptedAgent({
    ...(path !== undefined && { store, onStored: () => writeFileSync(path, JSON.stringify([...store])) }),
    asksLogin: args.includes("--login"),
    offersOnlyAlways: args.includes("--late"),
    takesHttp: args.includes("--http"),
    write: (text) => void process.stdout.write(text),
    log: (text) => void process.stderr.write(text),
    exit: (code) => process.exit(code),
  }).connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>));
}

if (process.argv[1] !== undefined && import.meta.url.endsWith(encodeURI(process.argv[1]))) main(process.argv.slice(2));
