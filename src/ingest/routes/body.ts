import { z } from "zod";
import { LIMITS } from "../../core/limits.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import type { HttpRequest } from "../../io/http/http.ts";
import type { IngestRequest } from "../ingest.ts";

/** What the routes that take rows have in common. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]+$/, "accepted are 1 to 255 visible ASCII characters")
  .max(LIMITS.idempotencyKeyChars, `accepted are 1 to ${LIMITS.idempotencyKeyChars} visible ASCII characters`)
  .optional()
  .describe("A retry with the same key (per database and table, for 24 hours) is acknowledged and not stored again.");

/**
 * Ingests the body of a request by `ingest`, which gets how to read it. A replay ignores the body, but a client that is still
 * sending it must be let finish before it hears the answer.
 */
export async function withBody<T>(
  request: HttpRequest,
  ingest: (body: Pick<IngestRequest, "readBody" | "expectedBytes">) => Promise<T>,
): Promise<T> {
  const expectedBytes = announcedBytes(request.header("content-length"));
  let bodyRead = false;
  const ack = await ingest({
    ...(expectedBytes === undefined ? {} : { expectedBytes }),
    readBody: (onGrow) => {
      bodyRead = true;
      return readDecodedBody(request, LIMITS.ingestBodyBytes, { onGrow, shared: true });
    },
  });
  if (!bodyRead) for await (const _ of request.stream(LIMITS.ingestBodyBytes));
  return ack;
}

/** Size of the body on the wire as far as the headers tell it. */
function announcedBytes(length: string | undefined): number | undefined {
  if (length === undefined) return undefined;
  const sizeBytes = Number(length);
  return Number.isSafeInteger(sizeBytes) ? Math.min(sizeBytes, LIMITS.ingestBodyBytes) : undefined;
}
