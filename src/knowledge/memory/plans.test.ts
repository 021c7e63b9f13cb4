import { describe, expect, test } from "vitest";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import type { RecordStore, RecordValue } from "../../db/records.ts";
import { ALL_REALMS } from "./realms.ts";
import { MemoryStore } from "./store.ts";

/** SQLite chooses without statistics, and its reads are on the thread that serves: a walk through a memory blocks all. */
describe("a read of the memory", () => {
  const { catalog, connection } = openMemoryCatalog(new ManualClock());
  const plans: string[] = [];
  const records: Pick<RecordStore, "rows"> = {
    rows: async (sql: string, values: readonly RecordValue[] = []) => {
      const places = values.map((value) => (typeof value === "object" ? 0 : value));
      const plan = connection.all(`EXPLAIN QUERY PLAN ${sql}`, ...places).map((row) => String(row["detail"]));
      plans.push(...plan.filter((detail) => detail.includes("INDEX") || detail.startsWith("SCAN")));
      const rows = await catalog.records.rows(sql, values);
      // A full page, so that the rest of its commit is asked for.
      return sql.includes("seq <= ?") && rows.length === 0 ? [{ seq: 1 }] : rows;
    },
  };
  const store = new MemoryStore(records);
  const range = { afterSeq: 0, throughSeq: 9, limit: 1, rights: ALL_REALMS };
  const page = { after: "", limit: 10, rights: ALL_REALMS };
  const realms = ["default", "other"];

  test.each<[string, () => Promise<unknown>]>([
    ["known", () => store.known(1, "node", ["a", "b"])],
    ["knownByDuplicateKey", () => store.knownByDuplicateKey(1, ["a"])],
    ["knownEdgesOf", () => store.knownEdgesOf(1, "a")],
    ["edgesAt", () => store.edgesAt(1, "src", ["a"], page)],
    ["current", () => store.current(1, { kind: "node", id: "a" })],
    ["versions", () => store.versions(1, { kind: "node", id: "a" }, 10)],
    ["version", () => store.version(1, { kind: "node", id: "a" }, 1)],
    ["page", () => store.page(1, "node", page)],
    ["newestNodes", () => store.newestNodes(1, { realms, limit: 10 })],
    ["newestIn", () => store.newestIn(1, "default", 10)],
    ["nodesAfter", () => store.nodesAfter(1, { realms, after: "", limit: 10 })],
    ["changed", () => store.changed(1, { ...range, realm: undefined })],
    ["changed in a realm", () => store.changed(1, { ...range, realm: "default" })],
  ])("never goes through all of it: %s", async (_name, read) => {
    plans.length = 0;
    // What a made-up row lacks may be refused after the statements.
    await read().catch(() => {});
    expect(plans).not.toEqual([]);
    for (const plan of plans) expect(plan).toMatch(/^SEARCH .*(?: AND |rowid=\?)/);
  });
});
