import { eventually } from "../../src/core/waiting.test-kit.ts";

export type TailEvent = { event: string; id: string | undefined; data: Record<string, unknown> };

export type TailOptions = {
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** Reads nothing until `resume`. */
  isPaused?: boolean;
};

/** A client of `GET /v1/tail`, as a browser reads the stream: an id counts when its event, or none, has ended. */
export class TailClient {
  readonly response: Response;
  readonly events: TailEvent[] = [];
  /** Of the stream, which an event need not come with. */
  lastId = "";
  isOver = false;
  text = "";
  readonly #leaving: AbortController;
  readonly #onEvent: (event: TailEvent) => void;

  private constructor(response: Response, leaving: AbortController, onEvent: (event: TailEvent) => void) {
    this.response = response;
    this.#leaving = leaving;
    this.#onEvent = onEvent;
  }

  /** Rejects when the answer is no stream. */
  static async open(
    url: string,
    table: string,
    { query = {}, headers = {}, isPaused = false }: TailOptions = {},
    onEvent: (event: TailEvent) => void = () => {},
  ): Promise<TailClient> {
    const leaving = new AbortController();
    const asked = new URLSearchParams({ table, ...query }).toString();
    const response = await fetch(`${url}/v1/tail?${asked}`, { headers, signal: leaving.signal });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    const client = new TailClient(response, leaving, onEvent);
    if (!isPaused) client.resume();
    return client;
  }

  resume(): void {
    void this.#read();
  }

  /** Rows in the order in which they came. */
  get rows(): TailEvent[] {
    return this.events.filter(({ event }) => event === "message");
  }

  values(name: string): unknown[] {
    return this.rows.map(({ data }) => data[name]);
  }

  /** Until there are so many rows. */
  async until(count: number, timeoutMs = 30_000): Promise<TailEvent[]> {
    try {
      await eventually(() => this.rows.length >= count || this.isOver, timeoutMs);
    } catch {
      // The assertion says what there was.
    }
    if (this.rows.length < count) throw new Error(`${this.rows.length} rows of ${count}; the stream: ${this.text}`);
    return this.rows;
  }

  /** The last event, once the stream is over. */
  async end(timeoutMs = 30_000): Promise<TailEvent | undefined> {
    await eventually(() => this.isOver, timeoutMs);
    return this.events.at(-1);
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #read(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    try {
      for await (const piece of this.response.body ?? []) {
        const text = decoder.decode(piece as Uint8Array, { stream: true });
        if (this.text.length < 10_000) this.text += text;
        const blocks = `${rest}${text}`.split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) this.#take(block);
      }
    } catch {
      // The client left, or the server tore the connection.
    }
    this.isOver = true;
  }

  #take(block: string): void {
    const fields = new Map(block.split("\n").map((line) => splitOnce(line)));
    const id = fields.get("id");
    if (id !== undefined) this.lastId = id;
    const data = fields.get("data");
    if (data === undefined) return;
    const event = { event: fields.get("event") ?? "message", id, data: JSON.parse(data) as Record<string, unknown> };
    this.events.push(event);
    this.#onEvent(event);
  }
}

function splitOnce(line: string): [string, string] {
  const colon = line.indexOf(": ");
  return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 2)];
}
