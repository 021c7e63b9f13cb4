/** One event of a stream: what came since the last one. `id` is the last that was sent, with data or without. */
export type ServerEvent = { id: string | undefined; event: string; data: string | undefined };

/** Server-sent events as they arrive (HTML Standard, 9.2.6), in groups as their bytes come; an `id` alone counts, too. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerEvent[], void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // What is cut short is no event.
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A CR at the end may be the first half of a line break.
      const text = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
      const blocks = text.replaceAll(/\r\n?/g, "\n").split("\n\n");
      rest = (blocks.pop() ?? "") + rest.slice(text.length);
      const events = blocks.map(eventOf).filter((event) => event !== undefined);
      if (events.length > 0) yield events;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function eventOf(block: string): ServerEvent | undefined {
  let id: string | undefined;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  if (id === undefined && data.length === 0) return undefined;
  return { id, event, data: data.length === 0 ? undefined : data.join("\n") };
}
