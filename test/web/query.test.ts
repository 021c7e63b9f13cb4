import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, LOOKS, startBrowser, visit, type Look, type Visit } from "./browser.test-kit.ts";

const lacks = lacking("chromium");

let browser: Browser;
let engine: Engine;
let removeHome: () => Promise<void>;
const visits: Visit[] = [];

async function open(look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  await opened.page.goto("/ui/query");
  await opened.page.getByRole("textbox", { name: "Query" }).waitFor();
  return opened;
}

/** In the place of what is there, as one who pastes does. */
async function write(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Query" }).click();
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+v");
}

async function run({ page }: Visit, text: string): Promise<void> {
  await write(page, text);
  await page.keyboard.press("Control+Enter");
}

/** The texts of the cells of a row, from 1. */
async function cells({ page }: Visit, row: number): Promise<(string | null)[]> {
  const all = page.locator(`.grid-row[aria-rowindex="${row + 1}"] .grid-cell`);
  await all.first().waitFor();
  await expect.poll(async () => (await all.allTextContents()).every((text) => text !== "")).toBe(true);
  return await all.allTextContents();
}

describe.skipIf(lacks !== undefined)(`the query page${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  beforeAll(async () => {
    browser = await startBrowser();
    const { home, remove } = await temporaryHome();
    removeHome = remove;
    engine = await startEngine({ home });
    const rows = Array.from({ length: 50 }, (_, n) =>
      JSON.stringify({ n, level: ["info", "warn"][n % 2], more: { n } }),
    );
    await ingest(engine.url, "events", rows.join("\n"));
  });
  afterEach(async () => {
    for (const one of visits.splice(0)) await one.end();
  });
  afterAll(async () => {
    await browser?.close();
    await engine?.stop();
    await removeHome?.();
  });

  describe.each(LOOKS)("$scheme, $width wide", (look) => {
    test("rows, a value, a chart and a plan", async () => {
      const opened = await open(look);
      const { page } = opened;
      await checkAccessible(page);
      await run(opened, "SELECT CAST(n AS BIGINT) AS n, level, more FROM events ORDER BY 1");
      expect(await cells(opened, 1)).toEqual(["0", "info", '{"n":0}']);
      await checkAccessible(page);
      await checkFits(page);
      await page.getByRole("gridcell", { name: '{"n":0}' }).dblclick();
      await page.getByRole("dialog", { name: "more, row 1" }).getByText("1 member").waitFor();
      await checkAccessible(page);
      await page.keyboard.press("Escape");
      await page.getByRole("tab", { name: "Chart" }).click();
      await page.getByRole("img", { name: "n over n" }).or(page.getByText("Nothing to draw")).waitFor();
      await checkAccessible(page);
      await page.getByRole("button", { name: "Explain" }).click();
      await page.getByRole("region", { name: "Plan" }).getByText("What it reads").waitFor();
      await checkAccessible(page);
    });
  });

  test("64-bit integers and nanoseconds are exact, and a million rows are walked by keys", async () => {
    const opened = await open();
    const { page } = opened;
    await page.getByRole("combobox", { name: "Most rows" }).selectOption("0");
    await run(
      opened,
      "SELECT i, 9007199254740992 + i AS big, make_timestamp_ns(1700000000000000000 + i) AS at FROM range(1000000) r(i)",
    );
    await page.getByText(/^1,000,000 rows · /).waitFor({ timeout: 30_000 });
    expect(await cells(opened, 2)).toEqual(["1", "9007199254740993", "2023-11-14T22:13:20.000000001Z"]);
    await page.getByRole("grid").focus();
    await page.keyboard.press("Control+End");
    expect(await cells(opened, 1_000_000)).toEqual(["999999", "9007199255740991", "2023-11-14T22:13:20.000999999Z"]);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("Control+c");
    await expect
      .poll(() => page.evaluate<string>("navigator.clipboard.readText()"))
      .toBe("9007199255740990\t2023-11-14T22:13:20.000999998Z");
    await page.getByRole("columnheader", { name: "big" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "big" }).getByRole("button").click();
    await page.locator('[aria-sort="descending"]').waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("Control+Home");
    await expect.poll(() => cells(opened, 1)).toEqual(["999999", "9007199255740991", "2023-11-14T22:13:20.000999999Z"]);
  });

  test("an error says where it is; what is selected runs alone; a query is stopped", async () => {
    const opened = await open();
    const { page, expectProblem } = opened;
    expectProblem("400");
    await run(opened, "SELECT nosuch FROM events");
    const failed = page.getByRole("alert");
    await failed
      .getByText(/nosuch/)
      .first()
      .waitFor();
    await failed.getByText("At line 1, column 8.").waitFor();
    await run(opened, "SELECT 'first' AS a;\nSELECT 'second' AS a;");
    expect(await cells(opened, 1)).toEqual(["second"]);
    await page.getByRole("textbox", { name: "Query" }).press("Control+Home");
    await page.keyboard.press("Control+Enter");
    await expect.poll(() => cells(opened, 1)).toEqual(["first"]);
    await run(opened, "SELECT count(*) FROM range(100000000000) r(i) WHERE hash(i) = 1");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/stopped/).waitFor();
    await page.getByRole("button", { name: "Run" }).waitFor();
  });

  test("tabs, the address and the history bring back what was written", async () => {
    const opened = await open();
    const { page } = opened;
    await run(opened, "SELECT 'in the address' AS a");
    await cells(opened, 1);
    await expect.poll(() => page.url()).toContain("#q=");
    const address = page.url();
    await page.getByRole("button", { name: "New tab" }).click();
    await expect.poll(() => page.url()).not.toContain("#q=");
    await write(page, "SELECT 'another'");
    await expect.poll(() => page.url()).toContain("#q=");
    await page.reload();
    await page.getByRole("tab", { name: /in the address/ }).waitFor();
    await expect.poll(() => page.getByRole("textbox", { name: "Query" }).textContent()).toBe("SELECT 'another'");

    const other = await open();
    await other.page.goto(address);
    await other.page.reload();
    await expect
      .poll(() => other.page.getByRole("textbox", { name: "Query" }).textContent())
      .toBe("SELECT 'in the address' AS a");
    await other.page.getByRole("button", { name: "Earlier queries" }).click();
    await other.page
      .getByRole("button", { name: /SELECT 'in the address' AS a/ })
      .first()
      .waitFor();
    await checkAccessible(other.page);
    await other.page.keyboard.press("Escape");
    await other.page.getByRole("button", { name: "Save" }).click();
    await other.page.getByRole("textbox", { name: "Name" }).fill("The address");
    await other.page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await other.page.getByRole("tab", { name: "The address" }).waitFor();
  });

  test("a run is in the history once, whatever is done with its rows, and is opened with its database", async () => {
    const opened = await open();
    const { page } = opened;
    await ingest(engine.url, "elsewhere", '{"n":1}', { "X-Database": "logs" });
    await page.goto("/ui/query?db=logs");
    const text = "SELECT count(*) AS n FROM elsewhere";
    await run(opened, text);
    expect(await cells(opened, 1)).toEqual(["1"]);
    const entries = page.getByRole("button", { name: text });
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await entries.first().waitFor();
    await page.keyboard.press("Escape");
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") asked.push(new URL(request.url()).pathname);
    });
    await page.getByRole("columnheader", { name: "n" }).getByRole("button").click();
    await page.locator('[aria-sort="ascending"]').waitFor();
    await page.getByRole("searchbox", { name: "Search the rows" }).fill("nothing like it");
    await page.getByText("0 found").waitFor();
    // The history is read again after each run, also while it is fresh.
    await run(opened, `${text} WHERE true`);
    expect(await cells(opened, 1)).toEqual(["1"]);
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await page.getByRole("button", { name: `${text} WHERE true` }).waitFor();
    expect(await entries.count()).toBe(2);
    expect(asked).toEqual(["/v1/query", "/v1/query-history"]);
    await page.keyboard.press("Escape");
    await page.goto("/ui/query?db=default");
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await page.getByRole("button", { name: `${text} WHERE true` }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get("db")).toBe("logs");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    expect(await cells(opened, 1)).toEqual(["1"]);
  });

  test("all rows are downloaded as a file", async () => {
    const opened = await open();
    const { page } = opened;
    await run(opened, "SELECT 'in the file' AS a");
    await cells(opened, 1);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    await page.getByRole("menuitem", { name: "CSV" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe("rows.csv");
    expect(await readFile(await file.path(), "utf8")).toMatch(/^a\r?\nin the file\r?\n$/);
  });

  test("a text that is packed slowly does not reach the address of the next page", async () => {
    const opened = await open();
    const { page } = opened;
    await page.addInitScript(`{
      const Own = CompressionStream;
      globalThis.packed = 0;
      globalThis.CompressionStream = function (format) {
        const slow = new TransformStream({ flush: () => new Promise((resolve) => setTimeout(resolve, 1000)) });
        const { readable, writable } = new Own(format);
        const done = new TransformStream({ flush: () => void setTimeout(() => globalThis.packed++, 50) });
        slow.readable.pipeTo(writable);
        return { writable: slow.writable, readable: readable.pipeThrough(done) };
      };
    }`);
    await page.reload();
    await write(page, "SELECT 'slow'");
    await page.getByRole("tab", { name: /slow/ }).waitFor();
    await page.getByRole("link", { name: "Catalog", exact: true }).click();
    await expect.poll(() => page.evaluate("globalThis.packed")).toBeGreaterThan(0);
    const { pathname, hash } = new URL(page.url());
    expect([pathname, hash]).toEqual(["/ui/catalog", ""]);
  });

  test("names are completed, and a table of the list is looked at", async () => {
    const opened = await open();
    const { page } = opened;
    const editor = page.getByRole("textbox", { name: "Query" });
    await editor.pressSequentially("SELECT * FROM ev", { delay: 30 });
    await page.getByRole("option", { name: /^events/ }).click();
    await expect.poll(() => editor.textContent()).toBe("SELECT * FROM events");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Look at events" }).click();
    await page.getByText(/^50 rows · /).waitFor();
  });
});
