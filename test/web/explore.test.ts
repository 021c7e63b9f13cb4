import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, LOOKS, startBrowser, visit, type Look, type Visit } from "./browser.test-kit.ts";

/** The pages Explore and Catalog, at a server with rows of the last half hour. */
const lacks = lacking("chromium");
const ROWS = 1_200;
/** Fewer than compaction merges. */
const EXTENTS = 10;

let browser: Browser;
let engine: Engine;
let remove: () => Promise<void>;
const visits: Visit[] = [];

async function open(look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  return opened;
}

async function query(text: string): Promise<Record<string, unknown>[]> {
  const response = await fetch(`${engine.url}/v1/query`, {
    method: "POST",
    body: text,
    headers: { Accept: "application/x-ndjson" },
  });
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const BUDGET = "x-engine-max-object-store-bytes";

/** Answers the page's counts under a budget of bytes, made of what one extent takes. */
async function countUnderBudget(page: Page, budgetOf: (extentBytes: number) => number): Promise<void> {
  await page.route("**/v1/explore", async (route) => {
    const headers = route.request().headers();
    const refused = await route.fetch({ headers: { ...headers, [BUDGET]: "1" } });
    const { error } = (await refused.json()) as { error: { budget: { used: number } } };
    await route.continue({ headers: { ...headers, [BUDGET]: String(Math.ceil(budgetOf(error.budget.used))) } });
  });
}

let parts: Promise<void> | undefined;

/** A table of several extents, made when a test first needs it: with one table the page needs no choice. */
function ingestParts(): Promise<void> {
  parts ??= (async () => {
    for (let extent = 0; extent < EXTENTS; extent++) {
      await ingest(engine.url, "parts", rowsOf(ROWS / EXTENTS), { "X-Engine-Infer-Types": "true" });
    }
  })();
  return parts;
}

/** The texts of the cells of a table, row by row. */
async function cellsOf(table: Locator): Promise<string[][]> {
  const rows = await table.getByRole("row").all();
  return await Promise.all(rows.map((row) => row.locator("th, td").allTextContents()));
}

/** The values of an open facet with what is counted for each. */
async function facetOf(page: Page, title: string): Promise<{ summary: string; values: string[][] }> {
  const facet = page.getByRole("region", { name: `Values of ${title}` });
  const summary = await facet.locator("p").textContent();
  const values = await facet.getByRole("listitem").all();
  const texts = values.map((value) => value.locator(".facet-text, .facet-count").allTextContents());
  return { summary: summary ?? "", values: await Promise.all(texts) };
}

function rowsOf(count: number): string {
  const nowMs = Date.now();
  return Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      at: new Date(nowMs - (i + 1) * 1_000).toISOString(),
      level: i % 10 === 0 ? "error" : "info",
      body: `row ${i}`,
      host: i % 3 === 0 ? undefined : `host ${i % 25}`,
      ctx: {
        user: { name: i % 4 === 0 ? "it's Zoë" : "Ann" },
        id: "9007199254740993",
        // In none of the rows that are read first.
        old: i >= 1_000 ? { "a.b": i } : undefined,
      },
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
      const filters = JSON.stringify([{ column: "level", keys: [], op: "=", value: "error" }]);
      await page.goto(`/ui/explore?filters=${encodeURIComponent(filters)}`);
      await page.getByText("120 rows").waitFor();
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
    // Both failures are at the first letter that was typed.
    await page.getByText("At line 1, column 1.").nth(1).waitFor();
  });

  test("the counts of each bar are those of a query", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events");
    await page.getByText("Counts as a table").click();
    const table = page.getByRole("region", { name: "Rows of each bar" }).getByRole("table");
    await expect.poll(async () => (await cellsOf(table))[0]).toEqual(["From", "Rows", "info", "error"]);
    const [, ...bars] = await cellsOf(table);
    const edges = await table
      .locator("time")
      .evaluateAll((all) => all.map((one) => one.getAttribute("datetime") ?? ""));
    const rows = await query("SELECT epoch_ms(at) AS ms, level FROM events WHERE body LIKE 'row %'");
    expect(rows).toHaveLength(ROWS);
    const expected = edges.map((edge, i) => {
      const next = edges[i + 1];
      const [from, to] = [Date.parse(edge), next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next)];
      const within = rows.filter(({ ms }) => from <= Number(ms) && Number(ms) < to);
      return [
        within.length,
        ...["info", "error"].map((level) => within.filter((row) => row["level"] === level).length),
      ];
    });
    expect(bars.map(([, ...counts]) => counts.map(Number))).toEqual(expected);
    await checkAccessible(page);
    // A bar becomes the range, without a pointer that draws.
    const fullest = expected.findIndex(([count = 0]) => count > 100);
    await table.getByRole("button").nth(fullest).press("Enter");
    await page.getByText(`${expected[fullest]?.[0]} rows`).waitFor();
    const { searchParams } = new URL(page.url());
    expect(Date.parse(searchParams.get("from") ?? "")).toBe(Date.parse(edges[fullest] ?? ""));
  });

  test("a part of the histogram that is drawn over becomes the range, in any zone", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events&by=-&zone=browser");
    await page.getByText("1,200 rows").waitFor();
    const plot = await page.locator(".u-over").boundingBox();
    if (plot === null) throw new Error("the chart has no plot");
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 20);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width - 1, plot.y + 20, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.has("from"));
    const { searchParams } = new URL(page.url());
    const [from, to] = [searchParams.get("from"), searchParams.get("to")];
    const counted = await query(`SELECT count(*) AS n FROM events WHERE at >= '${from}' AND at < '${to}'`);
    const n = Number(counted[0]?.["n"]);
    expect(n).toBeGreaterThan(0);
    await page.locator(".explore-facts strong", { hasText: `${n.toLocaleString("en-US")} rows` }).waitFor();
    await page.getByRole("button", { name: "Read again" }).click();
    await page.locator(".explore-facts strong", { hasText: `${n.toLocaleString("en-US")} rows` }).waitFor();
  });

  test("bars say that they begin in UTC where the zone has other days", async () => {
    const { page, context } = await open();
    const session = await context.newCDPSession(page);
    await session.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Kolkata" });
    for (const [range, note] of [
      ["from=now-50d&zone=browser", /, one bar per day of UTC$/],
      ["from=now-50d&zone=utc", /, one bar per day$/],
      ["from=now-1h&zone=browser", /, one bar per 2 minutes$/],
    ] as const) {
      await page.goto(`/ui/explore?table=events&${range}`);
      expect(await page.locator(".explore-facts strong").locator("..").textContent()).toMatch(note);
    }
  });

  test("a value that is not sent whole cannot be filtered for", async () => {
    const { page } = await open();
    await ingest(engine.url, "long", JSON.stringify({ at: new Date().toISOString(), body: "x".repeat(1_001) }));
    const facets = encodeURIComponent(JSON.stringify([{ column: "body", keys: [] }]));
    await page.goto(`/ui/explore?table=long&facets=${facets}`);
    const address = page.url();
    const choice = page.getByRole("button", { name: /^x+ 1$/ });
    expect(await choice.getAttribute("aria-disabled")).toBe("true");
    expect(await choice.getAttribute("title")).toBe("1 row. The value is too long to filter for.");
    await choice.click({ force: true });
    await page.getByRole("button", { name: /^Filter out x+$/ }).click({ force: true });
    expect(page.url()).toBe(address);
  });

  test("a facet has its values, how many there are, and the rows of others and of none", async () => {
    const { page } = await open();
    const asked: string[] = [];
    page.on("request", (request) => {
      if (new URL(request.url()).pathname === "/v1/explore") asked.push(request.postData() ?? "");
    });
    const facets = [
      { column: "host", keys: [] },
      { column: "ctx", keys: ["user", "name"] },
      { column: "gone", keys: [] },
    ];
    await page.goto(`/ui/explore?table=events&facets=${encodeURIComponent(JSON.stringify(facets))}`);
    await page.getByRole("button", { name: /^Ann/ }).waitFor();
    const top = await query("SELECT host, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC, host");
    const values = top.filter(({ host }) => host !== null).map(({ host, n }) => [String(host), String(n)]);
    const nulls = top.find(({ host }) => host === null)?.["n"];
    const rest = values.slice(10).reduce((sum, [, n]) => sum + Number(n), 0);
    expect(await facetOf(page, "host")).toEqual({
      summary: `${values.length} values in ${(ROWS - Number(nulls)).toLocaleString("en-US")} rows`,
      values: [...values.slice(0, 10), [`${values.length - 10} others`, String(rest)], ["no value", String(nulls)]],
    });
    expect(await facetOf(page, "ctx.user.name")).toEqual({
      summary: "2 values in 1,200 rows",
      values: [
        ["Ann", "900"],
        ["it's Zoë", "300"],
      ],
    });
    await page.getByText("The table has no column gone.").waitFor();
    expect(asked).toHaveLength(1);
    await page.getByRole("button", { name: /^no value/ }).click();
    await page.getByText(`${String(nulls)} rows`, { exact: true }).waitFor();
  });

  test("keys inside a dynamic column are found in all rows, and opened one after the other", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events");
    const fields = page.getByRole("complementary", { name: "Fields" });
    await fields.getByRole("button", { name: "host string 800" }).waitFor();
    await fields.getByRole("button", { name: "ctx.user 1,200" }).waitFor();
    await fields.getByRole("button", { name: "ctx.old 200" }).waitFor();
    await fields.getByRole("button", { name: "Keys in ctx.old", exact: true }).click();
    await fields.getByRole("button", { name: "ctx.old.a.b 200" }).click();
    await page.getByText("200 values in 200 rows").waitFor();
    await fields.getByRole("button", { name: "Keys in ctx.old.a.b" }).click();
    await fields.getByText("No keys inside.").waitFor();
    await checkAccessible(page);
    await page.reload();
    await fields.getByText("No keys inside.").waitFor();
    await fields.getByRole("button", { name: "Keys in ctx.old", exact: true }).click();
    await fields.getByText("No keys inside.").waitFor({ state: "detached" });
    expect(await fields.getByRole("button", { name: /^ctx\.old\.a\.b/ }).count()).toBe(0);
  });

  test.each(LOOKS)("a sample is said to be one; $scheme, $width wide", async (look) => {
    await ingestParts();
    const { page } = await open(look);
    await countUnderBudget(page, (bytes) => bytes * 3.5);
    const answer = page.waitForResponse("**/v1/explore");
    const facets = JSON.stringify([{ column: "level", keys: [] }]);
    await page.goto(`/ui/explore?table=parts&facets=${encodeURIComponent(facets)}`);
    const { rows, sampled } = (await (await answer).json()) as { rows: number; sampled: Record<string, number> };
    expect(sampled).toMatchObject({ rows_total: ROWS, extents_total: EXTENTS, rows_read: rows });
    expect(rows).toBeLessThan(ROWS);
    const note = page.getByText(/^Counts from a sample/).locator("..");
    const share = `${Math.round((100 * rows) / ROWS)}% of the rows`;
    await note.filter({ hasText: share }).waitFor();
    await note
      .filter({ hasText: `${rows} of 1,200 rows, in ${sampled["extents_read"]} of ${EXTENTS} extents` })
      .waitFor();
    await page.locator(".explore-facts strong", { hasText: `≥ ${rows} rows` }).waitFor();
    const { summary, values } = await facetOf(page, "level");
    expect(summary).toBe(`≥ 2 values in ≥ ${rows} rows`);
    expect(values).toEqual([
      ["info", `≥ ${rows * 0.9}`],
      ["error", `≥ ${rows * 0.1}`],
    ]);
    // On a telephone they would come between the bars and the rows.
    if (look.width < 800) await page.getByRole("button", { name: "Fields" }).click();
    await page.getByRole("button", { name: "host string ≥ " }).waitFor();
    await page.getByText("Counts as a table").click();
    const [, first = []] = await cellsOf(page.getByRole("region", { name: "Rows of each bar" }).getByRole("table"));
    for (const count of first.slice(1)) expect(count).toMatch(/^≥ \d+$/);
    await checkAccessible(page);
    await checkFits(page);
  });

  test("rows stay where they cannot be counted, and are counted when it is asked again", async () => {
    await ingestParts();
    const { page, expectProblem } = await open();
    expectProblem("429");
    await countUnderBudget(page, () => 10);
    const facets = JSON.stringify([{ column: "level", keys: [] }]);
    await page.goto(`/ui/explore?table=parts&facets=${encodeURIComponent(facets)}`);
    const error = page.getByRole("alert").filter({ hasText: "The rows could not be counted." });
    await error.getByText(/its budget is 10 bytes$/).waitFor();
    await error.getByRole("button", { name: "Copy the request id" }).waitFor();
    await page.getByText("Not counted: see the error above.").waitFor();
    expect(await page.locator(".log").count()).toBeGreaterThan(100);
    await checkAccessible(page);
    await page.unroute("**/v1/explore");
    await error.getByRole("button", { name: "Retry" }).click();
    await page.getByText("1,200 rows", { exact: true }).waitFor();
    await page.getByText("2 values in 1,200 rows").waitFor();
    expect(await error.count()).toBe(0);
  });

  test("a count that nobody waits for is cancelled, and what was counted stays until the next", async () => {
    const { page } = await open();
    await page.goto("/ui/explore?table=events");
    await page.getByText("1,200 rows").waitFor();
    let held: (() => void) | undefined;
    await page.route("**/v1/explore", async (route) => {
      if (held === undefined) return await new Promise<void>((resolve) => (held = resolve));
      await route.continue();
    });
    const cancelled = page.waitForEvent("requestfailed");
    await page.getByRole("button", { name: /^host string/ }).click();
    await page.getByRole("region", { name: "Values of host" }).getByText("Counting…").waitFor();
    await page.getByText("1,200 rows", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^level string/ }).click();
    expect(new URL((await cancelled).url()).pathname).toBe("/v1/explore");
    await page.getByText("2 values in 1,200 rows").waitFor();
    await page.getByText("25 values in 800 rows").waitFor();
    held?.();
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
    // 10 MB go through the driver, which takes seconds where the machine is busy.
    const lines = Array.from({ length: 90_000 }, (_, i) => JSON.stringify({ n: i, body: "y".repeat(90) }));
    await page
      .getByLabel("A file of NDJSON")
      .setInputFiles({ name: "r.ndjson", mimeType: "", buffer: Buffer.from(lines.join("\n")) }, { timeout: 60_000 });
    await page.getByText(/90,000 rows stored, 1 piece had been stored before/).waitFor();
    const counted = await fetch(`${engine.url}/v1/query`, {
      method: "POST",
      body: "SELECT count(*) AS n, count(DISTINCT n) AS d FROM resumed",
    });
    expect(await counted.json()).toEqual({ n: 90_000, d: 90_000 });
  });
});
