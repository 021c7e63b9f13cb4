import { STATUS_CODES } from "node:http";
import type { HttpResponse } from "./http.ts";

/** What both drivers need to know of a response before they write it. */
export type PreparedResponse = {
  status: number;
  /** `413 Payload Too Large`. */
  statusLine: string;
  /** Name, value, name, value… without those that are the driver's. */
  headers: string[];
  /** Undefined: the answer has no body, and `lengthBytes` says what Content-Length it gets, if any. */
  body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  lengthBytes: number | undefined;
};

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// oxlint-disable-next-line no-control-regex -- control characters are what must not get through
const UNSAFE_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const DRIVERS_OWN = /^(content-length|transfer-encoding|connection|date)$/i;

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
);

/**
 * Checks and completes a handler's response. Throws a `TypeError` for a header that can't be sent: a line break in one
 * would let its author write the rest of the response.
 */
export function prepareResponse(method: string, response: HttpResponse): PreparedResponse {
  const { status } = response;
  const headers: string[] = [];
  let announced: number | undefined;
  for (const name in response.headers) {
    const value = response.headers[name] ?? "";
    if (!NAME.test(name) || UNSAFE_VALUE.test(value)) throw new TypeError(`response header ${name} can't be sent`);
    if (!DRIVERS_OWN.test(name)) headers.push(name, value);
    else if (name.toLowerCase() === "content-length") announced = Number(value);
  }
  for (const cookie of response.cookies ?? []) {
    if (UNSAFE_VALUE.test(cookie)) throw new TypeError("a cookie can't be sent");
    headers.push("Set-Cookie", cookie);
  }
  const statusLine = STATUS_LINES.get(status) ?? `${status} Unknown`;
  // RFC 9110 §6.4.1: these have no body, and §8.6: no Content-Length (a 304 may, but needs none).
  if (status === 204 || status === 304) return { status, statusLine, headers, body: undefined, lengthBytes: undefined };
  const { body } = response;
  const streamedBytes = isStreamed(body) && Number.isSafeInteger(announced) ? announced : undefined;
  const lengthBytes = streamedBytes ?? lengthOf(body);
  if (method !== "HEAD") {
    const sent = isStreamed(body) && streamedBytes !== undefined ? ofLength(body, streamedBytes) : (body ?? "");
    return { status, statusLine, headers, body: sent, lengthBytes };
  }
  const shownBytes = body === undefined ? (announced ?? 0) : lengthBytes;
  return { status, statusLine, headers, body: undefined, lengthBytes: shownBytes };
}

function lengthOf(body: HttpResponse["body"]): number | undefined {
  if (body === undefined) return 0;
  if (typeof body === "string") return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.length : undefined;
}

/** The same body; it fails instead of ending early, and before a byte that is too much. */
function ofLength(body: AsyncIterable<Uint8Array>, lengthBytes: number): AsyncIterable<Uint8Array> {
  const inner = body[Symbol.asyncIterator]();
  let missingBytes = lengthBytes;
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      const step = await inner.next();
      if (step.done !== true) missingBytes -= step.value.length;
      if (step.done === true ? missingBytes === 0 : missingBytes >= 0) return step;
      await inner.return?.();
      throw new Error(`a response's body has another length than the ${lengthBytes} bytes it was announced with`);
    },
    return: async () => {
      await inner.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

export function isStreamed(body: PreparedResponse["body"]): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && !(body instanceof Uint8Array);
}

/** Tells the iterator of a streamed body that nobody will pull it (again). */
export async function closeIterator(
  iterator: AsyncIterator<Uint8Array>,
  report: (error: unknown) => void,
): Promise<void> {
  try {
    await iterator.return?.();
  } catch (error) {
    report(error);
  }
}

/** Closes a response's body that will not be sent. */
export async function closeBody(body: HttpResponse["body"], report: (error: unknown) => void): Promise<void> {
  if (isStreamed(body)) await closeIterator(body[Symbol.asyncIterator](), report);
}
