/**
 * The values of an NDJSON answer as they arrive, some lines at a time: what came with one piece of the body is given out
 * together, so that a page draws once for it. Throws for a line that is not JSON, the last one too, which is cut short
 * where the server has failed half way.
 */
export async function* readNdjson<T>(body: ReadableStream<Uint8Array>): AsyncGenerator<T[], void, undefined> {
  for await (const lines of readLines(body)) yield lines.map((line) => JSON.parse(line) as T);
}

/** The same as texts. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string[], void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const end = done ? rest.length : rest.lastIndexOf("\n") + 1;
      const lines = rest
        .slice(0, end)
        .split("\n")
        .filter((line) => line.trim() !== "");
      rest = rest.slice(end);
      if (lines.length > 0) yield lines;
      if (done) return;
    }
  } finally {
    // Whoever stops reading wants no more of the answer.
    await reader.cancel().catch(() => undefined);
  }
}
