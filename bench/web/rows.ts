import type { Page } from "playwright-core";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { openBrowser, withPage } from "../support/browser.ts";
import { startBenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "web/rows",
  question:
    "How soon does the query page paint the first of very many rows, when has it all of them against a plain " +
    "`fetch().arrayBuffer()` of the same answer in the same browser, how long does it block, and how soon is the last row there?",
  notMeasured:
    "The network, which is this machine's own, and the query: the rows are made, not read. Typing, and other browsers than " +
    "chromium.",
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
  open: async ({ rows }) => {
    const server = await startBenchServer({
      tables: [{ database: "default", name: "t", columns: [{ name: "at", type: { kind: "timestamp" } }] }],
      env: { ENGINE_WEB: "on" },
    });
    const browser = await openBrowser();
    const sql = rowsOf(rows);
    const round = (): Promise<Record<string, number>> =>
      withPage(browser, (page) => measure(page, { url: server.url, sql, rows }));
    return {
      sides: [{ name: "engine", round }],
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

type Job = { url: string; sql: string; rows: number };

async function measure(page: Page, { url, sql, rows }: Job): Promise<Record<string, number>> {
  await page.goto(`${url}/ui/query`);
  await page.waitForSelector(".cm-content");
  await page.evaluate(IN_PAGE);
  const fetchAll = `bench.fetchAll(${JSON.stringify(sql)})`;
  // Once before: both read an answer that is made anew, with code that is warm.
  await page.evaluate(fetchAll);
  const plain = await page.evaluate<number>(fetchAll);
  await page.locator(".query-bar select").nth(1).selectOption("0");
  await page.locator(".cm-content").fill(sql);
  await page.evaluate("bench.watchTasks()");
  // The worker's own request: how long the rows take to be made differs from one time to the next.
  const asked = page.waitForResponse((response) => response.url().endsWith("/v1/query"));
  const times = await page.evaluate<{ firstAt: number; all: number; status: string }>("bench.runAndWatch()");
  const { startTime, responseStart } = (await asked).request().timing();
  const longest = await page.evaluate<number>("bench.longest");
  if (!times.status.replaceAll(",", "").startsWith(`${rows} rows`)) {
    throw new Error(`the page has not all rows: ${times.status}`);
  }
  await page.locator(".grid").focus();
  const jump = await page.evaluate<number>(`bench.jumpToEnd("${rows - 1}")`);
  const { firstAt, all } = times;
  return { first: firstAt - (startTime + responseStart), all, fetch: plain, ratio: all / plain, longest, jump };
}

/** What runs in the page, as texts: the types of a browser are not those of this program. */
const IN_PAGE = `
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
    /** Presses Run, and looks at every frame: when the first row is painted, and how long it takes until all are there. */
    async runAndWatch() {
      const startedMs = performance.now();
      const text = (selector) => document.querySelector(selector)?.textContent ?? "";
      document.querySelector(".query-bar .button-primary").click();
      let firstAt;
      while (performance.now() - startedMs < 120000) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        if (firstAt === undefined && text(".grid-cell") !== "") firstAt = performance.timeOrigin + performance.now();
        const isRunning = document.querySelector(".query-bar .button-danger") !== null;
        if (firstAt !== undefined && !isRunning) {
          return { firstAt, all: performance.now() - startedMs, status: text(".result-status") };
        }
      }
      throw new Error("no rows: " + text(".result"));
    },
    /** Until the cell with the last number is painted. */
    async jumpToEnd(last) {
      const startedMs = performance.now();
      const press = (key) =>
        document
          .querySelector(".grid")
          .dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
      press("ArrowDown");
      while (performance.now() - startedMs < 30000) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const cells = [...document.querySelectorAll(".grid-cell")];
        if (cells.some(({ textContent }) => textContent === last)) return performance.now() - startedMs;
      }
      throw new Error("the last row does not come");
    },
  };
`;
