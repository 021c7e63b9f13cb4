import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalog } from "../catalog/catalog.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import type { IngestService } from "./ingest.ts";
import type { Sealer } from "./seal.ts";
import { seal } from "./seal-thread.ts";
import { send, StagedWorld, withCalls, type NodeOptions } from "./staged/staged-world.test-kit.ts";

const BAD = '{"body":"x","stray":1}\n{"body":';
const MODES = ["sync", "staged"] as const;

/** What refused requests leave behind: nothing, in either mode and on any catalog. */
export function refusedLeavesNothing(driver: string, openCatalog: () => Promise<Catalog | undefined>): void {
  describe.each(MODES)(`a refused request on ${driver} in %s mode`, (mode) => {
    let world: StagedWorld;
    beforeEach(async () => {
      world = await StagedWorld.open(await openCatalog());
    });
    afterEach(() => world.close());

    const node = (options: NodeOptions = {}): IngestService => world[mode](options);
    const columns = async (table = "t", database = "default") =>
      (await world.catalog.table(database, table))?.columns.map(({ name }) => name);
    const codeOf = async (sending: Promise<unknown>) =>
      sending.then(
        () => "ok",
        (error: unknown) => (error instanceof EngineError ? error.code : messageOf(error)),
      );

    test("leaves no table, no database and no object", async () => {
      const ingest = node();
      for (const body of [BAD, "", "\n \n", "[]", '{"a":1}\n\u0000']) {
        const sending = send(ingest, body, { database: "fresh", idempotencyKey: "k" });
        expect(await codeOf(sending)).toBe("bad_request_body");
      }
      expect(await world.catalog.databases()).toEqual([]);
      expect(await world.keys()).toEqual([]);
      // Its key is free.
      expect(await send(ingest, '{"body":"x"}', { database: "fresh", idempotencyKey: "k" })).toMatchObject({ rows: 1 });
      await world.commit();
      expect(await world.rows("t", "fresh")).toMatchObject([{ body: "x" }]);
      expect(await columns("t", "fresh")).toEqual(["at", "label", "body", "props"]);
    });

    test("leaves no table when it could not be created under that name", async () => {
      for (const more of [{ database: "pg_mine" }, { database: "main" }, { table: "_t" }, { database: "a/b" }]) {
        expect(await codeOf(send(node(), '{"body":"x"}', more))).toBe("invalid_name");
      }
      expect(await codeOf(send(node(), '{"body":"x"}', { autoCreate: false }))).toBe("table_not_found");
      expect(await world.catalog.databases()).toEqual([]);
    });

    test("leaves no columns on a table that is there, large or small", async () => {
      await world.catalog.createTable({
        database: "default",
        name: "t",
        columns: [
          { name: "at", type: { kind: "timestamp" } },
          { name: "v", type: { kind: "vector", dimensions: 2 } },
        ],
      });
      const rows = `{"v":[1,2],"pad":"${"x".repeat(1_000)}"}\n`;
      // The second is cut at newlines and sealed by several threads.
      for (const body of ['{"v":[1,2],"stray":1}\n{"v":[1]}', `${rows.repeat(5_000)}{"v":[1],"stray":1}`]) {
        expect(await codeOf(send(node(), body))).toBe("bad_request_body");
      }
      expect(await columns()).toEqual(["at", "v"]);
      expect(await world.keys()).toEqual([]);
    });

    test.each([false, true])(
      "takes only its own columns with it out of a flush (table is there: %s)",
      async (exists) => {
        if (exists) await send(node(), '{"body":"seed"}');
        await world.commit();
        const shared: number[] = [];
        const gate = Promise.withResolvers<void>();
        const counting: Sealer = async (task) => {
          shared.push(task.bodies.length);
          // While the first is sealed the others gather.
          if (shared.length === 1) await gate.promise;
          return seal(task);
        };
        const ingest = node({ seal: counting });
        const first = codeOf(send(ingest, '{"body":"first"}'));
        await expect.poll(() => shared.length).toBe(1);
        const bodies = ['{"mine":1}', `{"theirs":1}\n${BAD}`, '{"mine":2,"other":3}', BAD];
        const sending = [first, ...bodies.map((body) => codeOf(send(ingest, body)))];
        await expect.poll(() => shared.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(sending.length);
        gate.resolve();
        expect(await Promise.all(sending)).toEqual(["ok", "ok", "bad_request_body", "ok", "bad_request_body"]);
        expect(Math.max(...shared)).toBeGreaterThan(1);
        await world.commit();
        expect((await columns())?.slice(4).toSorted()).toEqual(["mine", "other"]);
        expect(await world.values("body")).toEqual(["first", "NULL", "NULL", ...(exists ? ["seed"] : [])]);
        await world.catalog.verify();
      },
    );

    test("meets a table that somebody else creates meanwhile, with the columns that it has then", async () => {
      let creations = 0;
      const catalog: Catalog = withCalls(world.catalog, {
        createTable: async (request) => {
          if (++creations > 1) return world.catalog.createTable(request);
          const own = { name: "N", type: { kind: "long" as const } };
          await world.catalog.createTable({ ...request, columns: [...request.columns, own] });
          return world.catalog.createTable(request);
        },
      });
      await send(node({ catalog }), '{"n":9007199254740993}', { table: "T" });
      await world.commit();
      expect(creations).toBe(1);
      expect(await columns()).toEqual(["at", "label", "body", "props", "N"]);
      expect(await world.values("N")).toEqual(["9007199254740993"]);
    });

    test("is one of many for one new table: the table is created once, and every row is stored once", async () => {
      const [first, second] = [node({ node: "a" }), node({ node: "b" })];
      const sending = Array.from({ length: 40 }, (_, i) => {
        const body = i % 4 === 0 ? BAD : `{"n":${i}}`;
        const spelled = { table: i % 3 === 0 ? "T" : "t", idempotencyKey: `k${i % 20}` };
        return codeOf(send(i % 2 === 0 ? first : second, body, spelled));
      });
      const outcomes = await Promise.all(sending);
      expect(outcomes.filter((code) => code === "bad_request_body")).toHaveLength(10);
      expect(outcomes.filter((code) => code === "ok")).toHaveLength(30);
      await world.commit();
      const numbers = new Set((await world.rows()).map((row) => Number(row["n"]) % 20));
      expect((await world.rows()).length).toBe(15);
      expect(numbers.size).toBe(15);
      expect(await world.catalog.tables("default")).toHaveLength(1);
      await world.catalog.verify();
    });

    test("and one whose rows lack a vector that came while they were read", async () => {
      const vector = { name: "v", type: { kind: "vector" as const, dimensions: 2 } };
      const seed = await world.catalog.createTable({ database: "default", name: "t", columns: DEFAULT_SHAPE });
      let isFirst = true;
      const widening = async () => {
        if (isFirst) await world.catalog.addColumns(seed.table.id, [vector]);
        isFirst = false;
      };
      const catalog: Catalog = withCalls(world.catalog, {
        commit: async (flushes, lease) => {
          await widening();
          return world.catalog.commit(flushes, lease);
        },
      });
      const outcomes = [
        await codeOf(send(node({ catalog }), '{"body":"without"}\n{"v":"x"}')),
        await codeOf(send(node({ catalog }), '{"body":"with","v":[1,2]}')),
      ];
      await world.commit({ catalog });
      await world.commit();
      // What was acknowledged cannot be refused: where it was staged, it lacks the value.
      expect(outcomes).toEqual(mode === "sync" ? ["bad_request_body", "ok"] : ["ok", "ok"]);
      const told = (await world.rows()).map(({ at: _at, ...row }) => JSON.stringify(row));
      const lenient = ['{"body":"with","v":"1,2"}', '{"body":"without"}', '{"props":"{\\"v\\":\\"x\\"}"}'];
      expect(told.toSorted()).toEqual(lenient.slice(0, mode === "sync" ? 1 : 3));
      await world.catalog.verify();
    });
  });
}
