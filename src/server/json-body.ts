import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { EngineError, messageOf, type ErrorCode } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { mayHavePrototypeKey, prototypeKeyIn } from "../core/prototype-keys.ts";
import { readDecodedBody } from "../io/http/decode.ts";
import type { HttpRequest } from "../io/http/http.ts";

/**
 * Reads a JSON body and checks it by a schema; the first problem becomes the error. The message names the field and the
 * rule, never the value: what is sent here may be a secret.
 */
export async function readJson(
  request: HttpRequest,
  schema: z.ZodType,
  errors: { unreadable: ErrorCode; invalid: ErrorCode } = {
    unreadable: "bad_request_body",
    invalid: "bad_request_body",
  },
  limitBytes: number = LIMITS.jsonBodyBytes,
): Promise<unknown> {
  const bytes = await readDecodedBody(request, limitBytes);
  const result = schema.safeParse(bytes.length === 0 ? undefined : parse(bytes, errors));
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const isWhole = issue === undefined || issue.path.length === 0;
  const place = isWhole ? "the body" : issue.path.map(String).join(".");
  const code = isWhole && issue?.code === "invalid_type" ? errors.unreadable : errors.invalid;
  throw new EngineError(code, `${place}: ${issue?.message ?? "is not accepted"}`);
}

function parse(bytes: Uint8Array, { unreadable, invalid }: { unreadable: ErrorCode; invalid: ErrorCode }): unknown {
  if (!isUtf8(bytes)) throw new EngineError(unreadable, "the body is not valid UTF-8");
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const value = parseText(text, unreadable);
  const place = mayHavePrototypeKey(text) ? prototypeKeyIn(value) : undefined;
  if (place !== undefined) throw new EngineError(invalid, `${place}: the key is not accepted`);
  return value;
}

function parseText(text: string, code: ErrorCode): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8's message quotes the text around the mistake.
    const place = /at position \d+|Unexpected end/.exec(messageOf(error))?.[0] ?? "";
    throw new EngineError(code, `the body is not JSON ${place}`.trim());
  }
}
