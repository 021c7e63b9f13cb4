import type { Browser, Page } from "playwright-core";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { openBrowser, WINDOW, withPage } from "../support/browser.ts";
import { startBenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "web/load",
  question:
    "How soon is a page there on a slow machine behind a slow line, how much does it move while it comes, and how soon does " +
    "completion answer in a large schema?",
  notMeasured:
    "A second visit, whose files the browser has. The slow machine and line are chromium's own imitation: the processor is " +
    "held back by a factor, and the line has a rate and a delay.",
  options: z.strictObject({
    tables: count.default(300),
    columns: count.default(2_000).describe("of each table"),
    slower: count.default(4).describe("times that the processor is held back"),
    kbit: count.default(1_600).describe("a second"),
    delayMs: count.default(150),
  }),
  measures: {
    signInPaint: { unit: "ms", better: "less", doc: "until the largest part of the sign-in page is painted" },
    signInShift: { unit: "ratio", better: "less", doc: "by how much of the window the sign-in page moved" },
    queryPaint: { unit: "ms", better: "less", doc: "until the largest part of the query page is painted" },
    queryShift: { unit: "ratio", better: "less", doc: "by how much of the window the query page moved" },
    editor: { unit: "ms", better: "less", doc: "until the query page's editor takes a text" },
    completion: {
      unit: "ms",
      better: "less",
      doc: "from Ctrl-Space after a column's first letters until its name is shown, on the machine as it is",
    },
  },
  rounds: 5,
  open: async ({ tables, columns, ...slow }) => {
    const server = await startBenchServer({
      tables: Array.from({ length: tables }, (_, t) => ({
        database: "default",
        name: `table_${t}`,
        columns: Array.from({ length: columns }, (_each, c) => ({
          name: `column_${c}`,
          type: { kind: "long" } as const,
        })),
      })),
      env: { ENGINE_WEB: "on" },
    });
    const browser = await openBrowser();
    const last = { table: `table_${tables - 1}`, column: `column_${columns - 1}` };
    const round = async (): Promise<Record<string, number>> => {
      const signIn = await onSlow(
        browser,
        slow,
        async (page) => await painted(page, `${server.url}/ui/sign-in`, "form"),
      );
      const query = await onSlow(browser, slow, async (page) => {
        return await painted(page, `${server.url}/ui/query`, ".cm-content");
      });
      return {
        signInPaint: signIn.paintMs,
        signInShift: signIn.shift,
        queryPaint: query.paintMs,
        queryShift: query.shift,
        editor: query.readyMs,
        completion: await withPage(browser, (page) => completion(page, server.url, last)),
      };
    };
    return {
      sides: [{ name: "engine", round }],
      close: async () => {
        await browser.close();
        await server.stop();
      },
    };
  },
});

type Slow = { slower: number; kbit: number; delayMs: number };
type Painted = { paintMs: number; shift: number; readyMs: number };

/** In a browser that has nothing of the page yet. */
async function onSlow<T>(
  browser: Browser,
  { slower, kbit, delayMs }: Slow,
  work: (page: Page) => Promise<T>,
): Promise<T> {
  const context = await browser.newContext(WINDOW);
  try {
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    const bytesPerSecond = (kbit * 1_000) / 8;
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: slower });
    await devtools.send("Network.enable");
    await devtools.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: delayMs,
      downloadThroughput: bytesPerSecond,
      uploadThroughput: bytesPerSecond,
    });
    return await work(page);
  } finally {
    await context.close();
  }
}

/** How long the page may still move after what was waited for is there. */
const SETTLES_MS = 1_000;

async function painted(page: Page, url: string, ready: string): Promise<Painted> {
  await page.addInitScript(WATCH);
  await page.goto(url, { waitUntil: "commit" });
  await page.waitForSelector(ready, { timeout: 60_000 });
  const readyMs = await page.evaluate<number>("performance.now()");
  await page.waitForTimeout(SETTLES_MS);
  const { paintMs, shift } = await page.evaluate<{ paintMs: number; shift: number }>("watched");
  return { paintMs, shift, readyMs };
}

/** What runs in the page, as a text: the types of a browser are not those of this program. */
const WATCH = `
  globalThis.watched = { paintMs: 0, shift: 0 };
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) watched.paintMs = startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) watched.shift += value;
  }).observe({ type: "layout-shift", buffered: true });
`;

async function completion(
  page: Page,
  url: string,
  { table, column }: { table: string; column: string },
): Promise<number> {
  await page.goto(`${url}/ui/query`);
  const editor = page.locator(".cm-content");
  await editor.fill(`SELECT  FROM ${table}`);
  await page.keyboard.press("Control+Home");
  for (let i = 0; i < "SELECT ".length; i++) await page.keyboard.press("ArrowRight");
  await page.keyboard.type(column.slice(0, -1));
  await page.keyboard.press("Escape");
  // Once before: the schema is read when it is first needed, which is what the line takes.
  for (let i = 0; ; i++) {
    const ms = await page.evaluate<number>(`(${ASK_COMPLETION})(${JSON.stringify(column)})`);
    if (i > 0) return ms;
    await page.keyboard.press("Escape");
    await page.waitForSelector(".cm-tooltip-autocomplete", { state: "detached" });
  }
}

const ASK_COMPLETION = `async (column) => {
  const startedMs = performance.now();
  const editor = document.querySelector(".cm-content");
  editor.dispatchEvent(new KeyboardEvent("keydown", { key: " ", code: "Space", ctrlKey: true, bubbles: true, cancelable: true }));
  while (performance.now() - startedMs < 60000) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const shown = [...document.querySelectorAll(".cm-completionLabel")].map(({ textContent }) => textContent);
    if (shown.includes(column)) return performance.now() - startedMs;
  }
  throw new Error("no completion: " + document.querySelector(".cm-tooltip-autocomplete")?.textContent);
}`;
