import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkAccessible, checkFits, LOOKS, startBrowser, visit, type Look, type Visit } from "./browser.test-kit.ts";

const lacks = lacking("chromium");
const DASHBOARDS = "/v1/dashboards";

let browser: Browser;
let engine: Engine;
let removeHome: () => Promise<void>;
const visits: Visit[] = [];

async function open(path: string, look?: Partial<Look>): Promise<Visit> {
  const opened = await visit(browser, engine.url, look);
  visits.push(opened);
  await opened.page.goto(path);
  return opened;
}

type Json = Record<string, unknown>;

async function send(method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await fetch(engine.url + path, {
    method,
    headers: { "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Json;
}

const query = (text: string) => [{ language: "sql", text, database: "default" }];
const panel = (type: string, title: string, y: number, queries: unknown[], options: Json = {}) => ({
  id: title.toLowerCase(),
  type,
  title,
  grid: { x: 0, y, w: 12, h: 6 },
  queries,
  options,
});

async function made(name: string): Promise<string> {
  const { id } = await send("POST", DASHBOARDS, {
    name,
    panels: [
      panel("table", "Levels", 0, query("SELECT level, count(*) AS n FROM events GROUP BY level ORDER BY level")),
      panel("stat", "Rows", 6, query("SELECT count(*) AS rows FROM events WHERE level = $level")),
      panel("bar", "Broken", 12, query("SELECT nosuch FROM events")),
      panel("hologram", "Unknown", 18, []),
    ],
    settings: { variables: [{ name: "level", type: "list", values: ["info", "warn's"], default: "info" }] },
  });
  return String(id);
}

describe.skipIf(lacks !== undefined)(`dashboards in a browser${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  beforeAll(async () => {
    browser = await startBrowser();
    const { home, remove } = await temporaryHome();
    removeHome = remove;
    engine = await startEngine({ home });
    const rows = Array.from({ length: 30 }, (_, n) => JSON.stringify({ n, level: n % 3 === 0 ? "info" : "warn's" }));
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

  test.each(LOOKS)("a list, and panels each of which fails alone ($scheme, $width wide)", async (look) => {
    const id = await made(`Seen ${look.scheme} ${look.width}`);
    const list = await open("/ui/dashboards", look);
    await list.page.getByRole("link", { name: `Seen ${look.scheme} ${look.width}` }).waitFor();
    await checkAccessible(list.page);
    await checkFits(list.page);
    const { page, expectProblem } = await open(`/ui/dashboards/${id}`, look);
    expectProblem("400");
    await page.getByRole("heading", { name: `Seen ${look.scheme} ${look.width}` }).waitFor();
    await page
      .getByRole("gridcell", { name: "warn's" })
      .or(page.getByRole("cell", { name: "warn's" }))
      .first()
      .waitFor();
    await checkAccessible(page);
    await checkFits(page);
    // Panels further down run once they are in view.
    await page.getByRole("heading", { name: "Broken" }).scrollIntoViewIfNeeded();
    await page
      .getByText(/nosuch/)
      .first()
      .waitFor();
    await page.getByRole("heading", { name: "Unknown" }).scrollIntoViewIfNeeded();
    await page
      .getByText(/hologram/)
      .first()
      .waitFor();
  });

  test("a variable reaches the query as a value, whatever it holds", async () => {
    const { page, expectProblem } = await open(`/ui/dashboards/${await made("Variables")}`);
    expectProblem("400");
    const rows = page.getByRole("region", { name: "Rows" }).or(page.getByRole("article", { name: "Rows" }));
    await rows.getByText("10", { exact: true }).waitFor();
    await page.getByRole("combobox", { name: "level" }).click();
    await page.getByRole("option", { name: "warn's" }).click();
    await rows.getByText("20", { exact: true }).waitFor();
  });

  test("a row is shown with its numbers as they are", async () => {
    const { id } = await send("POST", DASHBOARDS, {
      name: "A row",
      panels: [panel("table", "Numbers", 0, query("SELECT 12.5 AS half, 9007199254740993 AS large, 'x' AS word"))],
    });
    const { page } = await open(`/ui/dashboards/${String(id)}`);
    await page.getByRole("gridcell", { name: "12.5" }).dblclick();
    const dialog = page.getByRole("dialog", { name: "Numbers: a row" });
    for (const text of ["half: 12.5", "large: 9007199254740993", 'word: "x"']) {
      await dialog.getByText(text, { exact: true }).waitFor();
    }
    await checkAccessible(page);
    await dialog.getByRole("button", { name: "Copy the row as JSON" }).click();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(copied).toBe('{"half":12.5,"large":9007199254740993,"word":"x"}');
  });

  test("a variable that is typed leaves another that was chosen meanwhile", async () => {
    const { id } = await send("POST", DASHBOARDS, {
      name: "Typed",
      panels: [panel("table", "Both", 0, query("SELECT $a || ' ' || $b AS both"))],
      settings: {
        variables: [
          { name: "a", type: "text", default: "first" },
          { name: "b", type: "list", values: ["one", "two"], default: "one" },
        ],
      },
    });
    const { page } = await open(`/ui/dashboards/${String(id)}`);
    await page.getByRole("gridcell", { name: "first one" }).waitFor();
    await page.getByRole("combobox", { name: "b", exact: true }).click();
    const two = page.getByRole("option", { name: "two" });
    await two.waitFor();
    // Both within the moment after which a typed text counts.
    await page.evaluate(`
      const input = [...document.querySelectorAll(".variables form input")][0];
      input.value = "second";
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    `);
    await two.click({ timeout: 450 });
    await page.getByRole("gridcell", { name: "second two" }).waitFor();
    const entries = await page.evaluate<number>("history.length");
    const typed = page.getByRole("textbox", { name: "a" });
    await typed.fill("third");
    await typed.press("Enter");
    await page.getByRole("gridcell", { name: "third two" }).waitFor();
    await typed.press("Enter");
    await page.waitForTimeout(700);
    expect(await page.evaluate<number>("history.length")).toBe(entries + 1);
  });

  test("a variable whose query failed is read again with the panels", async () => {
    const variable = { name: "late", type: "query", query: query("SELECT DISTINCT word FROM later")[0] };
    const { id } = await send("POST", DASHBOARDS, {
      name: "Late",
      panels: [panel("table", "Late", 0, query("SELECT $late AS late"))],
      settings: { variables: [variable] },
    });
    const { page, expectProblem } = await open(`/ui/dashboards/${String(id)}`);
    expectProblem("40");
    await page.locator(".variable-problem").waitFor();
    await ingest(engine.url, "later", '{"word":"here"}');
    await page.getByRole("button", { name: "Run all panels again" }).click();
    await page.getByRole("gridcell", { name: "here" }).waitFor();
    expect(await page.locator(".variable-problem").count()).toBe(0);
  });

  test("charts write their times in UTC and in 24 hours", async () => {
    const text =
      "SELECT TIMESTAMPTZ '2026-01-01 13:00:00Z' + n * INTERVAL 1 HOUR AS at, 1 AS one, 2 AS two FROM range(12) t(n)";
    const { id } = await send("POST", DASHBOARDS, {
      name: "Zones",
      panels: [panel("bar", "Chart", 0, query(text))],
    });
    const opened = await open("/ui/dashboards");
    const { page, context } = opened;
    const session = await context.newCDPSession(page);
    await session.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Tokyo" });
    // What is on the axes is drawn.
    await page.addInitScript(`
      window.drawnTexts = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.drawnTexts.push(text);
        return fillText.call(this, text, ...place);
      };
    `);
    await page.goto(`/ui/dashboards/${String(id)}`);
    await page.locator(".panel .u-over").hover();
    const legend = page.locator(".panel .u-legend");
    await expect.poll(() => legend.textContent()).toMatch(/Time \(UTC\)2026-01-01 (1[3-9]|2[0-3]):00:00/);
    const drawn = await page.evaluate<string[]>("window.drawnTexts");
    expect(drawn).toEqual(expect.arrayContaining(["14:00", "2026-01-01", "01-02"]));
    expect(drawn.filter((one) => /[ap]m$/i.test(one))).toEqual([]);
  });

  test("a panel is moved by keys and saved; a second page hears that it is behind", async () => {
    const id = await made("Moved");
    const [first, second] = [await open(`/ui/dashboards/${id}`), await open(`/ui/dashboards/${id}`)];
    for (const [{ page, expectProblem }, key] of [
      [first, "ArrowRight"],
      [second, "ArrowDown"],
    ] as const) {
      expectProblem("400");
      expectProblem("412");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByRole("button", { name: /Move.*Levels|Levels.*move/i }).focus();
      await page.keyboard.press(key);
    }
    await first.page.getByRole("button", { name: "Save", exact: true }).click();
    await expect.poll(async () => (await send("GET", `${DASHBOARDS}/${id}`))["version"]).toBe(2);
    const { panels } = (await send("GET", `${DASHBOARDS}/${id}`)) as { panels: { id: string; grid: Json }[] };
    expect(panels.find((one) => one.id === "levels")?.grid).toMatchObject({ x: 1, w: 12 });
    await second.page.getByRole("button", { name: "Save", exact: true }).click();
    await second.page.getByRole("dialog").waitFor();
    await checkAccessible(second.page);
    expect((await send("GET", `${DASHBOARDS}/${id}`))["version"]).toBe(2);
  });

  test("the browser asks before it closes a page with changes, and only then", async () => {
    const { page, expectProblem } = await open(`/ui/dashboards/${await made("Asked")}`);
    expectProblem("400");
    const isLeft = () => page.evaluate<boolean>("dispatchEvent(new Event('beforeunload', { cancelable: true }))");
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("button", { name: "Move Levels" }).focus();
    for (const [key, expected] of [
      ["ArrowLeft", true],
      ["ArrowRight", false],
      ["ArrowLeft", true],
    ] as const) {
      await page.keyboard.press(key);
      await expect.poll(isLeft).toBe(expected);
    }
  });

  describe("changes that are not saved", () => {
    const UNSAVED = "What you see has changes that are not saved.";

    /** Moves the first panel to the right, and leaves it at that. */
    async function moved(page: Page): Promise<void> {
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByRole("button", { name: "Move Levels" }).press("ArrowRight");
      // The page knows of it. It is written later, or when the page is left.
      await page.getByRole("button", { name: "Discard" }).waitFor();
    }

    async function placeOf(id: string): Promise<unknown> {
      const { panels, version } = await send("GET", `${DASHBOARDS}/${id}`);
      const levels = (panels as { id: string; grid: Json }[]).find((one) => one.id === "levels");
      return { version, x: levels?.grid["x"] };
    }

    test("are there after a reload, until they are saved", async () => {
      const id = await made("Kept");
      const { page, context, expectProblem } = await open(`/ui/dashboards/${id}`);
      expectProblem("400");
      await moved(page);
      // At once: the page that is left writes them.
      await page.reload();
      await page.getByRole("button", { name: "Discard" }).waitFor();
      await page.goto(`/ui/dashboards/${id}`);
      await page.getByText(UNSAVED).waitFor();
      await checkAccessible(page);
      expect(await placeOf(id)).toEqual({ version: 1, x: 0 });
      await page.getByRole("button", { name: "Go on editing" }).click();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved as version 2").first().waitFor();
      expect(await placeOf(id)).toEqual({ version: 2, x: 1 });
      await page.reload();
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
      expect(await page.getByText(UNSAVED).count()).toBe(0);
      const later = await context.newPage();
      await later.goto(`/ui/dashboards/${id}`);
      await later.getByRole("button", { name: "Edit", exact: true }).waitFor();
    });

    test("are there where the last write of the page that is left has not arrived", async () => {
      const id = await made("Handed over");
      const { page, expectProblem } = await open(`/ui/dashboards/${id}`);
      expectProblem("400");
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
      await page.evaluate(
        `addEventListener("pagehide", () => {
          const lost = { put: () => ({}) };
          IDBDatabase.prototype.transaction = () => ({ objectStore: () => lost, addEventListener() {}, commit() {} });
        })`,
      );
      await moved(page);
      await page.reload();
      await page.getByRole("button", { name: "Discard" }).waitFor();
      // From the database, by a page to which nothing is handed over.
      await page.goto("about:blank");
      await page.goto(`/ui/dashboards/${id}`);
      await page.getByText(UNSAVED).waitFor();
      expect(await placeOf(id)).toEqual({ version: 1, x: 0 });
    });

    test("are gone once they are discarded", async () => {
      const id = await made("Discarded");
      const { page, expectProblem } = await open(`/ui/dashboards/${id}`);
      expectProblem("400");
      await moved(page);
      await page.reload();
      await page.getByRole("button", { name: "Discard" }).click();
      await page.reload();
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
      expect(await page.getByText(UNSAVED).count()).toBe(0);
    });

    test("are compared with what somebody else has saved meanwhile", async () => {
      const id = await made("Behind");
      const { page, expectProblem } = await open(`/ui/dashboards/${id}`);
      expectProblem("400");
      expectProblem("412");
      await moved(page);
      await send("PATCH", `${DASHBOARDS}/${id}`, { name: "Behind theirs" });
      await page.reload();
      await page.getByText("Your changes began with version 1; version 2 has been saved since.").waitFor();
      await checkAccessible(page);
      await checkFits(page);
      await page.getByRole("button", { name: "Save", exact: true }).click();
      const dialog = page.getByRole("dialog", { name: "Somebody else has saved this dashboard" });
      await dialog.getByText("The name is “Behind theirs” instead of “Behind”.").waitFor();
      await dialog.getByText("The panel “Levels” has another place or size.").waitFor();
      await dialog.getByRole("button", { name: "Go on editing" }).click();
      await page.getByRole("button", { name: "Compare" }).click();
      await dialog.getByRole("button", { name: "Take theirs, drop my changes" }).click();
      await page.getByRole("heading", { name: "Behind theirs" }).waitFor();
      expect(await placeOf(id)).toEqual({ version: 2, x: 0 });
      await page.reload();
      await page.getByRole("heading", { name: "Behind theirs" }).waitFor();
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
    });

    test("a save whose answer was lost is repeated, and is no conflict", async () => {
      const id = await made("Lost");
      const { page, expectProblem } = await open(`/ui/dashboards/${id}`);
      for (const words of ["400", "412", "ERR_FAILED"]) expectProblem(words);
      await moved(page);
      let isLost = false;
      await page.route(`**${DASHBOARDS}/${id}`, async (route) => {
        if (route.request().method() !== "PATCH" || isLost) return await route.continue();
        isLost = true;
        await route.fetch();
        await route.abort();
      });
      await page.getByRole("button", { name: "Save", exact: true }).click();
      const failed = page.getByRole("alert").filter({ hasText: "The dashboard was not saved." });
      await failed.waitFor();
      expect(await placeOf(id)).toEqual({ version: 2, x: 1 });
      await failed.getByRole("button", { name: "Retry" }).click();
      await page.getByText("Saved as version 2").first().waitFor();
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
      expect(await page.getByRole("dialog").count()).toBe(0);
      expect(await placeOf(id)).toEqual({ version: 2, x: 1 });
    });

    test("what is moved while it is being saved stays, on the new version", async () => {
      const id = await made("Busy");
      const { page, expectProblem } = await open(`/ui/dashboards/${id}`);
      expectProblem("400");
      await moved(page);
      const asked = Promise.withResolvers<void>();
      const answered = Promise.withResolvers<void>();
      await page.route(`**${DASHBOARDS}/${id}`, async (route) => {
        asked.resolve();
        await answered.promise;
        await route.continue();
      });
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await asked.promise;
      await page.getByRole("button", { name: "Move Levels" }).focus();
      await page.keyboard.press("ArrowRight");
      answered.resolve();
      await page.getByText("Saved as version 2").first().waitFor();
      expect(await placeOf(id)).toEqual({ version: 2, x: 1 });
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved as version 3").first().waitFor();
      expect(await placeOf(id)).toEqual({ version: 3, x: 2 });
    });

    describe("where one signs in", () => {
      const ADMIN = "a-token-of-an-administrator";
      const WRITER = "a-token-of-a-writer";
      let guarded: Engine;
      let removeGuarded: () => Promise<void>;
      beforeAll(async () => {
        const { home, remove } = await temporaryHome();
        removeGuarded = remove;
        guarded = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: `${ADMIN}:admin,${WRITER}:write` } });
      });
      afterAll(async () => {
        await guarded?.stop();
        await removeGuarded?.();
      });

      async function signInWith(page: Page, token: string): Promise<void> {
        await page.getByRole("tab", { name: "Token" }).click();
        await page.getByRole("textbox", { name: "Token" }).fill(token);
        await page.keyboard.press("Enter");
      }

      async function changed(name: string): Promise<Visit & { path: string }> {
        const answer = await fetch(guarded.url + DASHBOARDS, {
          method: "POST",
          headers: { "Content-Type": "application/json", Authorization: `Bearer ${ADMIN}` },
          body: JSON.stringify({ name, panels: [panel("text", "Levels", 0, [], { text: "Words" })] }),
        });
        const { id } = (await answer.json()) as { id: string };
        const opened = await visit(browser, guarded.url);
        visits.push(opened);
        opened.expectProblem("401");
        const path = `/ui/dashboards/${id}`;
        await opened.page.goto(`/ui/sign-in?return_to=${path}`);
        await signInWith(opened.page, ADMIN);
        await moved(opened.page);
        return { ...opened, path };
      }

      test("they are gone after signing out, even those of that moment", async () => {
        const { page, path } = await changed("Signed out");
        await page.getByRole("button", { name: /^Account/ }).click();
        await page.getByRole("menuitem", { name: "Sign out" }).click();
        await page.getByRole("heading", { name: "Sign in to engine" }).waitFor();
        await page.waitForTimeout(500);
        await page.goto(`/ui/sign-in?return_to=${path}`);
        await signInWith(page, ADMIN);
        await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
        expect(await page.getByText(UNSAVED).count()).toBe(0);
      });

      test("another one who signs in does not see them", async () => {
        const { page, context, path } = await changed("Another");
        // Of a session that has ended, to the same one.
        await context.clearCookies();
        await page.goto(`/ui/sign-in?return_to=${path}`);
        await signInWith(page, ADMIN);
        await page.getByText(UNSAVED).waitFor();
        await context.clearCookies();
        await page.goto(`/ui/sign-in?return_to=${path}`);
        await signInWith(page, WRITER);
        await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
        expect(await page.getByText(UNSAVED).count()).toBe(0);
      });
    });
  });
});
