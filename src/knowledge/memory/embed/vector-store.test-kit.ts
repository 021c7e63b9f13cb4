import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Caller } from "../../../auth/caller.ts";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { memoryOn } from "../contract.test-kit.ts";
import { nodeKey } from "../save.ts";
import type { MemoryScope, MemoryService } from "../service.ts";
import { VectorStore, type EmbeddedNode } from "./vector-store.ts";
import { textToVector } from "./vector-text.ts";

const CALLER: Caller = { subject: "ann", kind: "session", role: "write", databases: undefined };
const ORIGIN = { caller: CALLER, address: "", requestId: "r" };

/** What the store of vectors must do on every driver of the catalog. */
export function vectorContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`vectors on ${driver}`, () => {
    let opened: OpenedCatalog;
    let memory: MemoryService;
    let scope: MemoryScope;
    let place: { databaseId: number; model: string };
    let stores: VectorStore[];

    beforeEach(async () => {
      opened = await open();
      memory = memoryOn(opened);
      scope = await memory.scope(CALLER, "default");
      place = { databaseId: scope.databaseId, model: "m" };
      stores = ["a", "b"].map((holder) => new VectorStore(opened.catalog.records, holder));
    });
    afterEach(() => opened.close());

    const save = async (...contents: string[]) =>
      await memory.import(scope, { memory_nodes: contents.map((content) => ({ content })), memory_edges: [] });
    const nodes = async (store: VectorStore, cursor = { seq: 1, id: "" }, throughSeq = 100) =>
      await store.nodes(scope.databaseId, cursor, throughSeq);
    const vectorOf = (node: EmbeddedNode) => ({ node, vector: Float32Array.of(node.seq, -0.5, 1e-7) });
    const stored = async () => {
      const sql = "SELECT model, text_key, seq, vector FROM memory_vectors ORDER BY model, seq";
      return await opened.catalog.records.rows(sql);
    };

    it("numbers vectors in the order of their commits, and keeps them bit by bit", async () => {
      const [a] = stores as [VectorStore];
      await save("one", "two");
      await save("three");
      const found = await nodes(a);
      expect(found.map(({ seq }) => seq)).toEqual([1, 1, 2]);
      expect(await nodes(a, found[0])).toEqual(found.slice(1));
      expect(await nodes(a, { seq: 1, id: "" }, 1)).toEqual(found.slice(0, 2));
      expect([await a.throughSeq(place), await a.dimensions(place)]).toEqual([0, 0]);
      expect(await a.hold(place)).toEqual({ throughSeq: 0 });
      expect(await a.store(place, found.slice(0, 2).map(vectorOf))).toBe(true);
      expect(await a.withoutVector(place, found)).toEqual(found.slice(2));
      // One that is there already keeps its number.
      expect(await a.store(place, found.map(vectorOf))).toBe(true);
      const rows = await stored();
      expect(rows.map((row) => [row["text_key"], Number(row["seq"])])).toEqual([
        [found[0]?.key, 1],
        [found[1]?.key, 2],
        [found[2]?.key, 5],
      ]);
      expect(textToVector(String(rows[2]?.["vector"]))).toEqual(Float32Array.of(2, -0.5, 1e-7));
      expect(await a.advance(place, 2)).toBe(true);
      expect([await a.throughSeq(place), await a.dimensions(place)]).toEqual([2, 3]);
      expect(await a.throughSeq({ ...place, model: "other" })).toBe(0);
    });

    it("lets one process at a time write those of a database", async () => {
      const [a, b] = stores as [VectorStore, VectorStore];
      await save("one");
      const [node] = (await nodes(a)).map(vectorOf);
      if (node === undefined) throw new Error("no node");
      expect((await Promise.all([a.hold(place), a.hold(place)])).every((held) => held !== undefined)).toBe(true);
      expect(await b.hold(place)).toBeUndefined();
      expect(await b.hold({ ...place, model: "other" })).toBeDefined();
      expect([await b.store(place, [node]), await b.advance(place, 1)]).toEqual([false, false]);
      expect(await stored()).toEqual([]);
      await b.release(place);
      expect(await b.hold(place)).toBeUndefined();
      await a.release(place);
      expect(await b.hold(place)).toBeDefined();
      expect(await b.store(place, [node])).toBe(true);
    });

    it("has none of a node that was erased, whichever comes first", async () => {
      const [a] = stores as [VectorStore];
      await save("one", "two", "three");
      const found = await nodes(a);
      await a.hold(place);
      await a.store(place, found.slice(0, 1).map(vectorOf));
      await memory.erase(scope, nodeKey(found[0]?.id ?? ""), ORIGIN);
      expect(await stored()).toEqual([]);
      await a.store(place, found.slice(0, 1).map(vectorOf));
      expect(await stored()).toEqual([]);
      // And at the same time.
      await Promise.all([
        ...found.slice(1).map(async ({ id }) => await memory.erase(scope, nodeKey(id), ORIGIN)),
        a.store(place, found.slice(1).map(vectorOf)),
      ]);
      expect(await stored()).toEqual([]);
      expect(await nodes(a)).toEqual([]);
    });
  });
}
