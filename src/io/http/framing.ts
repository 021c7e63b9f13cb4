import { isUtf8 } from "node:buffer";
import { EngineError } from "../../core/errors.ts";

/**
 * What a request's head must be, beyond what the drivers' parsers ask for. RFC 9112 §6 and §11.2: a head that two programs
 * may read differently lets one request hide in another, so that it is refused and never guessed at.
 */

/** A head as a parser leaves it. Names are lower case. */
export type Head = {
  method: string;
  /** `1.0` or `1.1`. */
  version: string;
  target: string;
  names: readonly string[];
  values: readonly string[];
};

export type Target = { path: string; query: string };

/** Most headers of a request; browsers and proxies together send some thirty. */
export const MAX_HEADERS = 256;

/**
 * Where a request goes.
 * @throws EngineError `bad_request` or `headers_too_large`, which ends its connection.
 */
export function checkHead(head: Head): Target {
  const { names, values, version } = head;
  if (names.length > MAX_HEADERS) {
    throw new EngineError("headers_too_large", `the request has more than ${MAX_HEADERS} headers`);
  }
  if (version !== "1.1" && version !== "1.0") throw malformed("the request's version is neither HTTP/1.1 nor HTTP/1.0");
  let host: string | undefined;
  let lengths = 0;
  let codings = 0;
  for (let i = 0; i < names.length; i++) {
    const value = values[i] ?? "";
    const name = names[i];
    if (name === "content-length") {
      lengths++;
      if (!/^\d{1,15}$/.test(value)) throw malformed("the request's Content-Length is not a number");
    } else if (name === "transfer-encoding") {
      codings++;
      if (value.toLowerCase() !== "chunked") throw malformed("the request's Transfer-Encoding is not chunked");
    } else if (name === "host") {
      if (host !== undefined) throw malformed("the request has two Host headers");
      if (!HOST.test(value)) throw malformed("the request's Host is not a host");
      host = value;
    }
  }
  if (lengths + codings > 1) throw malformed("the request says more than once how long its body is");
  // RFC 9112 §6.1: whoever passes on such a request may not have understood it.
  if (codings > 0 && version === "1.0") throw malformed("the request's Transfer-Encoding is not HTTP/1.0");
  if (host === undefined && version !== "1.0") throw malformed("the request has no Host header");
  if (head.method !== head.method.toUpperCase()) throw malformed("the request's method is unknown");
  return checkTarget(head, host);
}

const HOST = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/;

const ABSOLUTE = /^https?:\/\/([^/?]+)(\/[^?]*)?(?:\?(.*))?$/i;

/** RFC 9112 §3.2: proxies may send the whole URL, of which the host must then be the one in `Host`. */
function checkTarget({ method, target }: Head, host: string | undefined): Target {
  if (target.includes("#")) throw malformed("the request's target has a fragment");
  if (target.startsWith("/")) {
    const question = target.indexOf("?");
    if (question < 0) return { path: target, query: "" };
    return { path: target.slice(0, question), query: target.slice(question + 1) };
  }
  if (target === "*" && method === "OPTIONS") return { path: "*", query: "" };
  const [, authority, path = "/", query = ""] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined) throw malformed("the request's target is neither a path nor an http URL");
  if (host !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
    throw malformed("the request's target and its Host header name different hosts");
  }
  return { path, query };
}

/** Value of a header; repeated ones are joined by `, `. */
export function headerIn(names: readonly string[], values: readonly string[], name: string): string | undefined {
  const first = names.indexOf(name);
  if (first < 0) return undefined;
  let value = values[first];
  for (let i = names.indexOf(name, first + 1); i > 0; i = names.indexOf(name, i + 1)) value += `, ${values[i]}`;
  return value;
}

/** Bytes of a request head; header text outside of ASCII counts a little less than it has. */
export function headBytes(target: number, names: readonly string[], values: readonly string[]): number {
  let sizeBytes = target + " HTTP/1.1\r\n\r\n".length;
  for (let i = 0; i < names.length; i++) {
    sizeBytes += (names[i] ?? "").length + (values[i] ?? "").length + ": \r\n".length;
  }
  return sizeBytes;
}

const NOT_ASCII = /[^\0-\x7f]/;

/**
 * The text of a header's bytes, which must be UTF-8: anything else has no text that is its alone, and two keys that
 * differ only there would be one.
 * @throws EngineError `invalid_header`.
 */
export function headerText(name: string, latin1: string): string {
  if (!NOT_ASCII.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, "latin1");
  if (!isUtf8(bytes)) {
    throw new EngineError("invalid_header", `the header ${name} is not UTF-8, which text outside of ASCII has to be`);
  }
  return bytes.toString("utf8");
}

function malformed(message: string): EngineError {
  return new EngineError("bad_request", message);
}
