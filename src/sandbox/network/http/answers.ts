import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf } from "../../../core/errors.ts";
import { EgressRefusal } from "./refusal.ts";

export function refusalOf(error: unknown): EgressRefusal {
  return error instanceof EgressRefusal ? error : new EgressRefusal(502, messageOf(error));
}

/** Answers a request that is not done. */
export function refuse(response: ServerResponse, { status, message }: EgressRefusal): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const headers: Record<string, string> = { "Content-Type": "text/plain; charset=utf-8" };
  const { headers: asked, complete } = response.req;
  // What is left of a body is not waited for.
  const hasBody = asked["transfer-encoding"] !== undefined || (asked["content-length"] ?? "0") !== "0";
  if (hasBody && !complete) headers["Connection"] = "close";
  response.writeHead(status, headers).end(`${message}\n`);
}

/** The same on a connection that has no request, or none any more; it ends. */
export function endWith(connection: Duplex, { status, message }: EgressRefusal): void {
  const body = `${message}\n`;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`;
  const fields = `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}`;
  connection.end(`${head}\r\n${fields}\r\nConnection: close\r\n\r\n${body}`);
}
