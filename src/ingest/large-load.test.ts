import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { systemRandom } from "../core/random.ts";
import { LargeLoad } from "./large-load.ts";
import type { Sealer } from "./seal.ts";
import { seal } from "./seal-thread.ts";
import { StagedWorld } from "./staged/staged-world.test-kit.ts";

let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(() => world.close());

function begin(table: string, sealer: Sealer = seal): Promise<LargeLoad> {
  const ports = {
    catalog: world.catalog,
    store: world.store,
    seal: sealer,
    sealThreads: 2,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    format: "tlm",
    keyPrefix: "engine",
    inferTypes: true,
    commit: async (flush: Parameters<typeof world.catalog.commit>[0][number]) => {
      const [outcome] = await world.catalog.commit([flush]);
      if (outcome === undefined) throw new Error("one flush has one outcome");
      return outcome;
    },
  } as const;
  const target = { database: "default", table };
  return LargeLoad.begin(ports, { target, autoCreate: true, evolve: true, arrivedAtNs: 7n });
}

/** The first of the tasks ends only when another one has. */
function firstIsLast(): Sealer {
  const second = Promise.withResolvers<void>();
  let begun = 0;
  return async (task) => {
    const isFirst = begun++ === 0;
    const result = await seal(task);
    if (isFirst) await second.promise;
    else second.resolve();
    return result;
  };
}

const pieces = ['{"n":1}\n', '{"n":"two","m":2}\n{"n":2}\n', '{"m":3,"n":3}\n'].map((text) => Buffer.from(text));

test("pieces that are sealed at a time come to what they come to one after the other", async () => {
  const inTurn = await begin("in_turn");
  for (const piece of pieces) await inTurn.add(piece);
  const together = await begin("together", firstIsLast());
  await Promise.all(pieces.map((piece) => together.add(piece)));
  for (const [load, name] of [
    [inTurn, "a"],
    [together, "b"],
  ] as const) {
    expect(await load.commit({ name, to: "1" })).toMatchObject({ kind: "committed", rows: 4, misfits: 1 });
  }
  const columnsOf = async (name: string) =>
    (await world.catalog.table("default", name))?.columns.map((column) => `${column.name} ${column.type.kind}`);
  expect(await columnsOf("together")).toEqual(await columnsOf("in_turn"));
  expect(await columnsOf("together")).toEqual(expect.arrayContaining(["n long", "m long"]));
  const rowsOf = async (name: string) => new Set((await world.rows(name)).map((row) => JSON.stringify(row)));
  expect(await rowsOf("together")).toEqual(await rowsOf("in_turn"));
});

test("the first piece that fails fails those behind it, and nothing is left", async () => {
  const load = await begin("t", firstIsLast());
  const added = await Promise.allSettled(
    ['{"n":1}\n', '{"n":\n', "[]\n", '{"n":4}\n'].map((text) => load.add(Buffer.from(text))),
  );
  expect(added.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
  const reasons = added.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
  expect(new Set(reasons).size).toBe(1);
  expect(reasons[0]).toContain("line 1");
  await load.discard();
  expect(await world.keys("engine/")).toEqual([]);
});
