import { appendFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { CDPSession, Page } from "playwright-core";
import { z } from "zod";
import { median } from "../../src/capacity/quantile.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { openBrowser, withPage } from "../support/browser.ts";
import { residentBytesOf } from "../support/process-stats.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

const positive = z.coerce.number().positive();

const options = z.strictObject({
  seconds: positive.default(3_600).describe("for how long the tail is open"),
  rate: positive.int().default(1_000).describe("rows a second"),
  everySeconds: positive.default(30).describe("between two looks at the page"),
  log: z.string().optional().describe("a file that gets each look at the page as a line of JSON"),
});
type Options = z.output<typeof options>;

/** At every look the page must show the newest rows, each once, in order and without a gap. */
export const benchmark = defineBenchmark({
  name: "web/tail",
  question:
    "When the live tail of Explore stays open under a steady stream of rows, does the page's memory stay flat, and does the " +
    "page keep up?",
  notMeasured:
    "A paused tail, one with opened rows, the network, and other browsers than chromium. Memory is what is left after a " +
    "garbage collection, so a page between two collections has more.",
  options,
  measures: {
    heap: { unit: "MB", better: "less", doc: "of the page once it holds its rows: JavaScript, DOM and buffers" },
    heapGrowth: { unit: "MB", better: "less", doc: "from there to the end; medians of the first and the last looks" },
    heapMost: { unit: "MB", better: "less", doc: "from there to the look with the largest heap" },
    nodes: { unit: "nodes", better: "less", doc: "of the DOM at the end, with those that are detached" },
    lag: { unit: "ms", better: "less", doc: "the newest row shown behind the newest one acknowledged, at most" },
    rows: { unit: "rows/s", better: "more", doc: "acknowledged" },
    server: { unit: "MB", better: "less", doc: "resident memory of the server and its children at the end" },
    serverGrowth: { unit: "MB", better: "less", doc: "from when the page holds its rows to the end" },
  },
  rounds: 1,
  open: async (given) => {
    const server = await startBenchServer({
      tables: [{ database: "default", name: TABLE, columns: COLUMNS }],
      // Extents are merged as in a server that a user starts: an hour makes tens of thousands of them.
      env: { ENGINE_WEB: "on", ENGINE_COMPACTION_POLL_SECS: "10" },
    });
    const browser = await openBrowser();
    const writer = new Writer(server.url, given.rate);
    let isWarm = false;
    const round = async (): Promise<Record<string, number>> => {
      const seconds = isWarm ? given.seconds : Math.min(given.seconds, WARM_UP_SECONDS);
      isWarm = true;
      return await withPage(browser, (page) => measure(page, { ...given, seconds, server, writer }));
    };
    return {
      sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }],
      close: async () => {
        await browser.close();
        await server.stop();
      },
    };
  },
});

const TABLE = "followed";
const COLUMNS = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "level", type: { kind: "string" } },
  { name: "message", type: { kind: "string" } },
  { name: "number", type: { kind: "long" } },
  { name: "path", type: { kind: "string" } },
  { name: "ms", type: { kind: "real" } },
] as const;

const WARM_UP_SECONDS = 5;
/** In a minute the page has more rows than it holds, and its code is compiled. */
const SETTLE_SECONDS = 60;
const BYTES_PER_MB = 1e6;

type Job = Options & { server: BenchServer; writer: Writer };

type Look = {
  second: number;
  /** Bytes after a garbage collection. */
  heap: number;
  javascript: number;
  nodes: number;
  listeners: number;
  serverBytes: number;
  shown: number;
  gaps: number;
  lagMs: number;
};

/** Follows the table for so many seconds, and looks at the page in between. */
async function measure(
  page: Page,
  { seconds, everySeconds, log, server, writer }: Job,
): Promise<Record<string, number>> {
  await page.goto(`${server.url}/ui/explore?table=${TABLE}&live=1`);
  await page.waitForSelector(".tail-open");
  const devtools = await page.context().newCDPSession(page);
  const startedMs = performance.now();
  const secondsSince = (): number => (performance.now() - startedMs) / 1_000;
  const before = writer.acknowledged;
  const writing = writer.write(seconds);
  const settled = Math.min(SETTLE_SECONDS, seconds / 4);
  const looks: Look[] = [];
  const every = Math.min(everySeconds, seconds / 4);
  // A look takes seconds where the machine is busy: those that fall due meanwhile are left out.
  for (let due = settled; due <= seconds; due += every * Math.max(1, Math.ceil((secondsSince() - due) / every))) {
    // An error of the writer ends the wait.
    await Promise.race([delay(Math.max(0, (due - secondsSince()) * 1_000)), writing]);
    const look = { second: Math.round(secondsSince()), ...(await lookAt(page, devtools, { server, writer })) };
    looks.push(look);
    if (log !== undefined) await appendFile(log, `${JSON.stringify(look)}\n`);
  }
  await writing;
  return { ...figuresOf(looks), rows: (writer.acknowledged - before) / seconds };
}

/** A page that draws ten times a second makes garbage between a collection and the count: several looks count together. */
const LOOKS_TOGETHER = 5;

function figuresOf(looks: readonly Look[]): Record<string, number> {
  const count = Math.min(LOOKS_TOGETHER, Math.ceil(looks.length / 2));
  const [first, last] = [looks.slice(0, count), looks.slice(-count)];
  const medianOf = (some: readonly Look[], value: (look: Look) => number): number => median(some.map(value));
  const mostOf = (value: (look: Look) => number): number => Math.max(...looks.map(value));
  const growth = (value: (look: Look) => number): number => medianOf(last, value) - medianOf(first, value);
  const heap = ({ heap: bytes }: Look): number => bytes / BYTES_PER_MB;
  const server = ({ serverBytes }: Look): number => serverBytes / BYTES_PER_MB;
  return {
    heap: medianOf(first, heap),
    heapGrowth: growth(heap),
    heapMost: mostOf(heap) - medianOf(first, heap),
    nodes: medianOf(last, ({ nodes }) => nodes),
    lag: mostOf(({ lagMs }) => lagMs),
    server: medianOf(last, server),
    serverGrowth: growth(server),
  };
}

type Shown = { state: string; numbers: number[]; gaps: number };

async function lookAt(
  page: Page,
  devtools: CDPSession,
  { server, writer }: Pick<Job, "server" | "writer">,
): Promise<Omit<Look, "second">> {
  const acknowledged = writer.acknowledged;
  const shown = await page.evaluate<Shown>(SHOWN);
  const lagMs = check(shown, { acknowledged, rate: writer.rate });
  // What the first one finds unreachable may hold parts of the DOM, which the second one frees.
  await devtools.send("HeapProfiler.collectGarbage");
  await devtools.send("HeapProfiler.collectGarbage");
  const usage: { usedSize: number; embedderHeapUsedSize?: number; backingStorageSize?: number } =
    await devtools.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await devtools.send("Memory.getDOMCounters");
  return {
    heap: usage.usedSize + (usage.embedderHeapUsedSize ?? 0) + (usage.backingStorageSize ?? 0),
    javascript: usage.usedSize,
    nodes,
    listeners: jsEventListeners,
    serverBytes: residentBytesOf(server.pid),
    shown: shown.numbers.length,
    gaps: shown.gaps,
    lagMs,
  };
}

/** As the page says of itself. */
const HELD_ROWS = 5_000;
/** Where other programs take the machine for a moment a tail is behind (`lag`); one that is further does not follow. */
const MOST_BEHIND_MS = 30_000;

/** How far the newest row shown is behind the newest one acknowledged before; throws where rows are missing. */
function check(
  { state, numbers, gaps }: Shown,
  { acknowledged, rate }: { acknowledged: number; rate: number },
): number {
  const [newest = -1] = numbers;
  const wrong = numbers.findIndex((number, i) => number !== newest - i);
  const lagMs = (Math.max(0, acknowledged - 1 - newest) / rate) * 1_000;
  const problem =
    (state === "Ended" && "it has ended") ||
    (gaps > 0 && `it has ${gaps} gaps`) ||
    (numbers.length > HELD_ROWS && `it holds ${numbers.length} rows`) ||
    (wrong !== -1 && `row ${numbers[wrong]} is at the place of row ${newest - wrong}`) ||
    (lagMs > MOST_BEHIND_MS && `it shows row ${newest} when row ${acknowledged - 1} was acknowledged`);
  if (problem !== false) throw new Error(`the live tail does not follow: ${problem}`);
  return lagMs;
}

/** What runs in the page, as a text: the types of a browser are not those of this program. */
const SHOWN = `({
  state: document.querySelector(".tail-state")?.textContent.trim() ?? "",
  numbers: [...document.querySelectorAll(".explore-rows .log-rest")].map((rest) => {
    return Number(/number=(\\d+)/.exec(rest.textContent)?.[1] ?? NaN);
  }),
  gaps: document.querySelectorAll(".explore-rows .log-gap").length,
})`;

/** Rows of a log, numbered from 0, in small requests one after the other: each has what fell due since the last one. */
class Writer {
  readonly rate: number;
  /** Rows. */
  acknowledged = 0;
  readonly #url: string;

  constructor(url: string, rate: number) {
    this.#url = url;
    this.rate = rate;
  }

  async write(seconds: number): Promise<void> {
    const startedMs = performance.now();
    const before = this.acknowledged;
    const all = Math.round(this.rate * seconds);
    for (;;) {
      const written = this.acknowledged - before;
      if (written >= all) return;
      const due = Math.min(all, Math.floor(((performance.now() - startedMs) / 1_000) * this.rate)) - written;
      if (due > 0) await this.#send(due);
      await delay(BETWEEN_REQUESTS_MS);
    }
  }

  async #send(count: number): Promise<void> {
    const at = new Date().toISOString();
    const lines = Array.from({ length: count }, (_, i) => JSON.stringify(rowOf(this.acknowledged + i, at)));
    const headers = { "Content-Type": "application/x-ndjson", "X-Table": TABLE };
    const answer = await fetch(`${this.#url}/v1/ingest`, { method: "POST", headers, body: lines.join("\n") });
    if (answer.status !== 200) throw new Error(`ingest: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    this.acknowledged += count;
  }
}

const BETWEEN_REQUESTS_MS = 50;

function rowOf(number: number, at: string): Record<string, unknown> {
  return {
    at,
    level: LEVELS[number % LEVELS.length],
    message: `request ${number} was answered by the host with the usual delay`,
    number,
    path: `/api/v1/things/${number % 1_000}/parts/${number}`,
    ms: (number % 977) / 8,
  };
}

const LEVELS = ["info", "info", "info", "warn", "error"];
