import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
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
/** What a test has started, the last first. */
const ends: (() => Promise<unknown>)[] = [];

/** Goes on until somebody ends it. */
const NEVER = "SELECT count(*) FROM range(100000000000) r(i) WHERE hash(i) = 1";

async function visitPage(url: string, look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, url, look);
  visits.push(opened);
  await opened.page.goto("/ui/query");
  return opened;
}

async function open(look?: Partial<Look>, url = engine.url): Promise<Visit> {
  const opened = await visitPage(url, look);
  await opened.page.getByRole("textbox", { name: "Query" }).waitFor();
  return opened;
}

/** A server of one test. */
async function startOwn(env: Record<string, string>): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  ends.push(remove);
  const own = await startEngine({ home, env });
  ends.push(() => own.stop());
  return own;
}

/** As who has signed in on the page. */
async function postFrom({ page }: Visit, path: string, body: unknown, headers: Record<string, string> = {}) {
  const all = { "Content-Type": "application/json", "X-Engine-Web": "1", ...headers };
  const options = JSON.stringify({ method: "POST", headers: all, body: JSON.stringify(body) });
  const status = `fetch(${JSON.stringify(path)}, ${options}).then(({ status }) => status)`;
  expect([path, await page.evaluate<number>(status)]).toEqual([path, 200]);
}

async function endQuery(url: string, id: string): Promise<void> {
  const answer = await fetch(`${url}/v1/queries/${id}`, { method: "DELETE" });
  expect(answer.status).toBe(204);
}

/** The ids of the queries of a text that run. */
async function runningIds(url: string, text: string): Promise<string[]> {
  const answer = await fetch(`${url}/v1/queries?state=running`);
  const { queries } = (await answer.json()) as { queries: { id: string; text: string }[] };
  return queries.filter((query) => query.text === text).map(({ id }) => id);
}

/** A way to the server on which an answer stands still after some bytes, as on a slow line, until `resume`. */
async function slowWayTo(url: string, mostBytes: number): Promise<{ url: string; resume: () => void }> {
  const sockets = new Set<Socket>();
  const paused = new Set<Socket>();
  let isResumed = false;
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(url).port), "127.0.0.1");
    let bytes = 0;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      // The other side of one that breaks is closed below.
      socket.on("error", () => undefined);
    }
    upstream.on("data", (piece: Buffer) => {
      bytes += piece.length;
      client.write(piece);
      if (bytes < mostBytes || isResumed) return;
      upstream.pause();
      paused.add(upstream);
    });
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
    client.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const resume = (): void => {
    isResumed = true;
    for (const socket of paused) socket.resume();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, resume };
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

/** On a telephone what is not done with every query is in a menu. */
async function useTool(page: Page, name: string, { width }: Look): Promise<void> {
  if (width > 800) return await page.getByRole("button", { name }).click();
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name }).waitFor();
  await checkAccessible(page);
  await checkFits(page);
  await page.getByRole("menuitem", { name }).click();
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
    // The first query in KQL loads what all of them need, which takes seconds on a busy machine.
    const kql = { method: "POST", headers: { "Content-Type": "application/x-kql" }, body: "events | count" };
    expect((await fetch(`${engine.url}/v1/query`, kql)).status).toBe(200);
    for (const day of [1, 2]) await ingest(engine.url, "days", `{"at":"2026-01-0${day}T00:00:00Z","n":${day}}`);
  });
  afterEach(async () => {
    try {
      for (const one of visits.splice(0)) await one.end();
    } finally {
      for (const end of ends.splice(0).toReversed()) await end();
    }
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
      await useTool(page, "Explain", look);
      await page.getByRole("region", { name: "Plan" }).getByText("What it reads").waitFor();
      await checkAccessible(page);
    });
  });

  test("on a telephone the editor, what runs it and the rows are on the first screen", async () => {
    const opened = await open({ width: 360 });
    const { page } = opened;
    await run(opened, "SELECT level FROM events ORDER BY 1");
    // Above what leads to the other pages.
    const { y: bottom = 0 } = (await page.getByRole("navigation", { name: "Pages" }).boundingBox()) ?? {};
    const { y = 0, height = 0 } = (await page.getByRole("gridcell", { name: "info" }).first().boundingBox()) ?? {};
    expect(y).toBeGreaterThan(0);
    expect(y + height).toBeLessThan(bottom);
    expect(await page.getByRole("navigation", { name: "Tables of default" }).count()).toBe(0);
    await useTool(page, "Tables", { scheme: "light", width: 360 });
    await page.getByRole("navigation", { name: "Tables of default" }).waitFor();
    await useTool(page, "1,000 rows", { scheme: "light", width: 360 });
  });

  describe.each(LOOKS)("$scheme, $width wide", (look) => {
    test("what is wrong, what runs, and where the time went", async () => {
      const opened = await open(look);
      const { page, expectProblem } = opened;
      await write(page, "SELECT lable FROM events");
      await page.getByRole("button", { name: "Line 1, column 8" }).waitFor();
      await checkAccessible(page);
      await checkFits(page);
      await run(opened, NEVER);
      await page.getByText(/^Scanning/).waitFor();
      await page.getByText("Would read no extents").waitFor();
      await checkAccessible(page);
      await useTool(page, "Running queries", look);
      const panel = page.getByRole("dialog", { name: "Queries" });
      await panel.getByText("anonymous (you)").waitFor();
      await checkAccessible(page);
      await checkFits(page);
      expectProblem("499");
      await panel.getByRole("button", { name: "End your query" }).click();
      await panel.getByText("Nothing is running").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("list", { name: "Time by stage" }).waitFor();
      await checkAccessible(page);
      await checkFits(page);
    });
  });

  test("what a query would read is said before it runs, of what Run would run", async () => {
    const { page } = await open();
    const estimate = page.locator(".estimate");
    const reads = async (words: RegExp | string): Promise<void> => {
      await estimate.getByText(words).waitFor();
    };
    await write(page, "SELECT * FROM days");
    await reads(/^Would read 2 of 2 extents, up to [\d.]+ k?B$/);
    await page.keyboard.type(" WHERE at < TIMESTAMP '2026-01-02'");
    await reads(/^Would read 1 of 2 extents, up to [\d.]+ k?B$/);
    await write(page, "SELECT count(*) FROM days");
    await reads("Would read the metadata of 2 of 2 extents only");
    await write(page, "SELECT 1");
    await reads("Would read no extents");
    // The statement of the cursor, or what is selected.
    await write(page, "SELECT * FROM days;\nSELECT * FROM days, events");
    await reads(/^Would read 3 of 3 extents of 2 tables, /);
    await page.keyboard.press("Control+Home");
    await reads(/^Would read 2 of 2 extents, /);
    await page.keyboard.press("Control+End");
    for (let i = 0; i < ", events".length; i++) await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Shift+Home");
    await reads(/^Would read 2 of 2 extents, /);
    await page.getByRole("combobox", { name: "Language" }).selectOption("kql");
    await write(page, "days | where at < datetime(2026-01-02)");
    await reads(/^Would read 1 of 2 extents, /);
    await write(page, "");
    await expect.poll(() => estimate.textContent()).toBe("");
  });

  test("a check begins when typing pauses, and an edit ends the one before", async () => {
    const { page } = await open();
    const asked: string[] = [];
    const cancelled: string[] = [];
    const textOf = (data: string | null): string => (JSON.parse(data ?? "{}") as { query: string }).query;
    const isCheck = (url: string): boolean => new URL(url).pathname === "/v1/query/check";
    page.on("request", (request) => {
      if (isCheck(request.url())) asked.push(textOf(request.postData()));
    });
    page.on("requestfailed", (request) => {
      if (isCheck(request.url())) cancelled.push(textOf(request.postData()));
    });
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route("**/v1/query/check", async (route) => {
      if (textOf(route.request().postData()).endsWith("days")) await held;
      // Of one that was cancelled there is nobody to continue it for.
      await route.continue().catch(() => undefined);
    });
    await page.getByRole("textbox", { name: "Query" }).pressSequentially("SELECT * FROM days", { delay: 5 });
    await expect.poll(() => asked.at(-1)).toBe("SELECT * FROM days");
    expect(asked.length).toBeLessThan(5);
    await page.keyboard.press("Escape");
    await page.keyboard.type(", events");
    await expect.poll(() => cancelled).toContain("SELECT * FROM days");
    await page.getByText(/^Would read 3 of 3 extents of 2 tables/).waitFor();
    release();
    // The cursor is elsewhere in the same statement.
    const before = asked.length;
    await page.keyboard.press("Home");
    await page.waitForTimeout(1_000);
    expect(asked.length).toBe(before);
  });

  test("what is wrong is underlined at its place, said in words, and gone when it is mended", async () => {
    const { page } = await open();
    const underlined = async (): Promise<string> =>
      (await page.locator(".cm-lintRange-error").allTextContents()).join("");
    await write(page, "SELECT 1;\nSELECT '😀', lable FROM events");
    const problems = page.getByRole("status", { name: "Problems of the query" });
    await problems.getByText(/there is no column "lable"/).waitFor();
    expect(await underlined()).toBe("lable");
    await page.getByText(/^Would read/).waitFor({ state: "detached" });
    // From the list to the place, and from anywhere by F8.
    const selected = (): Promise<string> => page.evaluate<string>("String(getSelection())");
    await problems.getByRole("button", { name: "Line 2, column 13" }).click();
    await expect.poll(selected).toBe("lable");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("F8");
    await expect.poll(selected).toBe("lable");
    await page.keyboard.type("level");
    await page.getByText(/^Would read 1 of 1 extent, /).waitFor();
    expect([await underlined(), await problems.textContent()]).toEqual(["", ""]);
    await page.getByRole("combobox", { name: "Language" }).selectOption("kql");
    await write(page, "events\n| where lable == 'x'");
    await problems.getByRole("button", { name: "Line 2, column 9" }).waitFor();
    expect(await underlined()).toBe("lable");
    // Another tab has a text of its own.
    await page.getByRole("button", { name: "New tab" }).click();
    await expect.poll(() => problems.textContent()).toBe("");
  });

  test("a check that fails says why, can be repeated, and leaves the page usable", async () => {
    const opened = await open();
    const { page, expectProblem } = opened;
    expectProblem("ERR_FAILED");
    await page.route("**/v1/query/check", (route) => route.abort());
    await write(page, "SELECT * FROM days ORDER BY n");
    const failed = page.getByRole("alert").filter({ hasText: "The query could not be checked." });
    await failed.getByText("the server cannot be reached", { exact: false }).waitFor();
    await checkAccessible(page);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    expect((await cells(opened, 2)).slice(-1)).toEqual(["2"]);
    await page.unroute("**/v1/query/check");
    await failed.getByRole("button", { name: "Retry" }).click();
    await page.getByText(/^Would read 2 of 2 extents, /).waitFor();
    expect(await failed.count()).toBe(0);
  });

  test("what a budget refuses is said before the run", async () => {
    const small = await startOwn({ ENGINE_QUERY_WALL_MS: "10" });
    const { page, expectProblem } = await open({}, small.url);
    expectProblem("429");
    await write(page, "SELECT 1");
    const failed = page.getByRole("alert").filter({ hasText: "The query could not be checked." });
    await failed.getByText("wall-clock budget of 10 ms", { exact: false }).waitFor();
    await failed.getByText(/^Request/).waitFor();
  });

  test("a query that somebody else ends says by whom", async () => {
    const password = "a long password";
    const guarded = await startOwn({
      ENGINE_AUTH_BACKEND: "session",
      ENGINE_ADMIN_USER: "root",
      ENGINE_ADMIN_PASSWORD: password,
    });
    const signedIn = async (username: string): Promise<Visit> => {
      const opened = await visitPage(guarded.url);
      const { page, expectProblem } = opened;
      expectProblem("401");
      await page.getByRole("textbox", { name: "User name" }).fill(username);
      await page.getByRole("textbox", { name: "Password" }).fill(password);
      await page.keyboard.press("Enter");
      await page.getByRole("textbox", { name: "Query" }).waitFor();
      return opened;
    };
    const root = await signedIn("root");
    for (const [username, role] of [
      ["ann", "write"],
      ["bob", "read"],
    ]) {
      await postFrom(root, "/v1/admin/users", { username, password, role });
    }
    await postFrom(root, "/v1/ingest", { n: 1 }, { "X-Table": "events" });
    const [ann, bob] = [await signedIn("ann"), await signedIn("bob")];
    for (const { page } of [root, bob]) {
      await page.getByRole("button", { name: "Running queries" }).click();
      await page.getByText("Nothing is running").waitFor();
    }
    ann.expectProblem("499");
    await run(ann, NEVER);
    await ann.page.getByText(/^Scanning/).waitFor();
    const hers = root.page.getByRole("listitem").filter({ hasText: NEVER });
    await hers.getByText("ann", { exact: true }).waitFor();
    await hers.getByText(/Scanning.* · [\d.]+ /).waitFor();
    await hers.getByText(/ of memory · default · on /).waitFor();
    // Who is no admin sees their own alone.
    await bob.page.waitForResponse((response) => new URL(response.url()).pathname === "/v1/queries");
    expect(await bob.page.getByRole("button", { name: /^End/ }).count()).toBe(0);
    await hers.getByRole("button", { name: "End the query of ann" }).click();
    await root.page.getByText("Nothing is running").waitFor();
    const ended = ann.page.getByRole("alert");
    await ended.getByText("The query was ended.").waitFor();
    await ended.getByText('the query was ended by "root"').waitFor();
    await ann.page.getByRole("button", { name: "Run", exact: true }).waitFor();
  });

  test("a query that is ended while its rows arrive says so, and keeps them", async () => {
    // What compresses well is all in the buffers of the connection, and the query over.
    const text = "SELECT i, md5(CAST(i AS VARCHAR)) || md5(CAST(-i AS VARCHAR)) AS x FROM range(1500000) r(i)";
    const way = await slowWayTo(engine.url, 8_000_000);
    const { page, expectProblem } = await open({}, way.url);
    await page.getByRole("combobox", { name: "Most rows" }).selectOption("0");
    await write(page, text);
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^[\d,]{4,} rows · /).waitFor();
    expectProblem("ERR_INCOMPLETE_CHUNKED_ENCODING");
    const ids = await runningIds(engine.url, text);
    expect(ids).toHaveLength(1);
    for (const id of ids) await endQuery(engine.url, id);
    way.resume();
    const ended = page.getByRole("alert");
    await ended
      .getByText('the query was ended by "anonymous" while its rows were arriving', { exact: false })
      .waitFor();
    await page.getByRole("gridcell", { name: "0", exact: true }).waitFor();
  });

  test("nodes that do not answer are named, and a list that cannot be read says why", async () => {
    const { page, expectProblem } = await open();
    await page.route("**/v1/queries?*", async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as Record<string, unknown>;
      const silent = [{ id: "7", name: "node-7", reason: "it did not answer in time" }];
      await route.fulfill({ response: answer, json: { ...body, silent } });
    });
    await page.getByRole("button", { name: "Running queries" }).click();
    await page.getByText("1 node did not answer, so their queries are missing here: node-7").waitFor();
    await checkAccessible(page);
    expectProblem("ERR_FAILED");
    await page.unroute("**/v1/queries?*");
    await page.route("**/v1/queries?*", (route) => route.abort());
    await page.getByText("The list is not up to date.").waitFor();
    await page.unroute("**/v1/queries?*");
    await page.getByText("The list is not up to date.").waitFor({ state: "detached" });
    // Nobody looks at it any more.
    await page.keyboard.press("Escape");
    let asked = 0;
    page.on("request", (request) => (asked += new URL(request.url()).pathname === "/v1/queries" ? 1 : 0));
    await page.waitForTimeout(2_500);
    expect(asked).toBe(0);
  });

  test("the stages of a run are shown after it, and how far it is while it runs", async () => {
    const opened = await open();
    const { page } = opened;
    await run(opened, "SELECT * FROM events ORDER BY n LIMIT 1");
    const stages = page.getByRole("list", { name: "Time by stage" }).getByRole("listitem");
    await expect
      .poll(async () => (await stages.allTextContents()).map((text) => text.trim().split(" ")[0]))
      .toEqual(["Queue", "Parse", "Plan", "Fetch", "Scan", "Send"]);
    for (const text of await stages.allTextContents()) expect(text).toMatch(/ (< 1|\d+) ms$| [\d.]+ s$/);
    await run(opened, NEVER);
    expect(await stages.count()).toBe(0);
    await page.getByText(/^Scanning(, \d+ %)? · [\d.]+ s$/).waitFor();
    // The bar is there where the server knows a percent, and nowhere else.
    const [id = ""] = await runningIds(engine.url, NEVER);
    const answers: unknown[] = [];
    await page.route(`**/v1/queries/${id}`, async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as Record<string, unknown>;
      const changed = answers.length === 0 ? { percent: 42.9 } : { percent: null };
      answers.push(changed);
      await route.fulfill({ response: answer, json: { ...body, ...changed } });
    });
    const bar = page.getByRole("progressbar", { name: "Progress of the query" });
    await page.getByText(/^Scanning, 42 % · /).waitFor();
    expect(await bar.getAttribute("value")).toBe("0.429");
    await page.getByText(/^Scanning · /).waitFor();
    expect(await bar.count()).toBe(0);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/ · stopped$/).waitFor();
    await expect.poll(() => stages.last().textContent()).toMatch(/^Scan \d/);
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
    // Perhaps before anything is drawn between its clicks.
    await page.getByRole("columnheader", { name: "big" }).getByRole("button").dblclick();
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
    await page.getByRole("button", { name: "Run", exact: true }).waitFor();
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
    expect(asked.filter((path) => path !== "/v1/query/check")).toEqual(["/v1/query", "/v1/query-history"]);
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
