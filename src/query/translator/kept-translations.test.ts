import { expect, test } from "vitest";
import type { KqlRequest, KqlTranslation } from "../kql/contract.ts";
import { keepTranslations } from "./kept-translations.ts";
import type { TextBounds, Translator } from "./translator.ts";

const BOUNDS = {} as TextBounds;

/** A translator that counts what it is asked. */
function counting(readsNow: boolean): { translator: Translator; asked: string[] } {
  const asked: string[] = [];
  const translator: Translator = {
    names: (text) => {
      asked.push(`names ${text}`);
      return Promise.resolve({ tables: ["t"], needsAllTables: false });
    },
    translate: ({ text, nowNs }): Promise<KqlTranslation> => {
      asked.push(`translate ${text}`);
      return Promise.resolve({ kind: "query", sql: `SELECT ${nowNs}`, columns: [], macros: [], readsNow });
    },
    warm: () => undefined,
    pid: () => undefined,
    close: () => Promise.resolve(),
  };
  return { translator: keepTranslations(translator), asked };
}

const request = (more: Partial<KqlRequest> = {}): KqlRequest => ({
  text: "t | take 1",
  tables: [{ name: "t", columns: [{ name: "a", type: { kind: "long" } }] }],
  tableNames: ["t"],
  nowNs: 1n,
  keys: [],
  ...more,
});

test("the same text over the same tables is translated once", async () => {
  const { translator, asked } = counting(false);
  await translator.names("t | take 1", BOUNDS);
  await translator.names("t | take 1", BOUNDS);
  const first = await translator.translate(request(), BOUNDS);
  expect(await translator.translate(request({ nowNs: 2n }), BOUNDS)).toEqual(first);
  expect(asked).toEqual(["names t | take 1", "translate t | take 1"]);
});

test("over other tables, or with other keys, it is another", async () => {
  const { translator, asked } = counting(false);
  await translator.translate(request(), BOUNDS);
  const tables = [{ name: "t", columns: [{ name: "a", type: { kind: "real" } as const }] }];
  await translator.translate(request({ tables }), BOUNDS);
  await translator.translate(request({ keys: [["a"]] }), BOUNDS);
  expect(asked).toHaveLength(3);
});

test("one that the moment is in is made anew", async () => {
  const { translator } = counting(true);
  expect(await translator.translate(request(), BOUNDS)).toMatchObject({ sql: "SELECT 1" });
  expect(await translator.translate(request({ nowNs: 2n }), BOUNDS)).toMatchObject({ sql: "SELECT 2" });
});
