import { readArrowMessages } from "../base/arrow-messages.ts";
import { clock } from "../base/clock.ts";
import type { Ask, RunRequest, Told } from "./result-protocol.ts";
import { ResultStore } from "./result-store.ts";

/** Asks a query and keeps its rows, so that the page stays free however many there are. */
const store = new ResultStore();
const stop = new AbortController();
/** Told no more often: each is a draw of the page. */
const TOLD_EVERY_MS = 60;
/** More than a large screen shows. Where there are more columns than this the page asks for those in view. */
const FIRST_ROWS = 64;
const FIRST_COLUMNS = 100;

const scope = self as unknown as {
  postMessage(told: Told): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Ask>) => void): void;
};

scope.addEventListener("message", ({ data }) => void heard(data));

async function heard(ask: Ask): Promise<void> {
  switch (ask.kind) {
    case "run":
      await run(ask.request);
      return;
    case "stop":
      stop.abort();
      return;
    case "window":
      answer(ask.ask, store.window(ask.from, ask.to, ask.columns));
      return;
    case "cell":
      answer(ask.ask, store.cell(ask.row, ask.column));
      return;
    case "row":
      answer(ask.ask, store.rowJson(ask.row));
      return;
    case "sort":
      await store.sort(ask.column, ask.isDescending);
      answer(ask.ask, store.rows);
      return;
    case "filter":
      await store.filter(ask.text);
      answer(ask.ask, store.rows);
      return;
    case "copy":
      answer(ask.ask, store.copied(ask.range, ask.format));
      return;
    case "numbers":
      answer(ask.ask, store.numbers(ask.columns, ask.most));
      return;
  }
}

function answer(ask: number, value: unknown): void {
  scope.postMessage({ kind: "answer", ask, value });
}

async function run({ path, headers, body }: RunRequest): Promise<void> {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { ...headers, "X-Engine-Web": "1", Accept: "application/vnd.apache.arrow.stream" },
      body,
      credentials: "same-origin",
      cache: "no-store",
      signal: stop.signal,
    });
    if (!response.ok || response.body === null) {
      const text = await response.text();
      scope.postMessage({ kind: "failed", status: response.status, text, headers: [...response.headers] });
      return;
    }
    scope.postMessage({ kind: "head", head: headOf(response.headers) });
    await receive(response.body);
  } catch (error) {
    if (stop.signal.aborted) return;
    scope.postMessage({ kind: "broken", message: error instanceof Error ? error.message : String(error) });
  }
}

async function receive(body: ReadableStream<Uint8Array>): Promise<void> {
  let bytes = 0;
  let toldMs = Number.NEGATIVE_INFINITY;
  let hasTold = false;
  const tellProgress = () => {
    toldMs = clock.monotonicMs();
    const told = { kind: "progress", received: store.allRows, shown: store.rows, bytes } as const;
    const isFirst = !hasTold && store.rows > 0 && store.columns.length <= FIRST_COLUMNS;
    const columns = store.columns.map((_column, i) => i);
    scope.postMessage(isFirst ? { ...told, first: store.window(0, FIRST_ROWS, columns) } : told);
    hasTold ||= store.rows > 0;
  };
  try {
    for await (const message of readArrowMessages(body)) {
      bytes += message.bytes.length;
      store.add(message);
      if (message.kind === "schema") scope.postMessage({ kind: "columns", columns: store.columns });
      else if (clock.monotonicMs() - toldMs >= TOLD_EVERY_MS) tellProgress();
    }
  } finally {
    // Rows that came after a sort or a search are not arranged yet, also where the query was stopped or broke off.
    await store.arrange();
    tellProgress();
  }
  scope.postMessage({ kind: "end" });
}

function headOf(headers: Headers) {
  return {
    isTruncated: headers.get("x-engine-truncated") === "true",
    render: headers.get("x-engine-render") ?? undefined,
  };
}
