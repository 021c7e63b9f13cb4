import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { AddressInfo } from "node:net";

export type Seen = { atMs: number; method: string; path: string; headers: IncomingMessage["headers"]; body: Buffer };

export type ScriptedServer = AsyncDisposable & {
  url: string;
  /** Every request, in the order in which it came. */
  seen: Seen[];
  /** Requests that come before that moment of `performance.now()` are answered at that moment. */
  stallUntil(ms: number): void;
};

/** Answers as the engine would; `answer` may answer otherwise, and says so by returning true. */
export async function startScriptedServer(
  answer: (seen: Seen, response: ServerResponse) => boolean = () => false,
): Promise<ScriptedServer> {
  const seen: Seen[] = [];
  let stalledUntilMs = 0;
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = "", url: path = "", headers } = request;
    const one = { atMs: performance.now(), method, path, headers, body: await buffer(request) };
    seen.push(one);
    const waitMs = stalledUntilMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (answer(one, response)) return;
    response.end(path === "/v1/ingest" ? acknowledgement(one) : "{}");
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    stallUntil: (ms) => {
      stalledUntilMs = ms;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function acknowledgement({ body, headers }: Seen): string {
  const rows = headers["content-encoding"] === undefined ? body.toString().split("\n").length - 1 : 0;
  return JSON.stringify({ rows_ingested: rows, bytes_written: body.length, replayed: false });
}
