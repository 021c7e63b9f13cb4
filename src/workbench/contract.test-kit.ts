import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Caller } from "../auth/caller.ts";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { systemRandom } from "../core/random.ts";
import { WORKBENCH_LIMITS } from "./limits.ts";
import { QueryHistory, type RunQuery } from "./query-history.ts";
import { SavedQueries, type SavedQueryFields } from "./saved-queries.ts";
import { UserSettings } from "./user-settings.ts";

const callerOf = (subject: string, more: Partial<Caller> = {}): Caller => ({
  subject,
  kind: "session",
  role: "read",
  databases: undefined,
  ...more,
});
const ANN = callerOf("ann");
const BEN = callerOf("ben");
const ADMIN = callerOf("root", { role: "admin" });
const ANN_OF_A = callerOf("ann", { databases: ["a"] });
const BEN_OF_A = callerOf("ben", { databases: ["a"] });
const OF_NOTHING = callerOf("ann", { databases: [] });
const ALL = { limit: 1_000 };
const MISSING = "01890a5d-ac96-774b-bcce-b302099a8057";

const query = (more: Partial<SavedQueryFields> = {}): SavedQueryFields => ({
  name: "it",
  description: "",
  language: "sql",
  text: "SELECT 1",
  database: "a",
  shared: false,
  ...more,
});
const ran = (more: Partial<RunQuery> = {}): RunQuery => ({
  language: "sql",
  text: "SELECT 1",
  database: "a",
  outcome: "ok",
  rows: undefined,
  elapsedMs: undefined,
  ...more,
});

/** What is kept for people, on every driver of the catalog. */
export function workbenchContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the workbench on ${driver}`, () => {
    let opened: OpenedCatalog;
    let saved: SavedQueries;
    let history: QueryHistory;
    let settings: UserSettings;
    beforeEach(async () => {
      opened = await open();
      const newId = uuidV7Source(systemClock, systemRandom);
      const { catalog } = opened;
      const { records } = catalog;
      saved = new SavedQueries({ catalog, records, newId });
      history = new QueryHistory({ records, newId });
      settings = new UserSettings(records);
    });
    afterEach(() => opened.close());

    const codeOf = async (promise: Promise<unknown>) =>
      await promise.then(
        () => "done",
        (error: unknown) => (error as { code: string }).code,
      );
    const namesOf = async (caller: Caller, search?: string) =>
      (await saved.list({ ...ALL, search }, caller)).map(({ name }) => name);

    it("shows saved queries to their owner, those that are shared to who may use their database, all to no one else", async () => {
      await saved.create(query({ name: "own" }), ANN);
      const shared = await saved.create(query({ name: "shared", shared: true }), ANN);
      await saved.create(query({ name: "shared in B", shared: true, database: "B" }), ANN);
      expect(await namesOf(ANN)).toEqual(["shared in B", "shared", "own"]);
      expect(await namesOf(BEN)).toEqual(["shared in B", "shared"]);
      expect(await namesOf(BEN_OF_A)).toEqual(["shared"]);
      expect(await namesOf(ANN_OF_A)).toEqual(["shared", "own"]);
      expect(await namesOf(OF_NOTHING)).toEqual([]);
      expect(await saved.get(shared.id, BEN)).toMatchObject({ name: "shared", owner: "ann", database: "a" });
      expect(await codeOf(saved.get(shared.id, OF_NOTHING))).toBe("not_found");
      const [, , own] = await saved.list(ALL, ANN);
      expect(await codeOf(saved.get(own?.id ?? "", BEN))).toBe("not_found");
      expect((await saved.get(own?.id ?? "", ADMIN)).name).toBe("own");
    });

    it("lets the owner and admins change and delete one, and nobody move it to a database that is not theirs", async () => {
      const { id } = await saved.create(query({ shared: true }), ANN);
      expect(await saved.change(id, { name: "new", text: "SELECT 2", database: "C" }, ANN)).toMatchObject({
        name: "new",
        text: "SELECT 2",
        database: "c",
        shared: true,
      });
      expect(await codeOf(saved.change(id, { name: "x" }, BEN))).toBe("forbidden");
      expect(await codeOf(saved.change(id, { name: "x" }, BEN_OF_A))).toBe("not_found");
      expect(await codeOf(saved.remove(id, BEN))).toBe("forbidden");
      await saved.change(id, { database: "a" }, ADMIN);
      expect(await codeOf(saved.change(id, { database: "b" }, ANN_OF_A))).toBe("database_not_found");
      expect(await codeOf(saved.create(query({ database: "b" }), ANN_OF_A))).toBe("database_not_found");
      await saved.remove(id, ANN_OF_A);
      for (const gone of [id, MISSING]) expect(await codeOf(saved.remove(gone, ANN))).toBe("not_found");
    });

    it("finds what is searched for, and takes no text of it for a pattern", async () => {
      for (const [name, text] of [
        ["100%", "SELECT 1"],
        ["1000", "SELECT a_b"],
        ["Straße Ä", "select aXb"],
        ["!bang", "x"],
      ] as const) {
        await saved.create(query({ name, text }), ANN);
      }
      expect(await namesOf(ANN, "100%")).toEqual(["100%"]);
      expect(await namesOf(ANN, "A_B")).toEqual(["1000"]);
      expect(await namesOf(ANN, "Straße Ä")).toEqual(["Straße Ä"]);
      expect(await namesOf(ANN, "straße")).toEqual(["Straße Ä"]);
      expect(await namesOf(ANN, "!")).toEqual(["!bang"]);
      expect(await namesOf(ANN, "' OR 1=1 --")).toEqual([]);
    });

    it("keeps of a history its last entries, of the last days, and shows it to nobody else", async () => {
      await opened.catalog.records.write({
        sql:
          "INSERT INTO query_history (owner, id, ran_at_ms, language, query_text, query_database, outcome) " +
          "VALUES ('ann', '00000000-0000-7000-8000-000000000000', ?, 'sql', 'old', 'a', 'ok')",
        values: [{ nowPlusMs: -WORKBENCH_LIMITS.historyMs - 1 }],
      });
      expect(await history.list(ALL, ANN)).toEqual([]);
      for (let n = 0; n < 5; n++) await history.add(ran({ text: `q${n}`, rows: n, elapsedMs: 7 }), ANN);
      const [row] = await opened.catalog.records.rows("SELECT count(*) AS n FROM query_history");
      expect(Number(row?.["n"])).toBe(5);
      expect((await history.list({ limit: 2 }, ANN)).map(({ text, rows }) => [text, rows])).toEqual([
        ["q4", 4],
        ["q3", 3],
      ]);
      expect((await history.list({ ...ALL, search: "Q1" }, ANN)).map(({ text }) => text)).toEqual(["q1"]);
      for (const other of [BEN, ADMIN]) expect(await history.list(ALL, other)).toEqual([]);
      await history.add(ran({ database: "B", outcome: "parse_error" }), ANN);
      expect(await history.list(ALL, ANN_OF_A)).toHaveLength(5);
      expect(await codeOf(history.add(ran({ database: "b" }), ANN_OF_A))).toBe("forbidden");

      const [newest] = await history.list(ALL, ANN);
      await history.forget(BEN, newest?.id);
      expect(await history.list(ALL, ANN)).toHaveLength(6);
      await history.forget(ANN, newest?.id);
      expect(await history.list(ALL, ANN)).toHaveLength(5);
      await history.forget(ANN);
      expect(await history.list(ALL, ANN)).toEqual([]);
    });

    it("forgets the oldest of too many", async () => {
      const { historyEntries } = WORKBENCH_LIMITS;
      for (let n = 0; n < historyEntries + 3; n++) await history.add(ran({ text: `q${n}` }), ANN);
      const kept = await history.list({ limit: 2 * historyEntries }, ANN);
      expect([kept.length, kept[0]?.text, kept.at(-1)?.text]).toEqual([historyEntries, `q${historyEntries + 2}`, "q3"]);
    });

    it("keeps settings of each alone, up to their size", async () => {
      expect(await settings.get(ANN)).toEqual({});
      await settings.save({ theme: "dark" }, ANN);
      await settings.save({ theme: "light", "ä\u2028": [1, null] }, ANN);
      expect(await settings.get(ANN)).toEqual({ theme: "light", "ä\u2028": [1, null] });
      expect(await settings.get(BEN)).toEqual({});
      const text = "x".repeat(WORKBENCH_LIMITS.settingsBytes - '{"a":""}'.length);
      expect(await settings.save({ a: text }, ANN)).toEqual({ a: text });
      expect(await codeOf(settings.save({ a: `${text}x` }, ANN))).toBe("body_too_large");
    });
  });
}
