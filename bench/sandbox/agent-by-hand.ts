import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** An agent as a process of this computer, spoken to over its pipes: what a prompt takes without anything around it. */
export class AgentByHand {
  readonly #child: ReturnType<typeof spawn>;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #said = "";
  #last = 0;
  #session = "";

  constructor(command: readonly string[]) {
    const [program = "", ...args] = command;
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
    if (this.#child.stdout === null) throw new Error("the agent has no standard output");
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#take(line));
  }

  async begin(): Promise<void> {
    await this.#call("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const session = (await this.#call("session/new", { cwd: "/tmp", mcpServers: [] })) as { sessionId: string };
    this.#session = session.sessionId;
  }

  /** Resolves, to what it said, when it has ended the turn. */
  async say(text: string): Promise<string> {
    this.#said = "";
    await this.#call("session/prompt", { sessionId: this.#session, prompt: [{ type: "text", text }] });
    return this.#said;
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }

  #call(method: string, params: object): Promise<unknown> {
    const id = ++this.#last;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, resolve);
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return promise;
  }

  #take(line: string): void {
    const message = JSON.parse(line) as Message;
    if (message.id !== undefined) this.#waiting.get(message.id)?.(message.result);
    else this.#said += message.params?.update?.content?.text ?? "";
  }
}

type Message = {
  id?: number;
  result?: unknown;
  params?: { update?: { content?: { text?: string } } };
};
