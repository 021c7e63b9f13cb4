import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Ask, Told } from "./result-protocol.ts";
import { RunningResult } from "./running-result.ts";

// Only the built pages have their worker among their own files.
vi.mock(import("../base/trusted-types.ts"), () => ({ scriptUrl: (url) => new URL(url) }));

const COLUMNS = [
  { name: "id", type: "long", kind: "number" },
  { name: "body", type: "text", kind: "text" },
] as const;

/** The worker of the last result: what it was asked, and what it tells. */
class FakeWorker extends EventTarget {
  static last: FakeWorker;
  readonly asked: Ask[] = [];

  constructor() {
    super();
    FakeWorker.last = this;
  }

  postMessage(ask: Ask): void {
    this.asked.push(ask);
  }

  terminate(): void {}

  tell(data: Told): void {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}

beforeEach(() => {
  vi.stubGlobal("Worker", FakeWorker);
  vi.stubGlobal("location", { href: "http://127.0.0.1/" });
});
afterEach(() => vi.unstubAllGlobals());

/** A result whose worker has told of ten rows, and of the first three what they hold. */
function begun(): { result: RunningResult; worker: FakeWorker } {
  const result = new RunningResult({ path: "/v1/query", headers: {}, body: "" }, () => undefined);
  const worker = FakeWorker.last;
  worker.tell({ kind: "columns", columns: COLUMNS });
  worker.tell({
    kind: "progress",
    received: 10,
    shown: 10,
    bytes: 100,
    first: [
      ["0", "a"],
      ["1", null],
      ["2", "c"],
    ],
  });
  return { result, worker };
}

const asksOf = (worker: FakeWorker): string[] => worker.asked.map(({ kind }) => kind);

test("the first rows are there without asking the worker", async () => {
  const { result, worker } = begun();
  expect(await result.window(1, 3, [1, 0])).toEqual([
    [null, "1"],
    ["c", "2"],
  ]);
  expect(await result.window(10, 20, [0])).toEqual([]);
  expect(asksOf(worker)).toEqual(["run"]);
});

test("other rows are asked for", () => {
  const { result, worker } = begun();
  void result.window(1, 4, [0]);
  expect(worker.asked.at(-1)).toMatchObject({ kind: "window", from: 1, to: 4, columns: [0] });
});

test("a sort makes the worker answer for the first rows, and a window of them stale", async () => {
  const { result, worker } = begun();
  const sorting = result.sort(0, true);
  const before = result.arrangement;
  worker.tell({ kind: "answer", ask: 1, value: 10 });
  await sorting;
  expect(result.arrangement).toBeGreaterThan(before);
  void result.window(0, 3, [0]);
  expect(asksOf(worker)).toEqual(["run", "sort", "window"]);
});

test("rows that come below leave a window as it is; the end may move them", () => {
  const { result, worker } = begun();
  const before = result.arrangement;
  worker.tell({ kind: "progress", received: 20, shown: 20, bytes: 200 });
  expect(result.arrangement).toBe(before);
  worker.tell({ kind: "end" });
  expect(result.arrangement).toBeGreaterThan(before);
});
