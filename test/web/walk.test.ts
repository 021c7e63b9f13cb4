import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, startBrowser, visit, type Visit } from "./browser.test-kit.ts";

const lacks = lacking("chromium", "curl");
const WRITER = "a-token-that-writes";
const READER = "a-token-that-only-reads";

/** What a new user does with an empty server, through its pages alone: from the first rows to a dashboard that others see. */
describe.skipIf(lacks !== undefined)(`a new user's walk${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  let browser: Browser;
  let engine: Engine;
  let removeHome: () => Promise<void>;
  const visits: Visit[] = [];
  beforeAll(async () => {
    const { home, remove } = await temporaryHome();
    removeHome = remove;
    engine = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: `${WRITER}:write,${READER}:read` } });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await engine?.stop();
    await removeHome?.();
  });

  /** Opens an address in a browser of its own, and signs in there. */
  async function enter(address: string, token: string): Promise<Page> {
    const opened = await visit(browser, engine.url);
    visits.push(opened);
    // Before somebody has signed in.
    opened.expectProblem("401");
    const { page } = opened;
    await page.goto(address);
    await page.getByRole("tab", { name: "Token" }).click();
    await page.getByRole("textbox", { name: "Token" }).fill(token);
    await page.keyboard.press("Enter");
    return page;
  }

  async function type(page: Page, field: string, text: string): Promise<void> {
    await page.getByRole("textbox", { name: field }).click();
    await page.keyboard.insertText(text);
  }

  async function follow(page: Page, link: string): Promise<void> {
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: link }).click();
  }

  const copiedText = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

  /** The copied command, run as a shell would, with the token where the page says that it belongs. */
  async function runCopied(page: Page): Promise<string> {
    await page.getByRole("button", { name: "Copy: Send two rows with curl" }).click();
    await page.getByText("Copied", { exact: true }).waitFor({ state: "attached" });
    const command = await copiedText(page);
    const env = { PATH: process.env["PATH"], ENGINE_TOKEN: WRITER };
    return (await promisify(execFile)("sh", ["-c", command], { env })).stdout;
  }

  test("from an empty server to a shared dashboard", { timeout: 90_000 }, async () => {
    // The address that the server prints leads to the pages.
    const page = await enter("/", WRITER);
    await page.getByRole("heading", { name: "Send the first rows" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/");
    expect(JSON.parse(await runCopied(page))).toMatchObject({ rows_ingested: 2 });

    // The next step asks about the rows.
    await page.getByRole("button", { name: "Ask here" }).click();
    await page.getByRole("textbox", { name: "Query" }).waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("gridcell", { name: "warn" }).waitFor();
    expect(await page.getByRole("gridcell").allTextContents()).toEqual(expect.arrayContaining(["info", "warn", "1"]));
    await page.getByRole("button", { name: "Columns of events" }).click();
    await page.getByRole("navigation", { name: "Tables of default" }).getByText("level").waitFor();

    // The overview has them, and leads to the rows themselves.
    await follow(page, "Overview");
    await page.getByRole("row", { name: /^events 2 / }).waitFor();
    await checkAccessible(page);
    await page.getByRole("link", { name: "events" }).click();
    await page.getByText("the second row").waitFor();
    await page.getByText(/^2 rows/).waitFor();

    await follow(page, "Dashboards");
    await page.getByRole("button", { name: "New dashboard" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("First rows");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Add a variable" }).click();
    const variable = page.getByRole("group", { name: "Variable 1" });
    await variable.getByLabel("Kind").selectOption("query");
    await type(page, "Query of variable 1", "SELECT DISTINCT level FROM events ORDER BY level");
    await variable.getByRole("textbox", { name: "Name" }).fill("level");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("button", { name: "Add the first panel" }).click();
    await page.getByRole("textbox", { name: "Title" }).fill("Of the level");
    await page.getByLabel("Type").selectOption("table");
    await type(page, "Query 1", "SELECT body, count(*) AS rows FROM events WHERE level = $level GROUP BY body");
    await page.getByRole("dialog").getByText("$level").first().waitFor();
    await page.getByRole("button", { name: "Add the panel" }).click();
    const shownIn = (one: Page) => one.getByRole("region", { name: "Of the level" });
    await shownIn(page).getByRole("gridcell", { name: "the first row" }).waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved as version 2").first().waitFor();

    await page.getByRole("combobox", { name: "level" }).click();
    await page.getByRole("option", { name: "warn" }).click();
    await shownIn(page).getByRole("gridcell", { name: "the second row" }).waitFor();
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Copy the link" }).click();
    await page.getByText("The link is copied").first().waitFor();
    const link = await copiedText(page);
    expect(link).toMatch(new RegExp(`^${engine.url}/ui/dashboards/[0-9a-f-]{36}\\?db=default#vars=`));

    // Somebody else, who may only read, sees the same, and is told who could change it.
    const other = await enter(link, READER);
    await other.getByRole("heading", { name: "First rows" }).waitFor();
    await shownIn(other).getByRole("gridcell", { name: "the second row" }).waitFor();
    const cells = (one: Page) => shownIn(one).getByRole("gridcell").allTextContents();
    expect(await cells(other)).toEqual(await cells(page));
    expect(await cells(other)).toEqual(["the second row", "1"]);
    const edit = other.getByRole("button", { name: "Edit", exact: true });
    expect(await edit.getAttribute("aria-disabled")).toBe("true");
    expect(await edit.getAttribute("title")).toBe("This needs the role write.");
    await edit.click({ force: true });
    await other.keyboard.press("e");
    expect(await other.getByRole("button", { name: "Settings" }).count()).toBe(0);
    await other.goto(link.replace("#", "&edit=1#"));
    await shownIn(other).getByRole("gridcell", { name: "the second row" }).waitFor();
    expect(await other.getByRole("button", { name: "Settings" }).count()).toBe(0);
    await checkAccessible(other);
    await checkFits(other);
    for (const one of visits.splice(0)) await one.end();
  });
});
