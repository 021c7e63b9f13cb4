import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";

/** A server that speaks Trino's protocol and answers what it is told to. */
export type ScriptedTrino = {
  url: string;
  /** What it was asked, in order. */
  requests: Asked[];
  /** By the text: what comes, a page after the other. A function answers by itself. */
  answers: Map<string, readonly Page[] | Answering>;
  /** Queries that were ended, by id. */
  ended: string[];
  close(): Promise<void>;
};

export type Asked = { method: string; path: string; headers: IncomingMessage["headers"]; body: string };

export type Page = Record<string, unknown>;
export type Answering = (request: Asked, response: ServerResponse) => void;

export const bigints = (...names: readonly string[]): Page => ({
  columns: names.map((name) => ({ name, type: "bigint", typeSignature: { rawType: "bigint", arguments: [] } })),
});
export const failure = (errorName: string, errorType: string, message: string): Page => ({
  error: { errorName, errorType, message },
});

export async function scriptedTrino(): Promise<ScriptedTrino> {
  const requests: Asked[] = [];
  const ended: string[] = [];
  const answers: ScriptedTrino["answers"] = new Map<string, readonly Page[] | Answering>([
    ["ROLLBACK", [{}]],
    ["SELECT 1", [{ ...bigints("_col0"), data: [[1]] }]],
  ]);
  const running = new Map<string, readonly Page[]>();
  let queries = 0;
  let url = "";

  function page(response: ServerResponse, id: string, number: number, headers: Record<string, string> = {}): void {
    const pages = running.get(id) ?? [];
    const isLast = number >= pages.length;
    const stats = { state: isLast ? "FINISHED" : "RUNNING", progressPercentage: 50, processedRows: 7 };
    const next = isLast ? {} : { nextUri: `${url}/v1/statement/executing/${id}/y/${number + 1}` };
    response.writeHead(200, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify({ id, stats, ...next, ...(number === 0 ? {} : pages[number - 1]) }));
  }

  function answer(asked: Asked, response: ServerResponse): void {
    const { method, path, body } = asked;
    if (method === "POST" && path === "/v1/statement") {
      const scripted = body.startsWith("START TRANSACTION") ? [{}] : answers.get(body);
      if (typeof scripted === "function") {
        scripted(asked, response);
        return;
      }
      const id = `q${++queries}`;
      running.set(id, scripted ?? [failure("SYNTAX_ERROR", "USER_ERROR", "line 1:1: no such script")]);
      const started = body.startsWith("START TRANSACTION") ? { "X-Trino-Started-Transaction-Id": `t${queries}` } : {};
      page(response, id, 0, started);
      return;
    }
    const [, id = "", number = "0"] = /^\/v1\/(?:statement\/executing|query)\/(\w+)(?:\/y\/(\d+))?$/.exec(path) ?? [];
    if (method === "DELETE") {
      ended.push(id);
      response.writeHead(204).end();
    } else page(response, id, Number(number));
  }

  const server = createServer((request, response) => {
    void (async () => {
      const { method = "", url: path = "", headers } = request;
      const asked = { method, path, headers, body: await textOf(request) };
      requests.push(asked);
      answer(asked, response);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    answers,
    ended,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
