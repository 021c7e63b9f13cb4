import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { LeaseLost } from "../../../catalog/refusals.ts";
import { EngineError } from "../../../core/errors.ts";
import { DropWorld, intercepted, type NodeDeps, type OpenedStore } from "./drop-world.test-kit.ts";
import { Mortal, type Death } from "./mortal.test-kit.ts";

const A = '{"body":"a1"}\n{"body":"a2"}\n';
const B = '{"body":"b1","n":1}\n';

export type DropContractOptions = {
  openCatalog: () => Promise<OpenedCatalog>;
  openStore: () => Promise<OpenedStore>;
  /** Of the moments at which a process can die, every how many-th is tried. */
  deathsApart: number;
};

/** What holds of dropped files on every catalog and every store. */
export function fileDropContract(name: string, { openCatalog, openStore, deathsApart }: DropContractOptions): void {
  let world: DropWorld;

  describe(`dropped files on ${name}`, () => {
    beforeEach(async () => {
      world = await DropWorld.open(await openCatalog(), await openStore());
    });
    afterEach(async () => {
      await world.catalog.verify();
      expect(await world.orphans()).toEqual([]);
      await world.close();
    });

    test("are stored once, however often they are looked at and by whom", async () => {
      await world.drop("shop/orders/a.ndjson", A);
      await world.drop("shop/orders/2026/01/b.jsonl", B);
      await world.drop("shop/orders/_SUCCESS", "");
      const [one, other] = [world.node(), world.node()];
      expect(await one.look()).toBe(true);
      expect(await other.look()).toBe(false);
      expect(await world.values("body")).toEqual(["a1", "a2", "b1"]);
      await one.look();
      world.pass();
      expect(await other.look()).toBe(true);
      expect(await world.values("body")).toEqual(["a1", "a2", "b1"]);
      expect(await world.files()).toEqual({
        "shop/orders/2026/01/b.jsonl": "ingested",
        "shop/orders/a.ndjson": "ingested",
      });
    });

    test("are stored whole or not at all, and a bad one is tried again when it changes", async () => {
      await world.drop("shop/orders/a.ndjson", `${A}{"body":\n`);
      await world.drop("shop/orders/b.ndjson", B);
      const node = world.node({ deleteAfterIngest: true });
      await node.look();
      await node.look();
      expect(await world.values("body")).toEqual(["b1"]);
      expect(await world.files()).toEqual({ "shop/orders/a.ndjson": "rejected", "shop/orders/b.ndjson": "deleted" });
      expect(await world.keys("drop/")).toEqual([
        "drop/shop/orders/a.ndjson",
        "drop/shop/orders/a.ndjson.rejected.json",
      ]);
      const report = JSON.parse(
        Buffer.from(await world.store.get("drop/shop/orders/a.ndjson.rejected.json")).toString(),
      );
      expect(report).toMatchObject({
        key: "drop/shop/orders/a.ndjson",
        line: 3,
        reason: expect.stringContaining("line 3"),
      });
      await world.store.delete(["drop/shop/orders/a.ndjson"]);
      await world.drop("shop/orders/a.ndjson", A);
      await node.look();
      expect(await world.values("body")).toEqual(["a1", "a2", "b1"]);
      expect(await world.keys("drop/")).toEqual([]);
    });

    test("are other files when they change, and when they are dropped again", async () => {
      const node = world.node();
      const dropAndLook = async (content: string): Promise<void> => {
        await world.drop("shop/orders/a.ndjson", content);
        await node.look();
      };
      await dropAndLook(A);
      await dropAndLook(B);
      expect(await world.values("body")).toEqual(["a1", "a2", "b1"]);
      await world.store.delete(["drop/shop/orders/a.ndjson"]);
      await node.look();
      expect(await world.files()).toEqual({ "shop/orders/a.ndjson": "gone" });
      await dropAndLook(B);
      expect(await world.values("body")).toEqual(["a1", "a2", "b1", "b1"]);
    });

    test("wait for their table where none may be made", async () => {
      await world.drop("shop/orders/a.ndjson", A);
      const node = world.node({ autoCreate: false });
      await node.look();
      await node.look();
      expect(await world.files()).toEqual({ "shop/orders/a.ndjson": "waiting" });
      expect(await world.catalog.databases()).toEqual([]);
      const columns = [
        { name: "at", type: { kind: "timestamp" } },
        { name: "body", type: { kind: "string" } },
      ] as const;
      await world.catalog.createTable({ database: "shop", name: "orders", columns });
      await node.look();
      expect(await world.values("body")).toEqual(["a1", "a2"]);
    });

    test("wait until they have stopped to grow, where files grow in their place", async () => {
      const node = world.node({ growsInPlace: true });
      await world.drop("shop/orders/a.ndjson", '{"body":"a1"}\n');
      await world.drop("shop/orders/b.ndjson.tmp", B);
      await world.drop("shop/orders/c.csv.part", "body\n");
      await node.look();
      await world.drop("shop/orders/a.ndjson", A);
      await node.look();
      expect(await world.files()).toEqual({});
      await node.look();
      expect(await world.values("body")).toEqual(["a1", "a2"]);
      expect(await world.files()).toEqual({ "shop/orders/a.ndjson": "ingested" });
    });

    test("are not stored as a mixture when they change while they are read", async () => {
      const rows = (body: string) => `{"body":"${body}","pad":"${"x".repeat(1_000)}"}\n`.repeat(10_000);
      await world.drop("shop/orders/a.ndjson", rows("old"));
      let gets = 0;
      const store = intercepted(world.store, "get", async (get) => {
        if (++gets === 2) await world.drop("shop/orders/a.ndjson", rows("new"));
        return await get();
      });
      const node = world.node({}, { store });
      await node.look();
      expect(await world.files()).toEqual({});
      await node.look();
      expect(new Set(await world.values("body"))).toEqual(new Set(["new"]));
      expect(await world.values("body")).toHaveLength(10_000);
    });

    test("are not stored by a node that has lost its lease without noticing", async () => {
      await world.drop("shop/orders/a.ndjson", A);
      const sleeper = world.node(
        {},
        withCommit(world, async (commit) => {
          world.pass();
          expect(await world.node().look()).toBe(true);
          return await commit();
        }),
      );
      await expect(sleeper.look()).rejects.toThrow(LeaseLost);
      expect(await world.values("body")).toEqual(["a1", "a2"]);
      expect(await world.files()).toEqual({ "shop/orders/a.ndjson": "ingested" });
    });

    test("are read again when their table changes under them", async () => {
      await world.drop("shop/orders/b.ndjson", B);
      let commits = 0;
      const node = world.node(
        {},
        withCommit(world, async (commit) => {
          const table = await world.catalog.table("shop", "orders");
          if (++commits === 1) await world.catalog.addColumns(table?.id ?? 0, [{ name: "n", type: { kind: "long" } }]);
          return await commit();
        }),
      );
      await node.look();
      expect(commits).toBe(2);
      expect(await world.values("n")).toEqual(["1"]);
    });

    test("are stored when what was away is back", async () => {
      await world.drop("shop/orders/a.ndjson", A);
      let failures = 0;
      const away = new EngineError("unavailable", "away");
      const node = world.node(
        {},
        withCommit(world, async (commit) => {
          if (++failures === 1) throw away;
          return await commit();
        }),
      );
      await node.look();
      expect(failures).toBe(2);
      expect(await world.values("body")).toEqual(["a1", "a2"]);
    });
  });

  deathContract(name, { openCatalog, openStore, deathsApart });
}

/** Every file is stored once, wherever the process that is at it dies. */
export function deathContract(name: string, { openCatalog, openStore, deathsApart }: DropContractOptions): void {
  test(`a process that dies at any of its calls leaves each dropped file stored once, on ${name}`, async () => {
    let tried = 0;
    for (const when of ["before", "after"] as const) {
      for (let atCall = 1; ; atCall += deathsApart) {
        const world = await DropWorld.open(await openCatalog(), await openStore());
        try {
          if (!(await dieAndRecover(world, { atCall, when }))) break;
          tried++;
        } finally {
          await world.close();
        }
      }
    }
    expect(tried).toBeGreaterThan(2 * Math.floor(15 / deathsApart));
  });
}

/** False when the process was done before it could die. */
async function dieAndRecover(world: DropWorld, death: Death): Promise<boolean> {
  await world.drop("shop/orders/a.ndjson", A);
  await world.drop("shop/orders/b.ndjson", B);
  await world.drop("shop/orders/c.ndjson", "bad\n");
  await world.drop("shop/orders/d.ndjson", '{"body":"d"}\n');
  const mortal = new Mortal(death);
  const deps = {
    catalog: mortal.wrap(world.catalog),
    records: mortal.wrap(world.catalog.records),
    store: mortal.wrap(world.store),
  };
  const node = world.node({ deleteAfterIngest: true }, deps);
  const isAlive = await node.look(mortal.signal).then(
    () => true,
    (error: unknown) => {
      if (!mortal.signal.aborted) throw error;
      return false;
    },
  );
  world.pass();
  const next = world.node({ deleteAfterIngest: true });
  await next.look();
  await next.look();
  const what = `death ${death.when} call ${death.atCall}`;
  expect([what, await world.values("body")]).toEqual([what, ["a1", "a2", "b1", "d"]]);
  expect(await world.files()).toMatchObject({ "shop/orders/c.ndjson": "rejected" });
  expect([what, await world.keys("drop/")]).toEqual([
    what,
    ["drop/shop/orders/c.ndjson", "drop/shop/orders/c.ndjson.rejected.json"],
  ]);
  await world.catalog.verify();
  return !isAlive;
}

/** A catalog whose commits go through `around`. */
function withCommit(
  { catalog }: DropWorld,
  around: (commit: () => ReturnType<typeof catalog.commit>) => ReturnType<typeof catalog.commit>,
): NodeDeps {
  return { catalog: intercepted(catalog, "commit", around) };
}
