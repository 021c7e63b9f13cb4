import axe from "axe-core";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { expect } from "vitest";
import { chromiumLaunch } from "../../src/core/capabilities.test-kit.ts";

/**
 * A real browser (Debian's chromium) at a real server. Whatever a page does, it may not ask another host, break its own
 * policy, write an error to the console or throw: `end` checks that of every page that was opened.
 */
export async function startBrowser(): Promise<Browser> {
  return await chromium.launch(chromiumLaunch());
}

/** `both` begins light, and `checkAccessible` looks at the page in the dark as well. */
export type Look = { scheme: "light" | "dark" | "both"; width: number };

/** Both themes, on a screen and on a small telephone. Themes differ in colours only, so one page shows both. */
export const LOOKS: readonly Look[] = [
  { scheme: "both", width: 1_280 },
  { scheme: "both", width: 360 },
];

/** Pages that are looked at in both themes. */
const inBothSchemes = new WeakSet<Page>();

export type Visit = {
  page: Page;
  context: BrowserContext;
  /** Console errors with these words are part of the test. */
  expectProblem: (words: string) => void;
  /** Closes the page, and fails for anything that it did wrong. */
  end: () => Promise<void>;
};

export async function visit(browser: Browser, url: string, look: Partial<Look> = {}): Promise<Visit> {
  const context = await browser.newContext({
    baseURL: url,
    colorScheme: look.scheme === "dark" ? "dark" : "light",
    viewport: { width: look.width ?? 1_280, height: 800 },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  // On a machine that is busy with something else a page may take its time.
  context.setDefaultTimeout(20_000);
  const problems: string[] = [];
  const expected: string[] = [];
  await context.exposeFunction("engineTestProblem", (text: string) => void problems.push(text));
  await context.addInitScript(
    "addEventListener('securitypolicyviolation', (e) => engineTestProblem(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`))",
  );
  const watch = (page: Page) => {
    if (look.scheme === "both") inBothSchemes.add(page);
    page.on("request", (request) => {
      const asked = new URL(request.url());
      const isOwn = asked.origin === url || asked.protocol === "data:" || asked.protocol === "blob:";
      if (!isOwn) problems.push(`asked another host: ${request.url()}`);
    });
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => problems.push(`threw: ${error.stack ?? error.message}`));
  };
  context.on("page", watch);
  const page = await context.newPage();
  return {
    page,
    context,
    expectProblem: (words) => void expected.push(words),
    end: async () => {
      await context.close();
      expect(problems.filter((problem) => !expected.some((words) => problem.includes(words)))).toEqual([]);
    },
  };
}

const { source: AXE } = axe;

/** Everything that the guidelines ask for, and of that what depends on colours. */
const ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** Explore lists rows in groups, all of them alike: the first group stands for the others, or axe takes seconds. */
const LIKE_OTHERS = [".row-group:nth-of-type(n + 2)"];

/** Resolves when no colour changes any more; what blinks or turns goes on for ever. */
const TRANSITIONS_END =
  "Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished))";

/** Fails for what axe finds wrong with the page for people who use it by keyboard, screen reader or with weak eyes. */
export async function checkAccessible(page: Page): Promise<void> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(AXE);
  expect(await violations(page, ALL_RULES)).toEqual([]);
  if (!inBothSchemes.has(page)) return;
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(TRANSITIONS_END);
  expect(await violations(page, COLOUR_RULES)).toEqual([]);
  await page.emulateMedia({ colorScheme: "light" });
}

async function violations(page: Page, runOnly: readonly string[]): Promise<string[]> {
  const options = { runOnly, resultTypes: ["violations"] };
  const found = await page.evaluate<{ id: string; nodes: { html: string; failureSummary: string }[] }[]>(
    `axe.run({ exclude: ${JSON.stringify(LIKE_OTHERS)} }, ${JSON.stringify(options)}).then((r) => r.violations)`,
  );
  return found.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`,
  );
}

/** Nothing reaches beyond the side of the screen. */
export async function checkFits(page: Page): Promise<void> {
  const beyond = await page.evaluate<number>(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  expect(beyond).toBeLessThanOrEqual(0);
}

/** What the focus is on, as a screen reader would name it. */
export async function focused(page: Page): Promise<string> {
  return await page.evaluate<string>(
    "(() => { const e = document.activeElement; return (e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent ?? '').trim(); })()",
  );
}
