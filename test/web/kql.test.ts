import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, LOOKS, startBrowser, visit, type Look, type Visit } from "./browser.test-kit.ts";

/** The language service of KQL in the editor of the query page. */
const lacks = lacking("chromium");

let browser: Browser;
let engine: Engine;
let removeHome: () => Promise<void>;
const visits: Visit[] = [];

async function open(look?: Partial<Look>, prepare?: (opened: Visit) => Promise<void>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  await prepare?.(opened);
  const { page } = opened;
  await page.goto("/ui/query");
  await editor(page).waitFor();
  await page.getByRole("combobox", { name: "Language" }).selectOption("kql");
  return opened;
}

const editor = (page: Page) => page.getByRole("textbox", { name: "Query" });
const list = (page: Page) => page.getByRole("listbox", { name: "Completions" });

/** In the place of what is there, as one who pastes does; the cursor is behind it. */
async function write(page: Page, text: string): Promise<void> {
  await editor(page).focus();
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+v");
}

const text = async (page: Page) => (await page.locator(".query-editor .cm-line").allTextContents()).join("\n");

/** The names that are offered behind the text. What is pressed before that part of the editor is there is nobody's. */
async function offered(page: Page, before: string): Promise<string[]> {
  await write(page, before);
  await expect.poll(async () => await askFor(page)).toBe(true);
  // A key that meets the list just as it opens was not meant for it: the editor takes it as text.
  await page.waitForTimeout(200);
  return await labelsOf(page);
}

async function askFor(page: Page): Promise<boolean> {
  await page.keyboard.press("Control+Space");
  const shown = list(page).waitFor({ timeout: 2_000 });
  return await shown.then(
    () => true,
    () => false,
  );
}

const labelsOf = (page: Page) => list(page).locator(".cm-completionLabel").allTextContents();

/** The parts of the text that are marked, once there are as many. */
async function marked(page: Page, kind: "error" | "warning", expected: readonly string[]): Promise<void> {
  const marks = page.locator(`.query-editor .cm-content .cm-lintRange-${kind}`);
  await expect.poll(() => marks.allTextContents()).toEqual(expected);
}

/** In the page: how long the column is not in the list after the key that brings it, and tasks that block the page. */
const WATCH = `
  window.times = [];
  window.longest = [];
  let asked;
  addEventListener("keydown", ({ key }) => { if (key === "9") asked = performance.now(); }, true);
  new MutationObserver(() => {
    if (asked === undefined) return;
    const labels = [...document.querySelectorAll(".cm-completionLabel")];
    if (!labels.some(({ textContent }) => textContent === "column_1999")) return;
    times.push(Math.round(performance.now() - asked));
    asked = undefined;
  }).observe(document.body, { childList: true, subtree: true });
  new PerformanceObserver((l) => { for (const e of l.getEntries()) longest.push(e.duration); }).observe({ type: "longtask" });
`;

describe.skipIf(lacks !== undefined)(`KQL in the editor${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  beforeAll(async () => {
    browser = await startBrowser();
    const { home, remove } = await temporaryHome();
    removeHome = remove;
    engine = await startEngine({ home });
    await ingest(engine.url, "events", '{"level":"info","n":1,"more":{"a":1}}');
    await ingest(engine.url, "odd-name", '{"inside":1}');
  });
  afterEach(async () => {
    for (const one of visits.splice(0)) await one.end();
  });
  afterAll(async () => {
    await browser?.close();
    await engine?.stop();
    await removeHome?.();
  });

  test("columns are completed as the pipe has made them", async () => {
    const { page } = await open();
    expect((await offered(page, "events | where le")).slice(0, 1)).toEqual(["level"]);
    await page.keyboard.press("Enter");
    await expect.poll(() => text(page)).toBe("events | where level");
    const made = await offered(
      page,
      "events | extend doubled = strcat(level, level) | project doubled, level | where ",
    );
    expect(made.slice(0, 2)).toEqual(["doubled", "level"]);
    expect(made).not.toContain("n");
    await page.keyboard.type("doub");
    await expect.poll(async () => (await labelsOf(page)).length).toBe(3);
    await page.keyboard.press("Enter");
    await page.keyboard.type(" == 'infoinfo'");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "infoinfo" }).waitFor();
  });

  test("a table whose name is no word is quoted, and what is written runs", async () => {
    const { page } = await open();
    expect(await offered(page, "od")).toContain("odd-name");
    await page.keyboard.press("Enter");
    await expect.poll(() => text(page)).toContain("['odd-name']");
    await write(page, "['odd-name'] | ");
    await page.keyboard.type("proj");
    await list(page).getByRole("option", { name: "project", exact: false }).first().waitFor();
    await page.keyboard.press("Escape");
    expect((await offered(page, "['odd-name'] | where in"))[0]).toBe("inside");
    await write(page, "['odd-name'] | project inside");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("columnheader", { name: "inside" }).waitFor();
  });

  test("a mistake is marked in its place until it is mended; the other queries of the text are not", async () => {
    const { page } = await open();
    await write(page, "events | where level ==\n\nevents | where nosuch == 'a'\n\nevents | take 1");
    await marked(page, "warning", ["nosuch"]);
    const points = page.locator(".query-editor .cm-content .cm-lintPoint-error");
    await expect.poll(() => points.count()).toBe(1);
    await page.locator(".query-editor .cm-lintRange-warning").hover();
    await page.getByText("The name 'nosuch' does not refer to any known column").waitFor();
    await write(page, "events | where level != ''\n\nevents | where level == 'a'\n\nevents | take 1");
    await marked(page, "warning", []);
    await expect.poll(() => points.count()).toBe(0);
    await write(page, "events | wher level");
    await marked(page, "error", ["wher"]);
    // The server checks the text as what it now is, and what the service said of it as KQL is gone.
    await page.getByRole("combobox", { name: "Language" }).selectOption("sql");
    await marked(page, "error", ["events"]);
  });

  test("what the service and the server find stands side by side, and stays", async () => {
    const { page } = await open();
    // Only the last query would run: of the others the service alone speaks.
    await write(page, "events | where lable == 'a'\n\nevents | project nosuch");
    await marked(page, "warning", ["lable"]);
    await marked(page, "error", ["nosuch"]);
    await page.keyboard.press("Control+Home");
    await marked(page, "error", ["lable"]);
    await marked(page, "warning", ["nosuch"]);
    // Nothing is asked again for a while, by which an editor's own checks would have run too.
    await page.waitForTimeout(1_500);
    await marked(page, "error", ["lable"]);
    await marked(page, "warning", ["nosuch"]);
    await page.locator(".query-editor .cm-lintRange-error").hover();
    await page.locator(".cm-tooltip-lint").waitFor();
    expect(await page.locator(".cm-tooltip-lint .cm-diagnostic").count()).toBe(1);
  });

  test("what a name means is said under the pointer", async () => {
    const { page } = await open();
    await offered(page, "events | where strlen(level) == 4 and ");
    await page.keyboard.press("Escape");
    await page.locator(".query-editor .cm-line span", { hasText: /^strlen$/ }).hover();
    await page.locator(".cm-about").waitFor();
    expect(await page.locator(".cm-about").textContent()).toContain("strlen(");
  });

  test("the service is loaded when a text in KQL is edited, and never before", async () => {
    const asked: string[] = [];
    const { page } = await open({}, async ({ page: opening }) => {
      opening.on("request", (request) => asked.push(new URL(request.url()).pathname));
    });
    const hasService = () => asked.some((path) => /^\/ui\/assets\/kql-worker-[\w-]+\.js$/.test(path));
    await page.getByRole("combobox", { name: "Language" }).selectOption("sql");
    await write(page, "SELECT 1");
    await page.getByRole("combobox", { name: "Language" }).selectOption("kql");
    await page.waitForLoadState("networkidle");
    expect(hasService()).toBe(false);
    await write(page, "events");
    await expect.poll(hasService).toBe(true);
  });

  test("where the service does not load the text is edited as before, and it is said once", async () => {
    const { page, expectProblem } = await open({}, async ({ context }) => {
      await context.route(/kql-worker/, (route) => route.fulfill({ status: 404, body: "" }));
    });
    expectProblem("404");
    await write(page, "events | project level");
    const notice = page.locator(".toast", { hasText: "KQL completion is off" });
    await notice.waitFor();
    await page.getByRole("button", { name: "Dismiss" }).click();
    await editor(page).focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.type(", n");
    await page.keyboard.press("Control+Space");
    expect(await text(page)).toBe("events | project level, n");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "info" }).waitFor();
    expect(await notice.count()).toBe(0);
  });

  test("a schema of 300 tables with 2,000 columns each leaves the page free", { timeout: 60_000 }, async () => {
    const columns = Array.from({ length: 2_000 }, (_, i) => ({ name: `column_${i}`, type: "long", nullable: true }));
    const tables = Array.from({ length: 300 }, (_, i) => ({ name: `table_${i}`, columns }));
    const { promise: isAsked, resolve: sendSchema } = Promise.withResolvers<void>();
    const { page } = await open({}, async ({ context }) => {
      const databases = [{ name: "default", tables }];
      await context.route("**/v1/catalog/schema", async (route) => {
        await isAsked;
        await route.fulfill({ json: { databases } });
      });
    });
    // The schema is large: whoever asks before it is there has the list when it comes.
    expect(await offered(page, "table_7 | where ")).not.toContain("column_0");
    sendSchema();
    await list(page).getByText("column_0", { exact: true }).waitFor();
    await page.keyboard.type("column_199");
    await expect.poll(async () => (await labelsOf(page))[1]).toBe("column_1990");
    // What is taken away again brings back what no longer fitted, and what is typed narrows the list.
    await page.keyboard.press("Backspace");
    await list(page).getByText("column_1908", { exact: true }).waitFor();
    await page.keyboard.type("76");
    await expect.poll(async () => (await labelsOf(page))[0]).toBe("column_1976");
    await page.keyboard.press("Escape");
    const asked = Array.from({ length: 5 }, (_, i) => `table_7 | where column_${i} == 1 and column_19`);
    await page.evaluate(WATCH);
    for (const one of asked) {
      await write(page, one);
      await page.keyboard.press("9");
      await list(page).getByText("column_1999", { exact: true }).waitFor();
    }
    const { times, longest } = await page.evaluate<{ times: number[]; longest: number[] }>("({ times, longest })");
    process.stdout.write(`completion of a column among 300 × 2,000, from key to list: ${times.join(", ")} ms\n`);
    process.stdout.write(`longest tasks of the page meanwhile: ${longest.map(Math.round).join(", ")} ms\n`);
    expect(times).toHaveLength(asked.length);
  });

  test.each(LOOKS)("is accessible and fits: $scheme, $width wide", async (look) => {
    const { page } = await open(look);
    await write(page, "events | where nosuch == 'a' // all");
    // What the service warns of is an error by the word of the server, which checks what would run.
    await marked(page, "error", ["nosuch"]);
    await checkAccessible(page);
    await offered(page, "events | where ");
    await checkFits(page);
  });
});
