/** Of an answer that is no stream of events: far more than one of a few tokens, or a list of models, has. */
const ANSWER_BYTES = 8 * 1024 * 1024;
/** Of a stream of events, in which a few bytes that are said come in many: whoever reads it counts what is said. */
const STREAM_BYTES = 64 * 1024 * 1024;
/** Of a refusal: its first words are enough. */
const REFUSAL_BYTES = 64 * 1024;

/**
 * Asks a provider. A redirect is an answer like any other, for it would take the key and the question to an address that
 * the operator has not set. Whatever comes is bounded, one event without end too.
 */
export const providerFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (!response.ok) return replaced(response, await firstBytes(response, REFUSAL_BYTES));
  if (response.body === null) return response;
  const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream") === true;
  return replaced(response, response.body.pipeThrough(atMost(isStream ? STREAM_BYTES : ANSWER_BYTES)));
};

/** Fails what is larger. Pieces pass as they come, as some servers call their streams of events something else. */
function atMost(limitBytes: number): TransformStream<Uint8Array, Uint8Array<ArrayBuffer>> {
  let sizeBytes = 0;
  return new TransformStream({
    transform(piece: Uint8Array<ArrayBuffer>, controller) {
      sizeBytes += piece.length;
      if (sizeBytes > limitBytes) controller.error(new Error(`the answer has more than ${limitBytes} bytes`));
      else controller.enqueue(piece);
    },
  });
}

async function firstBytes(response: Response, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of response.body ?? []) {
    pieces.push(piece);
    sizeBytes += piece.length;
    // Leaving the loop ends the connection.
    if (sizeBytes >= limitBytes) break;
  }
  return Buffer.concat(pieces).subarray(0, limitBytes);
}

/** The bytes are decoded already. */
function replaced(
  { status, statusText, headers }: Response,
  body: ConstructorParameters<typeof Response>[0],
): Response {
  const rest = new Headers(headers);
  rest.delete("Content-Encoding");
  rest.delete("Content-Length");
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  return new Response(hasBody ? body : null, { status, statusText, headers: rest });
}
