/**
 * Takes the pictures of the pages for `docs/web.md`: a server with made-up rows, a browser, a PNG for each page and look.
 * Needs chromium, and pngquant (`apt-get install pngquant`), which makes them a third as large.
 */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { chromiumLaunch } from "../src/core/capabilities.test-kit.ts";
import { systemClock } from "../src/core/clock.ts";
import { packText } from "../src/web/client/base/packed-text.ts";
import { ingest } from "../test/support/client.ts";
import { startEngine, temporaryHome } from "../test/support/engine.ts";
import { ordersUntil, OTHER_BOARDS, requestsUntil, SHOP_BOARD } from "./pictures/shop.ts";

const TOKEN = "a-token-for-pictures";
const MOST_BYTES = 120 * 1024;

const LOOKS = [
  { name: "light", colorScheme: "light", width: 1_280, height: 880 },
  { name: "dark", colorScheme: "dark", width: 1_280, height: 880 },
  { name: "narrow", colorScheme: "light", width: 360, height: 740 },
] as const;

const BY_ROUTE = `-- How quickly does each route answer?
SELECT route,
       count(*) AS requests,
       round(median(duration_ms), 1) AS p50_ms,
       round(quantile_cont(duration_ms, 0.99), 1) AS p99_ms,
       count(*) FILTER (status >= 500) AS failed,
       max(at) AS latest
FROM requests
GROUP BY route
ORDER BY requests DESC`;

const BY_TIME = `SELECT time_bucket(INTERVAL '5 minutes', at) AS at,
       count(*) FILTER (region LIKE 'eu%') AS europe,
       count(*) FILTER (region LIKE 'us%') AS america,
       count(*) FILTER (region LIKE 'ap%') AS asia
FROM requests
GROUP BY 1
ORDER BY 1`;

/** A page, and what is done until it is worth a picture. */
type Picture = { name: string; path: string; ready: (page: Page) => Promise<void> };

async function post(url: string, path: string, body: unknown): Promise<{ id: string }> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${TOKEN}` };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as { id: string };
}

/** Fills the server. Returns the id of the dashboard that is shown. */
async function fill(url: string): Promise<string> {
  const nowMs = systemClock.nowMs();
  const auth = { Authorization: `Bearer ${TOKEN}`, "X-Engine-Infer-Types": "true" };
  for (const [table, rows, database] of [
    ["requests", requestsUntil(nowMs), "default"],
    ["orders", ordersUntil(nowMs, 1_400), "default"],
    ["refunds", ordersUntil(nowMs, 90), "default"],
    ["invoices", ordersUntil(nowMs, 320), "billing"],
  ] as const) {
    const { status, text } = await ingest(url, table, rows, { ...auth, "X-Database": database });
    if (status !== 200) throw new Error(`${table} was not stored: ${text}`);
  }
  for (const board of OTHER_BOARDS) await post(url, "/v1/dashboards", board);
  return (await post(url, "/v1/dashboards", SHOP_BOARD)).id;
}

async function runQuery(page: Page): Promise<void> {
  await page.getByRole("textbox", { name: "Query" }).waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
}

async function pictures(board: string): Promise<Picture[]> {
  return [
    {
      name: "overview",
      path: "/ui/",
      ready: async (page) => {
        await page.getByRole("row", { name: /^requests [\d,]+ / }).waitFor();
        await page.getByRole("heading", { name: "Not set up" }).waitFor();
      },
    },
    {
      name: "query",
      path: `/ui/query#q=${await packText(BY_ROUTE)}`,
      ready: async (page) => {
        await runQuery(page);
        await page.getByRole("gridcell", { name: "POST /checkout" }).waitFor();
      },
    },
    {
      name: "query-chart",
      path: `/ui/query#q=${await packText(BY_TIME)}`,
      ready: async (page) => {
        await runQuery(page);
        await page.getByRole("tab", { name: "Chart" }).click();
        await page.locator(".u-legend").scrollIntoViewIfNeeded();
      },
    },
    {
      name: "explore",
      path: "/ui/explore?table=requests&from=now-6h&to=now",
      ready: async (page) => await page.locator(".u-over").waitFor(),
    },
    {
      name: "catalog",
      path: "/ui/catalog?table=requests",
      ready: async (page) => await page.getByText("duration_ms").first().waitFor(),
    },
    {
      name: "dashboards",
      path: "/ui/dashboards",
      ready: async (page) => await page.getByRole("link", { name: "Shop" }).waitFor(),
    },
    {
      name: "dashboard",
      path: `/ui/dashboards/${board}`,
      // Panels further down run once they are in view.
      ready: async (page) => await page.locator(".panel-body").first().getByText(/\d/).first().waitFor(),
    },
  ];
}

async function take(page: Page, name: string): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.evaluate("document.fonts.ready.then(() => document.activeElement?.blur())");
  const path = fileURLToPath(new URL(`../docs/pictures/${name}.png`, import.meta.url));
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  execFileSync("pngquant", ["--force", "--strip", "--speed", "1", "--output", path, "256", path]);
  const { size } = statSync(path);
  console.log(`docs/pictures/${name}.png: ${Math.round(size / 1024)} kB`);
  if (size > MOST_BYTES) throw new Error(`${name}.png has more than ${MOST_BYTES} bytes`);
}

async function takeAll(browser: Browser, url: string, board: string): Promise<void> {
  for (const { name: look, colorScheme, width, height } of LOOKS) {
    const context = await browser.newContext({
      baseURL: url,
      colorScheme,
      viewport: { width, height },
      timezoneId: "UTC",
      locale: "en-GB",
    });
    const page = await context.newPage();
    await page.goto("/ui/");
    await page.getByRole("heading", { name: "Sign in to engine" }).waitFor();
    await take(page, `sign-in-${look}`);
    await page.getByRole("tab", { name: "Token" }).click();
    await page.getByRole("textbox", { name: "Token" }).fill(TOKEN);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    // Open when it is first seen, which is now: closed in the picture.
    await page.getByRole("heading", { name: "Not set up" }).waitFor();
    for (const { name, path, ready } of await pictures(board)) {
      await page.goto("about:blank");
      await page.goto(path);
      await ready(page);
      await take(page, `${name}-${look}`);
    }
    await context.close();
  }
}

const { home, remove } = await temporaryHome();
const engine = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: `${TOKEN}:admin`, ENGINE_WEB: "on" } });
const browser = await chromium.launch(chromiumLaunch());
try {
  await takeAll(browser, engine.url, await fill(engine.url));
} finally {
  await browser.close();
  await engine.stop();
  await remove();
}
