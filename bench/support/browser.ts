import { chromium, type Browser, type Page } from "playwright-core";
import { chromiumLaunch } from "../../src/core/capabilities.test-kit.ts";

/** What the pages of a benchmark are opened in: the same window for all of them. */
export const WINDOW = { viewport: { width: 1_400, height: 900 } };

/** The browser that is installed; throws where there is none. */
export async function openBrowser(): Promise<Browser> {
  return await chromium.launch(chromiumLaunch());
}

/** Works with a page of its own, which is closed afterwards. */
export async function withPage<T>(browser: Browser, work: (page: Page) => Promise<T>): Promise<T> {
  const page = await browser.newPage(WINDOW);
  try {
    return await work(page);
  } finally {
    await page.close();
  }
}
