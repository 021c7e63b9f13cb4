import { sleep, systemClock } from "../../src/core/clock.ts";

const POLL_MS = 50;

/** What a user of the sandbox service does, by its HTTP API. */
export class SandboxClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = `${url}/api/v1/sandboxes`;
  }

  /** Asks for one; a command waits until it runs. */
  async begin(body: object): Promise<string> {
    const { id } = (await this.#json("POST", "", { agent_provider: "claude-code", ...body })) as { id: string };
    return id;
  }

  /** Resolves when it runs. */
  async create(body: object): Promise<string> {
    const id = await this.begin(body);
    for (;;) {
      const { state, reason } = (await this.#json("GET", `/${id}`)) as Record<string, string>;
      if (state === "running") return id;
      if (state === "failed") throw new Error(`the sandbox failed: ${reason}`);
      await sleep(systemClock, POLL_MS);
    }
  }

  /** Resolves to what it wrote to standard output when it has ended well. */
  async exec(id: string, command: readonly string[]): Promise<string> {
    let text = "";
    for await (const { event_type: type, data } of this.events(id, command)) {
      if (type === "stdout") text += String(data["text"]);
      if (type === "exit" && data["exit_code"] !== 0) throw new Error(`the command ended with ${JSON.stringify(data)}`);
    }
    return text;
  }

  async *events(id: string, command: readonly string[]): AsyncGenerator<StreamEvent> {
    const answer = await this.#fetch("POST", `/${id}/exec/stream`, JSON.stringify({ command }));
    let rest = "";
    for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as StreamEvent;
    }
  }

  async put(id: string, path: string, body: ReadableStream<Uint8Array>): Promise<void> {
    await (await this.#fetch("PUT", `/${id}/files${path}`, body)).arrayBuffer();
  }

  /** Resolves to the number of bytes. */
  async get(id: string, path: string): Promise<number> {
    const answer = await this.#fetch("GET", `/${id}/files${path}`);
    let bytes = 0;
    for await (const piece of answer.body ?? []) bytes += piece.length;
    return bytes;
  }

  async remove(id: string): Promise<void> {
    await this.#fetch("DELETE", `/${id}`);
  }

  async #json(method: string, path: string, body?: object): Promise<unknown> {
    return await (await this.#fetch(method, path, body === undefined ? undefined : JSON.stringify(body))).json();
  }

  async #fetch(method: string, path: string, body?: string | ReadableStream<Uint8Array>): Promise<Response> {
    const type = typeof body === "string" ? "application/json" : "application/octet-stream";
    const sent = body === undefined ? {} : { body, headers: { "Content-Type": type }, duplex: "half" as const };
    const answer = await fetch(this.#url + path, { method, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

type StreamEvent = { event_type: string; data: Readonly<Record<string, unknown>> };
