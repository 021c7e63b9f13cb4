import { EngineError } from "../../core/errors.ts";

/**
 * Checks what uWebSockets' parser lets pass and node's doesn't. RFC 9112 §6: framing that two parsers may read
 * differently lets one request hide in another. Names are lower case.
 */
export function framingProblem(
  method: string,
  names: readonly string[],
  values: readonly string[],
): EngineError | undefined {
  let lengths = 0;
  let codings = 0;
  for (let i = 0; i < names.length; i++) {
    if (names[i] === "content-length") {
      lengths++;
      if (!/^\d{1,15}$/.test(values[i] ?? "")) return problem("the request's Content-Length is not a number");
    } else if (names[i] === "transfer-encoding") {
      codings++;
      if (values[i]?.toLowerCase() !== "chunked") return problem("the request's Transfer-Encoding is not chunked");
    }
  }
  if (lengths + codings > 1) return problem("the request says more than once how long its body is");
  return method === method.toUpperCase() ? undefined : problem("the request's method is unknown");
}

/** Bytes of a request head; header text outside of ASCII counts a little less than it has. */
export function headBytes(target: number, names: readonly string[], values: readonly string[]): number {
  let sizeBytes = target + " HTTP/1.1\r\n\r\n".length;
  for (let i = 0; i < names.length; i++) {
    sizeBytes += (names[i] ?? "").length + (values[i] ?? "").length + ": \r\n".length;
  }
  return sizeBytes;
}

function problem(message: string): EngineError {
  return new EngineError("bad_request", message);
}
