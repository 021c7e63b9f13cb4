import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking, type CapabilityName } from "../../src/core/capabilities.test-kit.ts";
import { packText } from "../../src/web/client/base/packed-text.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** A browser that playwright does not drive. */
export type DrivenBrowser = {
  goto: (url: string) => Promise<void>;
  /** The value of an expression: a text, a number, a boolean, or nothing. */
  evaluate: (expression: string) => Promise<unknown>;
  /** Types what is one key for each character; `ENTER` and the like are among them. */
  type: (text: string) => Promise<void>;
  /** With the key Control held. */
  pressWithControl: (key: string) => Promise<void>;
  /** What pages wrote to the console as errors, or threw. */
  problems: () => Promise<unknown>;
  stop: () => Promise<void>;
};

/** Keys without a character, as WebDriver names them. */
const ENTER = "\uE006";
export const CONTROL = "\uE009";

/** What WebDriver does for one key. */
export function pressed(key: string): { type: string; value: string }[] {
  return [
    { type: "keyDown", value: key },
    { type: "keyUp", value: key },
  ];
}

const TOKEN = "a-token-that-writes";

/** The other tests drive chromium: this is what another engine makes of the policy, the worker and the editor. */
export function describePagesIn(name: string, capability: CapabilityName, start: () => Promise<DrivenBrowser>): void {
  const lacks = lacking(capability);
  describe.skipIf(lacks !== undefined)(`pages in ${name}${lacks === undefined ? "" : `: ${lacks}`}`, () => {
    let engine: Engine;
    let browser: DrivenBrowser;
    let removeHome: () => Promise<void>;
    beforeAll(async () => {
      const { home, remove } = await temporaryHome();
      removeHome = remove;
      engine = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: `${TOKEN}:write` } });
      await ingest(engine.url, "events", `{"word":"of ${name}"}`, { Authorization: `Bearer ${TOKEN}` });
      browser = await start();
    });
    afterAll(async () => {
      await browser?.stop();
      await engine?.stop();
      await removeHome?.();
    });

    /** Waits until the expression is true in the page. */
    async function until(expression: string): Promise<void> {
      await expect
        .poll(() => browser.evaluate(`Boolean(${expression})`), { timeout: 15_000, message: expression })
        .toBe(true);
    }

    test("signing in, and a query with its rows", async () => {
      await browser.goto(`${engine.url}/ui/query`);
      const tab = "[...document.querySelectorAll('[role=tab]')].find((one) => one.textContent === 'Token')";
      await until(tab);
      await browser.evaluate(`${tab}.click()`);
      await until("document.querySelector('[role=tabpanel] input')");
      await browser.evaluate("document.querySelector('[role=tabpanel] input').focus()");
      await browser.type(TOKEN + ENTER);
      await until("document.querySelector('.cm-content')");
      await browser.evaluate("document.querySelector('.cm-content').focus()");
      await browser.type("SELECT 9007199254740993 AS large, word, at FROM events");
      await browser.pressWithControl(ENTER);
      const cells = "[...document.querySelectorAll('[role=gridcell]')].map((one) => one.textContent).join('|')";
      await expect.poll(() => browser.evaluate(cells), { timeout: 15_000 }).toContain(`9007199254740993|of ${name}`);
      const chart = "[...document.querySelectorAll('[role=tab]')].find((one) => one.textContent === 'Chart')";
      await browser.evaluate(`${chart}.click()`);
      await until("document.querySelector('.chart .u-over')");
      expect(await browser.problems()).toEqual([]);
      // Texts are packed into the address, and read from it.
      await until("location.hash.startsWith('#q=')");
      await browser.goto(`${engine.url}/ui/`);
      await browser.goto(`${engine.url}/ui/query#q=${await packText("SELECT 'of an address'")}`);
      await until("document.querySelector('.cm-content')?.textContent.includes('of an address')");
      expect(await browser.problems()).toEqual([]);
    });
  });
}
