import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { EngineError, messageOf } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { readDecodedBody } from "../io/http/decode.ts";
import type { HttpRequest } from "../io/http/http.ts";

/**
 * Reads a JSON body and checks it by a schema; the first problem becomes the error. The message names the field and the
 * rule, never the value: what is sent here may be a secret.
 */
export async function readJson(request: HttpRequest, schema: z.ZodType): Promise<unknown> {
  const bytes = await readDecodedBody(request, LIMITS.jsonBodyBytes);
  const result = schema.safeParse(bytes.length === 0 ? undefined : parse(bytes));
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const place = issue === undefined || issue.path.length === 0 ? "the body" : issue.path.map(String).join(".");
  throw new EngineError("bad_request_body", `${place}: ${issue?.message ?? "is not accepted"}`);
}

function parse(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw new EngineError("bad_request_body", "the body is not valid UTF-8");
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch (error) {
    // V8's message quotes the text around the mistake.
    const place = /at position \d+|Unexpected end/.exec(messageOf(error))?.[0] ?? "";
    throw new EngineError("bad_request_body", `the body is not JSON ${place}`.trim());
  }
}
