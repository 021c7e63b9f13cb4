import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer, request as forwardRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** What the proxy does to one request on its way to the real store. */
export type Meddling =
  /** Answers by itself; the store never sees the request. */
  | { kind: "answer"; status: number; body?: string; headers?: Record<string, string> }
  /** Waits, then goes on as usual. */
  | { kind: "delay"; delayMs: number }
  /** Waits until that is settled, then goes on as usual. */
  | { kind: "wait"; until: Promise<unknown> }
  /** Never answers. */
  | { kind: "hang" }
  /** Cuts the connection before the store sees anything. */
  | { kind: "cut" }
  /** Lets the store do it, then cuts the connection without a word. */
  | { kind: "lose_answer" }
  /** Sends the first half of the answer's body, then cuts the connection. */
  | { kind: "cut_answer" }
  /** Changes one byte in the middle of the answer's body. */
  | { kind: "flip" }
  /** Changes the answer's body as text. */
  | { kind: "rewrite"; rewrite: (body: string) => string };

export type SeenRequest = { method: string; url: string; headers: IncomingMessage["headers"] };

export type MeddlingProxy = {
  endpoint: string;
  /** Requests so far, in the order of their arrival. */
  seen: SeenRequest[];
  /** Most connections that were open at once. */
  mostConnections(): number;
  close(): Promise<void>;
};

/** Starts a proxy before the store at `target`; `meddle` decides about each request, undefined passing it on. */
export async function startMeddlingProxy(
  target: string,
  meddle: (request: SeenRequest, index: number) => Meddling | undefined,
): Promise<MeddlingProxy> {
  const seen: SeenRequest[] = [];
  let open = 0;
  let most = 0;
  const server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    const one = { method, url, headers };
    seen.push(one);
    void handle(target, request, response, meddle(one, seen.length - 1));
  });
  server.on("connection", (socket) => {
    most = Math.max(most, ++open);
    socket.on("close", () => open--);
  });
  // Uploads that ask first are told to go on by whoever answers.
  server.on("checkContinue", (request, response) => {
    response.writeContinue();
    server.emit("request", request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    mostConnections: () => most,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function handle(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  meddling: Meddling | undefined,
): Promise<void> {
  request.on("error", () => response.destroy());
  if (meddling?.kind === "cut") {
    request.socket.destroy();
    return;
  }
  if (meddling?.kind === "hang") {
    request.resume();
    return;
  }
  if (meddling?.kind === "answer") {
    request.resume().once("end", () => {
      response.writeHead(meddling.status, { "content-type": "application/xml", ...meddling.headers });
      response.end(meddling.body);
    });
    return;
  }
  if (meddling?.kind === "delay") await delay(meddling.delayMs);
  if (meddling?.kind === "wait") await meddling.until;
  forward(target, request, response, meddling);
}

function forward(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  meddling: Meddling | undefined,
): void {
  const { hostname, port } = new URL(target);
  const { method, url: path, headers } = request;
  const { expect: _answered, ...passed } = headers;
  // The host goes through unchanged: it is signed.
  const onward = forwardRequest({ hostname, port, method, path, headers: passed, agent: false }, (answer) => {
    answer.on("error", () => response.destroy());
    const { statusCode = 502, headers: answerHeaders } = answer;
    if (meddling === undefined || meddling.kind === "delay" || meddling.kind === "wait") {
      response.writeHead(statusCode, withoutFraming(answerHeaders));
      answer.pipe(response);
      return;
    }
    void answer.toArray().then(
      (chunks: Buffer[]) => {
        const body = Buffer.concat(chunks);
        if (meddling?.kind === "lose_answer") {
          request.socket.destroy();
          return;
        }
        const sent = meddledBody(body, meddling);
        const length = method === "HEAD" ? {} : { "content-length": String(sent.length) };
        response.writeHead(statusCode, { ...withoutFraming(answerHeaders), ...length });
        if (meddling?.kind !== "cut_answer") {
          response.end(sent);
          return;
        }
        response.write(sent.subarray(0, sent.length / 2), () => request.socket.destroy());
      },
      () => response.destroy(),
    );
  });
  onward.on("error", () => response.destroy());
  // Who gives up here has given up there.
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

function meddledBody(body: Buffer, meddling: Meddling | undefined): Buffer {
  if (meddling?.kind === "rewrite") return Buffer.from(meddling.rewrite(body.toString()));
  if (meddling?.kind !== "flip") return body;
  const flipped = Buffer.from(body);
  const middle = Math.floor(flipped.length / 2);
  flipped[middle] = (flipped[middle] ?? 0) ^ 1;
  return flipped;
}

function withoutFraming(headers: IncomingMessage["headers"]): IncomingMessage["headers"] {
  const { connection: _connection, "transfer-encoding": _encoding, ...rest } = headers;
  return rest;
}

/** The body of an error as S3 stores answer it. */
export function errorXml(code: string, fields: Record<string, string> = {}): string {
  const inner = Object.entries({ Code: code, Message: `told to say ${code}`, ...fields })
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${inner}</Error>`;
}
