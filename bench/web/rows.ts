import { join } from "node:path";
import type { Page } from "playwright-core";
import { z } from "zod";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { openBrowser, withPage } from "../support/browser.ts";
import { startBenchServer } from "../support/server.ts";
import { buildPeer, openPeer } from "./hightable-peer.ts";

const count = z.coerce.number().int().positive();

/** The peer shows what the query page shows: hightable under React, with rows that come as a stream (`hightable/page.js`). */
export const benchmark = defineBenchmark({
  name: "web/rows",
  question:
    "How soon does the query page paint the first of very many rows, when has it all of them against a plain " +
    "`fetch().arrayBuffer()` of the same answer in the same browser, how long does it block, and how soon is the last row there?",
  notMeasured:
    "The network, which is this machine's own, and the query: the rows are made, not read. Typing, and other browsers than " +
    "chromium. The peer's page has nothing but the table: no editor, no worker, no search, no order by columns.",
  options: z.strictObject({ rows: count.default(1_000_000) }),
  measures: {
    first: { unit: "ms", better: "less", doc: "from the answer's head until rows are painted" },
    all: { unit: "ms", better: "less", doc: "until the page says that all rows are there" },
    fetch: { unit: "ms", better: "less", doc: "until a plain fetch has the same bytes" },
    ratio: { unit: "ratio", better: "less", doc: "the page's time for all rows against the fetch's" },
    longest: { unit: "ms", better: "less", doc: "the longest task of the page while rows come" },
    jump: { unit: "ms", better: "less", doc: "from Ctrl-Down until the last row is painted" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ rows }, { folder }) => {
    const peerFolder = join(folder, "hightable");
    await buildPeer(peerFolder);
    const server = await startBenchServer({
      tables: [{ database: "default", name: "t", columns: [{ name: "at", type: { kind: "timestamp" } }] }],
      env: { ENGINE_WEB: "on" },
    });
    const browser = await openBrowser();
    const sql = rowsOf(rows);
    const sideOf = (name: string, view: View): Side => {
      const once = (): Promise<Measured> => withPage(browser, (page) => measure(page, view, { sql, rows }));
      return { name, answers: async () => (await once()).answers, round: async () => (await once()).figures };
    };
    return {
      sides: [sideOf("engine", queryPage(server.url)), sideOf("hightable", hightablePage(server.url, peerFolder))],
      close: async () => {
        await browser.close();
        await server.stop();
      },
    };
  },
});

/** Nine columns of the usual types, some 180 bytes a row. */
function rowsOf(rows: number): string {
  return (
    "SELECT make_timestamp_ns(1700000000000000000 + i * 1000003) AS at, i AS id, i * 7919 AS big, i / 7 AS real, " +
    "i % 2 = 0 AS flag, ['info', 'warn', 'error'][i % 3 + 1] AS level, " +
    "'request ' || i || ' was answered by the host with the usual delay' AS message, " +
    "'/api/v1/things/' || (i % 1000) || '/parts/' || i AS path, md5(CAST(i AS VARCHAR)) AS trace " +
    `FROM range(${rows}) r(i)`
  );
}

type Job = { sql: string; rows: number };
type Answers = { rows: number; first: string; last: string };
type Measured = { figures: Record<string, number>; answers: Answers };

/** A page that shows rows. Texts run in it: the types of a browser are not those of this program. */
type View = {
  /** Until it can be asked. */
  open: (page: Page, sql: string) => Promise<void>;
  /** Asks for the rows. */
  run: (sql: string) => string;
  /** How many rows the page says it has; undefined while more come. */
  rows: (expected: number) => string;
  /** Selectors of cells, and of what hears keys. */
  cell: string;
  keys: string;
};

function queryPage(url: string): View {
  return {
    open: async (page, sql) => {
      await page.goto(`${url}/ui/query`);
      await page.waitForSelector(".cm-content");
      await page.locator(".query-bar select").nth(1).selectOption("0");
      await page.locator(".cm-content").fill(sql);
    },
    run: () => `document.querySelector(".query-bar .button-primary").click()`,
    rows: () => `document.querySelector(".query-bar .button-danger") === null
      ? Number(/^[0-9,]+/.exec(document.querySelector(".result-status")?.textContent ?? "")?.[0].replaceAll(",", ""))
      : undefined`,
    cell: ".grid-cell",
    keys: ".grid",
  };
}

function hightablePage(url: string, folder: string): View {
  const shown = `Number(document.querySelector("table")?.ariaRowCount ?? 1) - 1`;
  return {
    open: async (page) => await openPeer(page, url, folder),
    run: (sql) => `void peer.run(${JSON.stringify(sql)})`,
    rows: (expected) => `${shown} === ${expected} ? ${expected} : undefined`,
    cell: "td[role=cell]",
    keys: "td[role=cell]",
  };
}

/** Of a machine that is busy with other work. */
const PATIENCE_MS = 120_000;

async function measure(page: Page, view: View, { sql, rows }: Job): Promise<Measured> {
  await view.open(page, sql);
  await page.evaluate(inPage(view, { sql, rows }));
  const fetchAll = `bench.fetchAll(${JSON.stringify(sql)})`;
  // Once before: both read an answer that is made anew, with code that is warm.
  await page.evaluate(fetchAll);
  const fetch = await page.evaluate<number>(fetchAll);
  // What those two have left, twice the answer, is not collected while the page works.
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  await devtools.detach();
  await page.evaluate("bench.watchTasks()");
  // The page's own request: how long the rows take to be made differs from one time to the next.
  const asked = page.waitForResponse((response) => response.url().endsWith("/v1/query"), { timeout: PATIENCE_MS });
  const times = await page.evaluate<{ firstAt: number; all: number; rows: number }>("bench.runAndWatch()");
  const { startTime, responseStart } = (await asked).request().timing();
  const longest = await page.evaluate<number>("bench.longest");
  const first = await page.evaluate<string>(`bench.messages().at(0) ?? ""`);
  const jump = await page.evaluate<number>(`bench.jumpToEnd("${rows - 1}")`);
  const last = await page.evaluate<string>(`bench.messages().at(-1) ?? ""`);
  const answers = { rows: times.rows, first, last };
  if (times.rows !== rows || !first.startsWith("request 0 ") || !last.startsWith(`request ${rows - 1} `)) {
    throw new Error(`the page has not all rows: ${JSON.stringify(answers)}`);
  }
  const { firstAt, all } = times;
  const figures = { first: firstAt - (startTime + responseStart), all, fetch, ratio: all / fetch, longest, jump };
  return { figures, answers };
}

/** What runs in the page. */
const inPage = ({ run, rows: shown, cell, keys }: View, { sql, rows }: Job): string => `
  globalThis.bench = {
    longest: 0,
    watchTasks() {
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) this.longest = Math.max(this.longest, duration);
      }).observe({ entryTypes: ["longtask"] });
    },
    /** Until all bytes have come. */
    async fetchAll(body) {
      const startedMs = performance.now();
      const headers = { "X-Engine-Web": "1", Accept: "application/vnd.apache.arrow.stream" };
      const answer = await fetch("/v1/query", { method: "POST", body, headers });
      await answer.arrayBuffer();
      return performance.now() - startedMs;
    },
    /** Texts of the column "message", by row. */
    messages() {
      const texts = [...document.querySelectorAll("${cell}")].map(({ textContent }) => textContent);
      return texts.filter((text) => text.startsWith("request "));
    },
    /** Asks, and looks at every frame: when the first row is painted, and how long it takes until all are there. */
    async runAndWatch() {
      const startedMs = performance.now();
      ${run(sql)};
      let firstAt;
      while (performance.now() - startedMs < ${PATIENCE_MS}) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const isPainted = (document.querySelector("${cell}")?.textContent ?? "") !== "";
        if (firstAt === undefined && isPainted) firstAt = performance.timeOrigin + performance.now();
        const rows = ${shown(rows)};
        if (firstAt !== undefined && rows !== undefined) return { firstAt, all: performance.now() - startedMs, rows };
      }
      throw new Error("no rows: " + document.body.textContent.slice(0, 2000));
    },
    /** Until the cell with the last number is painted; the peer writes numbers with commas. */
    async jumpToEnd(last) {
      const place = document.querySelector("${keys}");
      place.focus();
      const startedMs = performance.now();
      const key = { key: "ArrowDown", ctrlKey: true, bubbles: true, cancelable: true };
      place.dispatchEvent(new KeyboardEvent("keydown", key));
      while (performance.now() - startedMs < 30000) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const cells = [...document.querySelectorAll("${cell}")];
        if (cells.some(({ textContent }) => textContent.replaceAll(",", "") === last)) return performance.now() - startedMs;
      }
      throw new Error("the last row does not come");
    },
  };
`;
