import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ENTER, startFirefox, type Firefox } from "./firefox.test-kit.ts";

const lacks = lacking("firefox");
const TOKEN = "a-token-that-writes";

/** The other tests drive chromium: this is what another engine makes of the policy, the worker and the editor. */
describe.skipIf(lacks !== undefined)(`pages in Firefox${lacks === undefined ? "" : `: ${lacks}`}`, () => {
  let engine: Engine;
  let firefox: Firefox;
  let removeHome: () => Promise<void>;
  beforeAll(async () => {
    const { home, remove } = await temporaryHome();
    removeHome = remove;
    engine = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: `${TOKEN}:write` } });
    await ingest(engine.url, "events", '{"word":"of firefox"}', { Authorization: `Bearer ${TOKEN}` });
    firefox = await startFirefox();
  });
  afterAll(async () => {
    await firefox?.stop();
    await engine?.stop();
    await removeHome?.();
  });

  /** Waits until the expression is true in the page. */
  async function until(expression: string): Promise<void> {
    await expect
      .poll(() => firefox.evaluate(`Boolean(${expression})`), { timeout: 15_000, message: expression })
      .toBe(true);
  }

  test("signing in, and a query with its rows", async () => {
    await firefox.goto(`${engine.url}/ui/query`);
    const tab = "[...document.querySelectorAll('[role=tab]')].find((one) => one.textContent === 'Token')";
    await until(tab);
    await firefox.evaluate(`${tab}.click()`);
    await until("document.querySelector('[role=tabpanel] input')");
    await firefox.evaluate("document.querySelector('[role=tabpanel] input').focus()");
    await firefox.type(TOKEN + ENTER);
    await until("document.querySelector('.cm-content')");
    await firefox.evaluate("document.querySelector('.cm-content').focus()");
    await firefox.type("SELECT 9007199254740993 AS large, word FROM events");
    await firefox.pressWithControl(ENTER);
    const cells = "[...document.querySelectorAll('[role=gridcell]')].map((one) => one.textContent).join('|')";
    await expect.poll(() => firefox.evaluate(cells), { timeout: 15_000 }).toContain("9007199254740993|of firefox");
    expect(firefox.problems).toEqual([]);
  });
});
