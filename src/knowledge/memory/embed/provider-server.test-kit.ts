import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export type Asked = { path: string; headers: IncomingMessage["headers"]; body: Record<string, unknown> };
/** What is answered in place of vectors: a status, or a body as it is; `hang` never answers. */
export type Fault = { status: number; headers?: Record<string, string> } | { body: unknown } | "hang";

/** A provider of embeddings on this machine that speaks all three wire formats, and fails when it is told to. */
export class ProviderServer {
  readonly asked: Asked[] = [];
  /** Called for each request; undefined answers it. */
  fault: (asked: Asked, texts: readonly string[]) => Fault | undefined = () => undefined;
  vectorOf: (text: string) => unknown = meaningOf;
  readonly #server: Server;
  url = "";

  private constructor() {
    this.#server = createServer((request, response) => {
      void bodyOf(request).then((body) => {
        const asked = { path: request.url ?? "", headers: request.headers, body };
        this.asked.push(asked);
        const texts = textsIn(asked);
        const fault = this.fault(asked, texts);
        if (fault === "hang") return;
        const isRefusal = fault !== undefined && "status" in fault;
        response.writeHead(isRefusal ? fault.status : 200, isRefusal ? fault.headers : {});
        // A refusal that quotes what it was sent, as some do.
        if (isRefusal) response.end(JSON.stringify({ error: { message: JSON.stringify(request.headers) } }));
        else if (fault !== undefined) response.end(textOf(fault.body));
        else response.end(JSON.stringify(answerTo(asked, texts.map(this.vectorOf))));
      });
    });
  }

  static async start(port = 0): Promise<ProviderServer> {
    const provider = new ProviderServer();
    const listening = Promise.withResolvers<void>();
    provider.#server.listen(port, "127.0.0.1", () => listening.resolve());
    await listening.promise;
    provider.url = `http://127.0.0.1:${(provider.#server.address() as AddressInfo).port}`;
    return provider;
  }

  /** All texts that it was sent. */
  get texts(): string[] {
    return this.asked.flatMap(textsIn);
  }

  async stop(): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    this.#server.closeAllConnections();
    await closed.promise;
  }
}

const MEANINGS = ["boat ship vessel", "money price cost", "door gate entrance", "rain storm weather"].map((words) =>
  words.split(" "),
);

/** A dimension for each meaning that its words have, and a little of one that all texts share. */
export function meaningOf(text: string): number[] {
  const lower = text.toLowerCase();
  return [...MEANINGS.map((words) => (words.some((word) => lower.includes(word)) ? 1 : 0)), 0.1];
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : JSON.stringify(body);
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return JSON.parse(Buffer.concat(pieces).toString("utf8")) as Record<string, unknown>;
}

function textsIn({ path, body }: Asked): string[] {
  if (!path.includes(":batchEmbedContents")) return body["input"] as string[];
  const requests = body["requests"] as { content: { parts: { text: string }[] } }[];
  return requests.map(({ content }) => content.parts[0]?.text ?? "");
}

function answerTo({ path }: Asked, vectors: readonly unknown[]): unknown {
  if (path.includes(":batchEmbedContents")) return { embeddings: vectors.map((values) => ({ values })) };
  if (path.endsWith("/api/embed")) return { model: "m", embeddings: vectors };
  // The last one first: they are told apart by their numbers.
  const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }));
  return { object: "list", data: data.toReversed() };
}
