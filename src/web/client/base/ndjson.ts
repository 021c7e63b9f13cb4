/**
 * The values of an NDJSON answer as they arrive, some lines at a time: what came with one piece of the body is given out
 * together, so that a page draws once for it. Throws for a line that is not JSON, the last one too, which is cut short
 * where the server has failed half way.
 */
export async function* readNdjson<T>(body: ReadableStream<Uint8Array>): AsyncGenerator<T[], void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const end = done ? rest.length : rest.lastIndexOf("\n") + 1;
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end);
      const values = lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line) as T);
      if (values.length > 0) yield values;
      if (done) return;
    }
  } finally {
    // Whoever stops reading wants no more of the answer.
    await reader.cancel().catch(() => undefined);
  }
}
