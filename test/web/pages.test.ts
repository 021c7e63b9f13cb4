import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import {
  checkAccessible,
  checkFits,
  focused,
  LOOKS,
  startBrowser,
  visit,
  type Look,
  type Visit,
} from "./browser.test-kit.ts";

const lacks = lacking("chromium");
const ADMIN = "a-token-of-an-administrator";
const READER = "a-token-that-only-reads";

let browser: Browser;
const engines: Record<"empty" | "filled" | "guarded", Engine> = {} as never;
const removals: (() => Promise<void>)[] = [];
const visits: Visit[] = [];

async function start(env: Record<string, string> = {}): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  removals.push(remove);
  return await startEngine({ home, env });
}

async function open(engine: Engine, look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  return opened;
}

/** On a page that asks to sign in. */
async function signInWith(page: Page, token: string): Promise<void> {
  await page.getByRole("tab", { name: "Token" }).click();
  await page.getByRole("textbox", { name: "Token" }).fill(token);
  await page.keyboard.press("Enter");
}

async function typeQuery(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Query" }).click();
  await page.keyboard.insertText(text);
}

describe.skipIf(lacks !== undefined)(`pages in a browser${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  beforeAll(async () => {
    browser = await startBrowser();
    engines.empty = await start();
    engines.filled = await start();
    engines.guarded = await start({ ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${READER}:read` });
    const rows = '{"level":"info","body":"a"}\n{"level":"warn","body":"b"}';
    const auth = { Authorization: `Bearer ${ADMIN}` };
    for (const [engine, headers] of [
      [engines.filled, {}],
      [engines.guarded, auth],
    ] as const) {
      await ingest(engine.url, "events", rows, headers);
      await ingest(engine.url, "requests", rows, { ...headers, "X-Database": "logs" });
    }
  });
  afterEach(async () => {
    for (const one of visits.splice(0)) await one.end();
  });
  afterAll(async () => {
    await browser?.close();
    for (const engine of Object.values(engines)) await engine.stop();
    for (const remove of removals.splice(0)) await remove();
  });

  describe.each(LOOKS)("$scheme, $width wide", (look) => {
    test("an empty server says how to send the first rows, for its own address", async () => {
      const { page } = await open(engines.empty, look);
      await page.goto("/");
      await page.getByText("Send the first rows").waitFor();
      expect(new URL(page.url()).pathname).toBe("/ui/");
      expect(await page.title()).toBe("Overview · engine");
      expect(await page.getByLabel("Send two rows with curl", { exact: true }).textContent()).toContain(
        `curl ${engines.empty.url}/v1/ingest`,
      );
      await checkAccessible(page);
      await checkFits(page);
    });

    test("what is there is listed with its sizes", async () => {
      const { page } = await open(engines.filled, look);
      await page.goto("/ui/");
      const tables = page.getByRole("region", { name: "Tables of logs" });
      await tables.getByRole("row", { name: /^requests 2 / }).waitFor();
      await page.getByRole("region", { name: "Tables of default" }).getByText("events").waitFor();
      await page.getByRole("combobox", { name: "Database" }).waitFor();
      await page.getByText("Stored credentials").waitFor();
      await checkAccessible(page);
      await checkFits(page);
    });

    test("signing in", async () => {
      const { page, expectProblem } = await open(engines.guarded, look);
      expectProblem("401");
      const asked: string[] = [];
      page.on("request", (request) => void asked.push(new URL(request.url()).pathname));
      await page.goto("/ui/?db=logs");
      await page.getByRole("heading", { name: "Sign in to engine" }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(asked.filter((path) => path.startsWith("/v1/")).toSorted()).toEqual(["/v1/auth/config", "/v1/auth/me"]);
      await checkAccessible(page);
      await checkFits(page);
      await page.getByRole("tab", { name: "Token" }).click();
      await page.getByRole("textbox", { name: "Token" }).fill("not-a-token-of-this-server");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("The token is not valid here.").waitFor();
      await checkAccessible(page);
      await signInWith(page, READER);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      expect(new URL(page.url()).search).toBe("?db=logs");
      await page.getByRole("button", { name: /^Account/ }).click();
      await page.getByText("Role read").waitFor();
      await checkAccessible(page);
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to engine" }).waitFor();
      await page.goto("/ui/");
      await page.getByRole("heading", { name: "Sign in to engine" }).waitFor();
    });

    test("a page that nobody has, the palette and the list of keys", async () => {
      const { page } = await open(engines.filled, look);
      await page.goto("/ui/nowhere/at/all");
      await page.getByRole("heading", { name: "There is no such page" }).waitFor();
      await checkAccessible(page);
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search pages and actions" }).waitFor();
      await checkAccessible(page);
      await page.keyboard.press("Escape");
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
      await checkAccessible(page);
      await checkFits(page);
    });
  });

  test("no token is where scripts reach it", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in");
    await signInWith(page, READER);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const kept = await page.evaluate<string>(
      "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.documentElement.outerHTML])",
    );
    expect(kept).not.toContain(READER);
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    expect(kept).not.toContain(cookie?.value ?? "no cookie");
  });

  test("a session that has ended is renewed over the page, and what was asked is asked again", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in");
    await signInWith(page, READER);
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    await context.clearCookies();
    await page.getByRole("button", { name: "Refresh" }).click();
    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.getByRole("tab", { name: "Token" }).click();
    await checkAccessible(page);
    await dialog.getByRole("textbox", { name: "Token" }).fill(ADMIN);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/");
    await page.getByRole("button", { name: "Refresh" }).waitFor();
  });

  test("who does not sign in again is told so, and may try again", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in");
    await signInWith(page, READER);
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    await context.clearCookies();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("dialog", { name: "Sign in again" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("your session has ended: sign in to go on").first().waitFor();
  });

  test("another tab that signs in lets this one go on", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in");
    await signInWith(page, READER);
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    await context.clearCookies();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("dialog", { name: "Sign in again" }).waitFor();
    const other = await context.newPage();
    await other.goto("/ui/sign-in");
    await signInWith(other, READER);
    await other.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("dialog", { name: "Sign in again" }).waitFor({ state: "detached" });
  });

  test("a query whose session has ended runs once one has signed in again, and is let go with its page", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in?return_to=/ui/nowhere");
    await signInWith(page, READER);
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await typeQuery(page, "SELECT 'run again' AS a");
    await context.clearCookies();
    await page.keyboard.press("Control+Enter");
    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await dialog.waitFor({ state: "detached" });
    await page.goForward();
    await page.getByRole("textbox", { name: "Query" }).click();
    await page.keyboard.press("Control+Enter");
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("alert").getByText("your session has ended: sign in to go on").waitFor();
    await page.getByRole("textbox", { name: "Query" }).click();
    await page.keyboard.press("Control+Enter");
    await signInWith(page, READER);
    await page.getByRole("gridcell", { name: "run again" }).waitFor();
    await dialog.waitFor({ state: "detached" });
  });

  test("another one who signs in after an ended session finds nothing of the one before", async () => {
    const { page, context, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in?return_to=/ui/query");
    await signInWith(page, READER);
    await typeQuery(page, "SELECT 'of the reader' AS a");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "of the reader" }).waitFor();
    const entry = page.getByRole("dialog").getByRole("button", { name: "SELECT 'of the reader' AS a" });
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await entry.waitFor();
    await page.keyboard.press("Escape");
    // What is in the open tab is in the address, too.
    await page.getByRole("button", { name: "New tab" }).click();
    await expect.poll(() => page.url()).not.toContain("#q=");
    const tab = page.getByRole("tab", { name: /of the reader/ });

    // The same one finds all of it.
    await context.clearCookies();
    await page.goto("/ui/sign-in?return_to=/ui/query");
    await signInWith(page, READER);
    await tab.waitFor();

    // Over the page, which stays.
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await entry.waitFor();
    await page.keyboard.press("Escape");
    await context.clearCookies();
    await typeQuery(page, "SELECT 2");
    await page.keyboard.press("Control+Enter");
    await signInWith(page, ADMIN);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.getByRole("tab", { name: /of the reader/ }).count()).toBe(0);
    await page.getByRole("textbox", { name: "Query" }).waitFor();
    await page.getByRole("button", { name: "Earlier queries" }).click();
    await page.getByRole("dialog").getByText("Nothing yet").waitFor();
    expect(await entry.count()).toBe(0);
    await page.keyboard.press("Escape");

    // On a page that is loaded anew.
    await page.getByRole("button", { name: "New tab" }).click();
    await expect.poll(() => page.url()).not.toContain("#q=");
    await typeQuery(page, "SELECT 'of an admin'");
    await page.getByRole("tab", { name: /of an admin/ }).waitFor();
    await context.clearCookies();
    await page.goto("/ui/sign-in?return_to=/ui/query");
    await signInWith(page, READER);
    await page.getByRole("textbox", { name: "Query" }).waitFor();
    expect(await page.getByRole("tab", { name: /of an admin/ }).count()).toBe(0);
  });

  test("with authentication off a banner says so, and signing in works all the same", async () => {
    const { page } = await open(engines.filled);
    await page.goto("/ui/");
    await page.getByText("Authentication is off: whoever reaches this address").waitFor();
    await page.getByRole("button", { name: "Account: Not signed in" }).click();
    await page.getByRole("menuitem", { name: "Sign in" }).click();
    await page.getByLabel("User name").fill("admin");
    await page.getByRole("textbox", { name: "Password" }).fill("admin");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Account: admin" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/");
  });

  test("an address leads back only to pages of this server", async () => {
    const { page, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    for (const address of [
      "https://example.com/ui/",
      "//example.com/ui/",
      "/docs",
      "javascript:alert(1)",
      "/ui/sign-in",
    ]) {
      await page.goto(`/ui/sign-in?return_to=${encodeURIComponent(address)}`);
      await signInWith(page, READER);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      expect(page.url()).toBe(`${engines.guarded.url}/ui/`);
      await page.context().clearCookies();
    }
  });

  test("what an address says of a failed sign-in is never shown as it is", async () => {
    const { page, expectProblem } = await open(engines.guarded);
    expectProblem("401");
    await page.goto("/ui/sign-in?error=state_mismatch");
    await page.getByText("The sign-in was begun in another browser").waitFor();
    await page.goto("/ui/sign-in?error=call%20this%20number");
    await page.getByText("Signing in failed. Try again.").waitFor();
    expect(await page.content()).not.toContain("call this number");
  });

  test("all is reached by the keyboard", async () => {
    const { page } = await open(engines.filled);
    await page.goto("/ui/");
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    await page.getByRole("combobox", { name: "Database" }).waitFor();
    await page.locator(".combobox").waitFor();
    // The menu of the account is loaded when somebody reaches for it, and takes the place of what stood in for it.
    await page.getByRole("button", { name: /^Account/ }).hover();
    await page.locator('.user-button[data-part="trigger"]').waitFor();
    const walked: string[] = [];
    for (let i = 0; i < 15; i++) {
      await page.keyboard.press("Tab");
      walked.push(await focused(page));
    }
    expect(walked).toEqual([
      "Skip to the page",
      "engine: overview",
      "Database",
      "Go to…CtrlK",
      "Keys",
      "Account: Not signed in",
      "Overview",
      "Query",
      "Explore",
      "Catalog",
      "Dashboards",
      "Refresh",
      "Tables of default",
      "events",
      "Tables of logs",
    ]);
    // What has the focus is seen to have it.
    await page.keyboard.press("Shift+Tab");
    const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
    expect(outline).toBe("solid");
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("main");
  });

  test("the palette goes to pages, and changes the theme, by keys alone", async () => {
    const { page } = await open(engines.filled);
    await page.goto("/ui/nowhere");
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("overv");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("main");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dark");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate<string>("document.documentElement.dataset.theme")).toBe("dark");
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.evaluate<string>("getComputedStyle(document.body.parentElement).colorScheme")).toBe("dark");
    await page.goto("/ui/nowhere");
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  });

  test("the database is in the address: found by typing, kept by links, back by the way back", async () => {
    const { page } = await open(engines.filled);
    await page.goto("/ui/");
    await page.locator(".combobox").waitFor();
    const field = page.getByRole("combobox", { name: "Database" });
    await field.click();
    await field.fill("lo");
    await page.getByRole("option", { name: "logs" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("?db=logs");
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    expect(new URL(page.url()).search).toBe("?db=logs");
    await page.reload();
    await expect.poll(() => page.getByRole("combobox", { name: "Database" }).inputValue()).toBe("logs");
  });

  test("a page whose parts are gone, as after a release, offers to reload", async () => {
    const { page, expectProblem } = await open(engines.filled);
    expectProblem("404");
    await page.route("**/assets/home-*.js", (route) => route.fulfill({ status: 404, body: "{}" }));
    await page.goto("/ui/");
    await page.getByText("This part could not be loaded").waitFor();
    await checkAccessible(page);
    await page.unroute("**/assets/home-*.js");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  test("a server that does not answer is said, and asked again", async () => {
    const { page, expectProblem } = await open(engines.filled);
    expectProblem("503");
    let isAway = true;
    const body = JSON.stringify({ error: { code: "unavailable", message: "the catalog is away", request_id: "r-1" } });
    await page.route("**/v1/catalog/schema", (route) =>
      isAway
        ? route.fulfill({ status: 503, headers: { "Retry-After": "1", "Content-Type": "application/json" }, body })
        : route.continue(),
    );
    await page.goto("/ui/");
    await page.getByText("the catalog is away").waitFor();
    await page.getByText("r-1").waitFor();
    await checkAccessible(page);
    isAway = false;
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
  });

  test("what is off is listed with its reason: once, and then where somebody asks", async () => {
    const { page } = await open(engines.empty);
    await page.goto("/ui/");
    const section = page.getByRole("group").filter({ hasText: "Not set up" });
    const reason = section.getByText("ENGINE_SECRET_KEY is not set");
    await reason.waitFor();
    expect(await reason.textContent()).not.toContain("`");
    await reason.getByText("openssl rand -base64 32", { exact: true }).and(page.locator("code")).waitFor();
    await page.reload();
    const heading = page.getByRole("heading", { name: "Not set up" });
    await heading.waitFor();
    expect(await reason.isVisible()).toBe(false);
    await heading.click();
    await reason.waitFor();
    await page.reload();
    await reason.waitFor();
    await section.locator("summary").focus();
    await page.keyboard.press("Enter");
    await reason.waitFor({ state: "hidden" });
    await page.reload();
    await heading.waitFor();
    expect(await reason.isVisible()).toBe(false);
  });

  test("what is off could not be read: it is said, and asked again", async () => {
    const { page, expectProblem } = await open(engines.filled);
    expectProblem("500");
    let isBroken = true;
    const body = JSON.stringify({ error: { code: "internal", message: "no such records", request_id: "r-2" } });
    await page.route("**/v1/capabilities", (route) =>
      isBroken
        ? route.fulfill({ status: 500, headers: { "Content-Type": "application/json" }, body })
        : route.continue(),
    );
    await page.goto("/ui/");
    const alert = page.getByRole("alert").filter({ hasText: "What is not set up could not be read." });
    await alert.getByText("no such records").waitFor();
    await alert.getByText("r-2").waitFor();
    await page.getByRole("row", { name: /^requests 2 / }).waitFor();
    await checkAccessible(page);
    isBroken = false;
    await alert.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByText("Stored credentials").waitFor();
    expect(await alert.count()).toBe(0);
  });

  test("where rows are visible later, the page that takes files says so", async () => {
    const later = "Rows are shown a moment after they are stored";
    const staged = await start({ ENGINE_INGEST_MODE: "staged" });
    try {
      const { page } = await open(staged);
      await page.goto("/ui/catalog?table=events&part=ingest");
      await page.getByText(later).waitFor();
      await checkAccessible(page);
    } finally {
      for (const one of visits.splice(0)) await one.end();
      await staged.stop();
    }
    const { page } = await open(engines.filled);
    await page.goto("/ui/catalog?table=events&part=ingest");
    await page.getByText("Drop a file of NDJSON here").waitFor();
    await page.waitForLoadState("networkidle");
    expect(await page.getByText(later).count()).toBe(0);
  });

  test("a command is copied", async () => {
    const { page } = await open(engines.empty);
    await page.goto("/ui/");
    await page.getByRole("button", { name: "Copy: Query with curl" }).click();
    await expect
      .poll(() => page.evaluate<string>("navigator.clipboard.readText()"))
      .toContain(`curl ${engines.empty.url}/v1/query`);
  });
});
