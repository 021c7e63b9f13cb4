import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, LOOKS, startBrowser, visit, type Look, type Visit } from "./browser.test-kit.ts";

/** The pages Explore and Catalog, at a server with rows of the last half hour. */
const lacks = lacking("chromium");
const ROWS = 1_200;

let browser: Browser;
let engine: Engine;
let remove: () => Promise<void>;
const visits: Visit[] = [];

async function open(look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  return opened;
}

function rowsOf(count: number): string {
  const nowMs = Date.now();
  return Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      at: new Date(nowMs - (i + 1) * 1_000).toISOString(),
      level: i % 10 === 0 ? "error" : "info",
      body: `row ${i}`,
      ctx: { user: { name: i % 4 === 0 ? "it's Zoë" : "Ann" }, id: "9007199254740993" },
    }),
  ).join("\n");
}

describe.skipIf(lacks !== undefined)(`explore and catalog${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  beforeAll(async () => {
    browser = await startBrowser();
    const place = await temporaryHome();
    remove = place.remove;
    engine = await startEngine({ home: place.home });
    await ingest(engine.url, "events", rowsOf(ROWS), { "X-Engine-Infer-Types": "true" });
  });
  afterEach(async () => {
    for (const one of visits.splice(0)) await one.end();
  });
  afterAll(async () => {
    await browser?.close();
    await engine?.stop();
    await remove?.();
  });

  describe.each(LOOKS)("$scheme, $width wide", (look) => {
    test("rows, their fields and their values", async () => {
      const { page } = await open(look);
      await page.goto("/ui/explore");
      await page.getByText("1,200 rows").waitFor();
      await page.getByRole("button", { name: /row 0 / }).click();
      await page.getByRole("button", { name: "Count the values of ctx.user.name" }).click();
      await page.getByRole("button", { name: /^Ann/ }).waitFor();
      await checkAccessible(page);
      await checkFits(page);
      await page.getByRole("button", { name: /^Time range/ }).click();
      await page.getByRole("button", { name: "Last 6 hours" }).waitFor();
      await checkAccessible(page);
    });

    test("tables, and one of them", async () => {
      const { page } = await open(look);
      await page.goto("/ui/catalog");
      await page.getByRole("button", { name: "events" }).click();
      await page.getByRole("row", { name: /^ctx dynamic/ }).waitFor();
      await checkAccessible(page);
      await checkFits(page);
      for (const [part, text] of [
        ["Extents", /tlm: \d+ extent/],
        ["Snapshots", "Query as of 1"],
        ["Send a file", "Choose a file"],
      ] as const) {
        await page.getByRole("tab", { name: part }).click();
        await page.getByText(text, { exact: typeof text === "string" }).waitFor();
        await checkAccessible(page);
        await checkFits(page);
      }
    });
  });

  test("filters and facets are in the address, and become a query", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events");
    await page.getByRole("button", { name: /row 0 / }).click();
    await page.getByRole("button", { name: "Filter for this value of ctx.user.name" }).click();
    await page.getByText("300 rows").waitFor();
    await page.getByLabel("Condition in SQL").fill("level = 'error' -- or so");
    await page.keyboard.press("Enter");
    await page.getByText("60 rows").waitFor();
    await page.reload();
    await page.getByText("60 rows").waitFor();
    await page.getByRole("button", { name: "Open as query" }).click();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/^60 rows ·/).waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/query");
    await page.goBack();
    await page.getByRole("button", { name: "Remove the filter ctx.user.name = it's Zoë" }).click();
    await page.getByText("120 rows").waitFor();
    await page.getByLabel("Condition in SQL").fill("nowhere = 1");
    await page.keyboard.press("Enter");
    visits[0]?.expectProblem("400");
    await page.getByText("The rows could not be read.").waitFor();
  });

  test("older rows come when they are asked for, and rows around one", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events");
    await page.locator(".log").nth(400).waitFor({ state: "attached" });
    for (const more of [900, 1_190]) {
      await page.getByRole("button", { name: "Older rows" }).click();
      await page.locator(".log").nth(more).waitFor({ state: "attached" });
    }
    await page.getByText("These are all rows of the range.").waitFor();
    expect(await page.locator(".log").count()).toBe(ROWS);
    await page.getByRole("button", { name: /row 100 / }).click();
    await page.getByRole("button", { name: "Rows around it" }).click();
    const dialog = page.getByRole("dialog", { name: /^Rows around/ });
    await dialog.getByText("20 rows before, 20 rows after").waitFor();
    expect(await dialog.locator(".log-marked").textContent()).toContain("row 100");
    await checkAccessible(page);
  });

  test("rows that are committed come live, wait during a pause, and pass the filters", async () => {
    const { page } = await open();
    const filters = JSON.stringify([{ column: "body", keys: [], op: "contains", value: "it's" }]);
    await page.goto(`/ui/explore?table=events&live=1&filters=${encodeURIComponent(filters)}`);
    await page.getByText("Live", { exact: true }).nth(1).waitFor();
    await ingest(engine.url, "events", '{"body":"IT\'S one"}\n{"body":"another"}');
    await page.getByText("IT'S one").waitFor();
    await checkAccessible(page);
    await page.getByRole("button", { name: "Pause" }).click();
    await ingest(engine.url, "events", '{"body":"it\'s two"}');
    await page.getByText("1 waiting").waitFor();
    expect(await page.getByText("it's two").count()).toBe(0);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("it's two").waitFor();
    expect(await page.locator(".log").count()).toBe(2);
  });

  test("a file is stored once, however often it is sent; a bad line is named", async () => {
    const { page, expectProblem } = await open();
    expectProblem("400");
    await page.goto("/ui/catalog?table=sent");
    const input = page.getByLabel("A file of NDJSON");
    const lines = Array.from({ length: 60_000 }, (_, i) => JSON.stringify({ n: i, body: "x".repeat(90) }));
    const file = { name: "a.ndjson", mimeType: "", buffer: Buffer.from(lines.join("\n")) };
    await input.setInputFiles(file);
    await page.getByText("60,000 rows stored").waitFor();
    const asked = await fetch(`${engine.url}/v1/query`, { method: "POST", body: "SELECT count(*) AS n FROM sent" });
    expect(await asked.json()).toEqual({ n: 60_000 });
    const bad = { name: "b.ndjson", mimeType: "", buffer: Buffer.from('{"n":1}\nnope\n{"n":2}\n') };
    await input.setInputFiles(bad);
    await page.getByText("Lines 1 to 3 are not stored: line 2 of the file").waitFor();
    await checkAccessible(page);
    await page.getByLabel("Leave out lines that are not JSON").check();
    await input.setInputFiles(bad);
    await page.getByText("Line 2 is left out").waitFor();
    await page.getByText("2 rows stored", { exact: false }).last().waitFor();
    await input.setInputFiles({ name: "c.csv", mimeType: "", buffer: Buffer.from("a,b\n1,2\n") });
    await page.getByText("The file is not NDJSON").waitFor();
  });

  test("an upload that lost the server goes on, and nothing is stored twice", async () => {
    const { page, expectProblem } = await open();
    expectProblem("Failed to load resource");
    // The server stores the second piece, but its answer is lost.
    let asked = 0;
    await page.route("**/v1/ingest", async (route) => {
      asked++;
      if (asked !== 2) return await route.continue();
      await route.fetch();
      await route.abort();
    });
    await page.goto("/ui/catalog?table=resumed");
    const lines = Array.from({ length: 90_000 }, (_, i) => JSON.stringify({ n: i, body: "y".repeat(90) }));
    await page
      .getByLabel("A file of NDJSON")
      .setInputFiles({ name: "r.ndjson", mimeType: "", buffer: Buffer.from(lines.join("\n")) });
    await page.getByText(/90,000 rows stored, 1 piece had been stored before/).waitFor();
    const counted = await fetch(`${engine.url}/v1/query`, {
      method: "POST",
      body: "SELECT count(*) AS n, count(DISTINCT n) AS d FROM resumed",
    });
    expect(await counted.json()).toEqual({ n: 90_000, d: 90_000 });
  });
});
