/** Of an answer that is no stream: far more than one of a few tokens, or a list of models, has. */
const ANSWER_BYTES = 4 * 1024 * 1024;
/** Of a refusal: its first words are enough. */
const REFUSAL_BYTES = 64 * 1024;

/**
 * Asks a provider. A redirect is an answer like any other, for it would take the key and the question to an address that
 * the operator has not set. Answers that are no streams are bounded.
 */
export const providerFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (!response.ok) return replaced(response, await firstBytes(response, REFUSAL_BYTES));
  const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream") === true;
  return isStream ? response : replaced(response, await allBytes(response, ANSWER_BYTES));
};

async function allBytes(response: Response, atMost: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await firstBytes(response, atMost + 1);
  if (bytes.length > atMost) throw new Error(`the answer has more than ${atMost} bytes`);
  return bytes;
}

async function firstBytes(response: Response, atMost: number): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of response.body ?? []) {
    pieces.push(piece);
    sizeBytes += piece.length;
    // Leaving the loop ends the connection.
    if (sizeBytes >= atMost) break;
  }
  return Buffer.concat(pieces).subarray(0, atMost);
}

/** The bytes are decoded already. */
function replaced({ status, statusText, headers }: Response, bytes: Uint8Array<ArrayBuffer>): Response {
  const rest = new Headers(headers);
  rest.delete("Content-Encoding");
  rest.delete("Content-Length");
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  return new Response(hasBody ? bytes : null, { status, statusText, headers: rest });
}
