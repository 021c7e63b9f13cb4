import { afterEach, beforeEach, expect, test } from "vitest";
import { send, StagedWorld, withCalls } from "./staged-world.test-kit.ts";

/** Ingest while tables are dropped. */
let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  await world.catalog.verify();
  await world.close();
});

async function drop(table = "t"): Promise<number> {
  const known = await world.catalog.table("default", table);
  if (known === undefined) throw new Error(`there is no table ${table}`);
  await world.catalog.dropTable(known.id);
  return known.id;
}

test("sync ingest makes a dropped table anew, and takes a key that the first had", async () => {
  const node = world.sync();
  const keyed = { idempotencyKey: "key" };
  await send(node, '{"body":"old","extra":1}', keyed);
  await drop();
  const refused = send(node, '{"body":"no"}', { autoCreate: false });
  await expect(refused).rejects.toMatchObject({ code: "table_not_found" });
  expect(await send(node, '{"body":"new"}', keyed)).toMatchObject({ replayed: false, rows: 1 });
  expect(await send(node, '{"body":"new"}', keyed)).toMatchObject({ replayed: true });
  expect(await world.values("body")).toEqual(["new"]);
  const columns = (await world.catalog.table("default", "t"))?.columns.map(({ name }) => name);
  expect(columns).not.toContain("extra");
});

test("a node that did not hear of the drop finds keys of the new table, and none of the old", async () => {
  const [node, other] = [world.sync(), world.sync()];
  await send(node, '{"body":"old"}', { idempotencyKey: "key" });
  await drop();
  await send(other, '{"body":"new"}', { idempotencyKey: "key" });
  expect(await send(node, '{"body":"again"}', { idempotencyKey: "key" })).toMatchObject({ replayed: true });
  expect(await world.values("body")).toEqual(["new"]);
});

test("a flush under way when its table is dropped is sealed again for the new one, where it may create it", async () => {
  await send(world.sync(), '{"body":"old"}');
  let isFirst = true;
  const catalog = withCalls(world.catalog, {
    async commit(flushes, lease) {
      if (isFirst) {
        isFirst = false;
        await drop();
      }
      return await world.catalog.commit(flushes, lease);
    },
  });
  const node = world.sync({ catalog });
  const [made, refused] = await Promise.allSettled([
    send(node, '{"body":"made"}'),
    send(node, '{"body":"refused"}', { autoCreate: false }),
  ]);
  expect(made.status).toBe("fulfilled");
  expect(refused).toMatchObject({ status: "rejected", reason: { code: "table_not_found" } });
  expect(await world.values("body")).toEqual(["made"]);
});

test("what was staged before the drop goes with the table; what came after makes it anew", async () => {
  const node = world.staged();
  await send(node, '{"body":"committed"}');
  await world.commit();
  await send(node, '{"body":"staged"}');
  world.clock.advance(60_000);
  await drop();
  const late = world.staged({ node: "node-2", clock: world.clock });
  world.clock.advance(1);
  await send(late, '{"body":"after"}');
  await world.commit();
  expect(await world.values("body")).toEqual(["after"]);
  expect(await world.keys("engine/_staged/")).toEqual([]);
  expect(await world.keys("engine/_damaged/")).toEqual([]);
  const database = await world.catalog.database("default");
  world.clock.advance(60_000);
  await send(late, '{"body":"of another table"}', { table: "u" });
  await world.catalog.dropDatabase(database?.id ?? 0);
  await world.commit();
  expect(await world.catalog.databases()).toEqual([]);
  expect(await world.keys("engine/_staged/")).toEqual([]);
});

test("a drop between a round's look at the table and its commit takes the staged rows along", async () => {
  const node = world.staged({ clock: world.clock });
  await send(node, '{"body":"staged"}');
  world.clock.advance(1_000);
  let isFirst = true;
  const catalog = withCalls(world.catalog, {
    async commit(flushes, lease) {
      if (isFirst) await drop();
      isFirst = false;
      return await world.catalog.commit(flushes, lease);
    },
  });
  await world.commit({ catalog });
  expect(await world.catalog.tables("default")).toEqual([]);
  expect(await world.keys()).toEqual([]);
});

test.for(["before the table", "after the table", "before droppedAt", "after droppedAt"])(
  "a drop %s is asked for takes the staged rows along",
  async (moment) => {
    const node = world.staged({ clock: world.clock });
    await send(node, '{"body":"committed"}');
    await world.commit();
    await send(node, '{"body":"staged"}');
    world.clock.advance(1_000);
    let isDropped = false;
    const reach = async (now: string): Promise<void> => {
      if (now !== moment || isDropped) return;
      isDropped = true;
      await drop();
    };
    const catalog = withCalls(world.catalog, {
      async table(...args) {
        await reach("before the table");
        const answer = await world.catalog.table(...args);
        await reach("after the table");
        return answer;
      },
      async droppedAt(...args) {
        await reach("before droppedAt");
        const answer = await world.catalog.droppedAt(...args);
        await reach("after droppedAt");
        return answer;
      },
    });
    await world.commit({ catalog });
    expect([isDropped, await world.catalog.tables("default")]).toEqual([true, []]);
    expect(await world.keys("engine/_staged/")).toEqual([]);
  },
);

test("a staged node forgets a dropped table, and refuses those who may not make it again", async () => {
  const node = world.staged({ clock: world.clock });
  await send(node, '{"body":"old"}');
  await world.commit();
  await drop();
  // It asks once a second, beside a write.
  for (let i = 0; i < 3; i++) {
    world.clock.advance(1_001);
    await send(node, '{"body":"new"}');
    await new Promise((resolve) => void setTimeout(resolve, 20));
  }
  await drop();
  await expect
    .poll(async () => {
      world.clock.advance(1_001);
      const sent = send(node, '{"body":"x"}', { autoCreate: false });
      return await sent.then(() => "acknowledged").catch((error: { code: string }) => error.code);
    })
    .toBe("table_not_found");
});
