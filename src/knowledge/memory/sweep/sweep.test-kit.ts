import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Caller } from "../../../auth/caller.ts";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { memoryOn } from "../contract.test-kit.ts";
import { VectorStore } from "../embed/vector-store.ts";
import type { MemoryScope, MemoryService } from "../service.ts";
import { pairOf, Verdicts } from "../verdicts.ts";
import { sweepDropped } from "./dropped.ts";
import { sweepFormerModels } from "./former-models.ts";

const CALLER: Caller = { subject: "ann", kind: "session", role: "admin", databases: undefined };
const TABLES = ["records", "commits", "counts", "heads", "settings", "vectors", "vector_heads", "verdicts"];
const { signal } = new AbortController();
const DAY_MS = 86_400_000;

/** What the sweep must do on every driver of the catalog. */
export function sweepContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`sweep of memories on ${driver}`, () => {
    let opened: OpenedCatalog;
    let memory: MemoryService;

    beforeEach(async () => {
      opened = await open();
      memory = memoryOn(opened);
    });
    afterEach(() => opened.close());

    const records = () => opened.catalog.records;
    const storeOf = () => new VectorStore(records(), "a");
    const sweep = async () => await sweepDropped({ catalog: opened.catalog, records: records() }, signal);

    async function scopeOf(name: string): Promise<MemoryScope> {
      await opened.catalog.createDatabase(name);
      return await memory.scope(CALLER, name);
    }
    const save = async (scope: MemoryScope, contents: string[]) =>
      await memory.import(scope, { memory_nodes: contents.map((content) => ({ content })), memory_edges: [] });

    /** As the worker embeds what is there. */
    async function embed(scope: MemoryScope, model: string): Promise<void> {
      const [store, place] = [storeOf(), { databaseId: scope.databaseId, model }];
      const held = await store.hold(place);
      if (held === undefined) throw new Error("held by another");
      const { seq } =
        (await records().rows("SELECT seq FROM memory_heads WHERE database_id = ?", [place.databaseId]))[0] ?? {};
      for (let cursor = { seq: held.throughSeq + 1, id: "" }; ;) {
        const nodes = await store.nodes(place.databaseId, cursor, Number(seq));
        const missing = await store.withoutVector(place, nodes);
        await store.store(
          place,
          missing.map((node) => ({ node, vector: Float32Array.of(1, 2) })),
        );
        const last = nodes.at(-1);
        if (last === undefined) break;
        cursor = last;
      }
      await store.advance(place, Number(seq));
      await store.release(place);
    }

    async function fill(scope: MemoryScope, count = 3): Promise<void> {
      await save(
        scope,
        Array.from({ length: count }, (_, i) => `ship ${i}`),
      );
      const { record } = await memory.saveNode(scope, { topic_key: "plan", content: "We sail" });
      await memory.saveNode(scope, { topic_key: "plan", content: "We stay" });
      const { record: other } = await memory.saveNode(scope, { content: "The harbour" });
      await memory.saveEdge(scope, { src: record.id, dst: other.id });
      const settings = await memory.settings(scope);
      await memory.changeSettings(scope, "it", settings, { caller: CALLER, address: "", requestId: "r" });
      const [one, another] = await memory.nodes(scope, [record.id, other.id]);
      if (one === undefined || another === undefined) throw new Error("what was saved is not there");
      await new Verdicts(records()).open(scope.databaseId, [pairOf(scope.databaseId, one, another)]);
      await embed(scope, "m");
    }

    const countOf = async (table: string, { databaseId }: MemoryScope) => {
      const sql = `SELECT count(*) AS n FROM ${table} WHERE database_id = ?`;
      return Number((await records().rows(sql, [databaseId]))[0]?.["n"]);
    };
    const counts = async (scope: MemoryScope) =>
      await Promise.all(TABLES.map(async (name) => await countOf(`memory_${name}`, scope)));

    it("deletes all that a dropped database remembered, in batches, and nothing of others", async () => {
      const [kept, gone] = [await scopeOf("kept"), await scopeOf("gone")];
      await fill(kept);
      await fill(gone, 1_200);
      const before = await counts(kept);
      expect(before.every((count) => count > 0)).toBe(true);
      expect(await sweep()).toBe(0);
      expect(await countOf("memory_vectors", gone)).toBe(1_202);
      await opened.catalog.dropDatabase(gone.databaseId);
      expect(await sweep()).toBeGreaterThan(2_400);
      expect(await counts(gone)).toEqual(TABLES.map(() => 0));
      expect(await counts(kept)).toEqual(before);
      expect(await sweep()).toBe(0);
    });

    it("a database made anew under the name has nothing of the old one, before and after the sweep", async () => {
      const old = await scopeOf("it");
      await fill(old);
      await opened.catalog.dropDatabase(old.databaseId);
      const fresh = await scopeOf("it");
      expect(fresh.databaseId).not.toBe(old.databaseId);
      expect((await memory.overview(fresh, "it")).counts).toEqual([]);
      await save(fresh, ["Something new"]);
      const before = await counts(fresh);
      await sweep();
      expect(await counts(fresh)).toEqual(before);
      expect(await counts(old)).toEqual(TABLES.map(() => 0));
    });

    it("finds what a write leaves that began before the drop", async () => {
      const scope = await scopeOf("it");
      await opened.catalog.dropDatabase(scope.databaseId);
      await sweep();
      await save(scope, ["Too late"]);
      expect(await countOf("memory_records", scope)).toBe(1);
      await sweep();
      expect(await counts(scope)).toEqual(TABLES.map(() => 0));
    });

    const vectorsOf = async (model: string) => {
      const sql = "SELECT count(*) AS n FROM memory_vectors WHERE model = ?";
      return Number((await records().rows(sql, [model]))[0]?.["n"]);
    };
    const forget = async () => await sweepFormerModels(records(), "sweeper", signal);
    /** As if the model had last been at work so long ago. */
    const age = async (model: string, ms: number) => {
      const sql = "UPDATE memory_vector_heads SET held_until_ms = held_until_ms - ? WHERE model = ?";
      await records().write({ sql, values: [ms, model] });
    };

    it("deletes vectors of a model a day after another one has embedded everything", async () => {
      const scope = await scopeOf("it");
      await save(
        scope,
        Array.from({ length: 600 }, (_, i) => `ship ${i}`),
      );
      await embed(scope, "old");
      expect(await forget()).toBe(0);
      await embed(scope, "young");
      await age("old", DAY_MS - 60_000);
      expect(await forget()).toBe(0);
      await age("old", 60_000);
      expect(await forget()).toBe(600);
      expect([await vectorsOf("old"), await vectorsOf("young")]).toEqual([0, 600]);
      expect(await forget()).toBe(0);
      // A server that has the old one after all begins anew, after the numbers that its index has.
      await embed(scope, "old");
      expect(await vectorsOf("old")).toBe(600);
      const [{ least } = {}] = await records().rows("SELECT min(seq) AS least FROM memory_vectors WHERE model = 'old'");
      expect(Number(least)).toBeGreaterThan(600);
    });

    it("keeps vectors while the other model is behind, and those of a model that is at work", async () => {
      const scope = await scopeOf("it");
      await save(scope, ["one", "two"]);
      await embed(scope, "old");
      await age("old", 2 * DAY_MS);
      await embed(scope, "young");
      await save(scope, ["three"]);
      expect(await forget()).toBe(0);
      await embed(scope, "young");
      const place = { databaseId: scope.databaseId, model: "old" };
      await storeOf().hold(place);
      expect(await forget()).toBe(0);
      expect(await vectorsOf("old")).toBe(2);
    });
  });
}
