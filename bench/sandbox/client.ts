import { request } from "undici";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { HttpConnection } from "../support/http-connection.ts";

const POLL_MS = 50;

/** What a user of the sandbox service does, by its HTTP API. */
export class SandboxClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = `${url}/api/v1`;
  }

  /** Asks for one; a command waits until it runs. */
  async begin(body: object): Promise<string> {
    const { id } = (await this.#json("POST", "/sandboxes", { agent_provider: "claude-code", ...body })) as {
      id: string;
    };
    return id;
  }

  /** Resolves when it runs. */
  async create(body: object): Promise<string> {
    return await this.running(await this.begin(body));
  }

  /** Resolves, to the id, when it runs. */
  async running(id: string): Promise<string> {
    for (;;) {
      const { state, reason } = (await this.#json("GET", `/sandboxes/${id}`)) as Record<string, string>;
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
    yield* eventsIn(await this.#fetch("POST", `/sandboxes/${id}/exec/stream`, JSON.stringify({ command })));
  }

  /** Resolves to the id of a workspace. */
  async addWorkspace(body: object): Promise<string> {
    return ((await this.#json("POST", "/workspaces", body)) as { id: string }).id;
  }

  /** Resolves to the id of a sandbox that is made from now on. */
  async launch(workspace: string): Promise<string> {
    return ((await this.#json("POST", `/workspaces/${workspace}/launch`)) as { sandbox_id: string }).sandbox_id;
  }

  /** Resolves to the id of an image when it is built. */
  async buildImage(template: string): Promise<string> {
    const wanted = { provider: "claude-code", template_source: template };
    const { build_id: id } = (await this.#json("POST", "/images/build", wanted)) as { build_id: string };
    for (;;) {
      const build = (await this.#json("GET", `/images/builds/${id}`)) as Record<string, string>;
      if (build["status"] === "succeeded") return build["image_id"] ?? "";
      if (build["status"] === "failed") throw new Error(`the image was not built: ${build["error"]}`);
      await sleep(systemClock, POLL_MS);
    }
  }

  /** Begins a conversation with the agent; resolves to its id. */
  async converse(id: string): Promise<string> {
    return ((await this.#json("POST", `/sandboxes/${id}/sessions`, {})) as { id: string }).id;
  }

  /** Resolves when the agent has answered, to the texts of the answer. */
  async say(session: string, text: string): Promise<string> {
    return textOf((await this.#json("POST", `/sessions/${session}/messages`, messageOf(text))) as Message);
  }

  /** What is told in a session from now on, until it is left; the first event says that it is listened to. */
  async *listen(session: string): AsyncGenerator<StreamEvent> {
    yield* eventsIn(await this.#fetch("GET", `/sessions/${session}/stream`));
  }

  async put(id: string, path: string, body: ReadableStream<Uint8Array>): Promise<void> {
    await (await this.#fetch("PUT", `/sandboxes/${id}/files${path}`, body)).arrayBuffer();
  }

  /** Resolves to the number of bytes. */
  async get(id: string, path: string): Promise<number> {
    const answer = await this.#fetch("GET", `/sandboxes/${id}/files${path}`);
    let bytes = 0;
    for await (const piece of answer.body ?? []) bytes += piece.length;
    return bytes;
  }

  async remove(id: string): Promise<void> {
    await this.#fetch("DELETE", `/sandboxes/${id}`);
  }

  /** By undici itself: `fetch` over it takes half a millisecond more, which is not what is measured here. */
  async #json(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const sent =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const answer = await request(this.#url + path, { method, ...sent, headersTimeout: 0, bodyTimeout: 0 });
    if (answer.statusCode < 300) return await answer.body.json();
    throw new Error(`${method} ${path}: ${answer.statusCode} ${await answer.body.text()}`);
  }

  async #fetch(method: string, path: string, body?: string | ReadableStream<Uint8Array>): Promise<Response> {
    const type = typeof body === "string" ? "application/json" : "application/octet-stream";
    const sent = body === undefined ? {} : { body, headers: { "Content-Type": type }, duplex: "half" as const };
    const answer = await fetch(this.#url + path, { method, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

/** Says things by the leanest client: what a prompt takes is not to be what a library does with it. */
export class PromptConnection {
  readonly #connection: HttpConnection;
  readonly #host: string;

  private constructor(connection: HttpConnection, host: string) {
    this.#connection = connection;
    this.#host = host;
  }

  static async open(url: string): Promise<PromptConnection> {
    const { hostname, port, host } = new URL(url);
    return new PromptConnection(await HttpConnection.open(hostname, Number(port)), host);
  }

  /** See `SandboxClient.say`. */
  async say(session: string, text: string): Promise<string> {
    const body = Buffer.from(JSON.stringify(messageOf(text)));
    const head =
      `POST /api/v1/sessions/${session}/messages HTTP/1.1\r\nHost: ${this.#host}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const answer = await this.#connection.send(head, body);
    if (answer.status !== 200) throw new Error(`a message: ${answer.status} ${answer.body}`);
    return textOf(JSON.parse(answer.body) as Message);
  }

  close(): void {
    this.#connection.close();
  }
}

type Message = { content: readonly { text?: string }[] };

function messageOf(text: string) {
  return { role: "user", content: [{ type: "text", text }] };
}

function textOf({ content }: Message): string {
  return content.map((block) => block.text ?? "").join("");
}

export type StreamEvent = { event_type: string; data: Readonly<Record<string, unknown>> };

async function* eventsIn(answer: Response): AsyncGenerator<StreamEvent> {
  let rest = "";
  for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as StreamEvent;
  }
}
