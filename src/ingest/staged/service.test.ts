import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import { decodeStaged } from "./object.ts";
import { send, StagedWorld, withCalls } from "./staged-world.test-kit.ts";

let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  await world.close();
});

/** A catalog that can be taken away. */
function shakyCatalog(): { catalog: Catalog; isAway: boolean } {
  const state = {
    isAway: false,
    catalog: new Proxy(world.catalog, {
      get: (target, name) => (state.isAway ? away : (Reflect.get(target, name) as () => unknown).bind(target)),
    }),
  };
  return state;
}

const away = () => Promise.reject(new Error("connection refused"));

describe("the acknowledgement", () => {
  test("says that the rows are durable and where they are not yet, and the commit makes them visible", async () => {
    const ack = await send(world.staged(), '{"body":"a"}\n{"body":"b"}');
    const [key = ""] = await world.keys("engine/_staged/");
    const sizeBytes = (await world.inner.head(key))?.sizeBytes;
    expect(ack).toEqual({ snapshotId: undefined, extentCount: 0, rows: 2, sizeBytes, replayed: false, staged: true });
    expect(await world.rows()).toEqual([]);
    await world.commit();
    expect(await world.values("body")).toEqual(["a", "b"]);
    expect(await world.keys("engine/_staged/")).toEqual([]);
    await world.catalog.verify();
  });

  test("rejects alone what does not parse, and stages its neighbours", async () => {
    const node = world.staged();
    const [good, bad] = await Promise.allSettled([
      send(node, '{"body":"good","new":1}'),
      send(node, '{"body":"bad"}\n{"body":'),
    ]);
    expect(good.status).toBe("fulfilled");
    expect(bad).toMatchObject({ reason: { code: "bad_request_body", details: { line: 2 } } });
    await world.commit();
    expect(await world.rows()).toMatchObject([{ body: "good", new: "1" }]);
  });

  test("a store that fails is not acknowledged, and what it may have kept is deleted", async () => {
    const node = world.staged();
    for (const kind of ["fail_before", "fail_after", "tear"] as const) {
      world.store.script({ operation: "put", fault: { kind } });
      await expect(send(node, '{"body":"x"}', { idempotencyKey: "k" })).rejects.toMatchObject({
        code: "ingest_failed",
        message: expect.stringContaining("retry with the same X-Idempotency-Key"),
      });
    }
    expect((await send(node, '{"body":"x"}', { idempotencyKey: "k" })).replayed).toBe(false);
    await world.commit();
    expect(await world.values("body")).toEqual(["x"]);
  });
});

describe("what travels as it came", () => {
  /** Where the rows of each request of the only staged object are. */
  async function places(): Promise<string[]> {
    const [key = ""] = await world.keys("engine/_staged/");
    const [, , node = "", id = ""] = key.split("/");
    return decodeStaged(await world.inner.get(key), { node, id }).requests.map(({ place }) => place.kind);
  }

  test.each([
    ["fields that all have columns", '{"body":"x","at":1,"props":{"a":1}}', {}, "rows"],
    ["a field that has none", '{"body":"x","new":1}', {}, "body"],
    ["a field that has none and is dropped", '{"body":"x","new":1}', { evolve: false }, "body"],
    ["a time that could be a column's", '{"timestamp":"2026-01-01T00:00:00Z"}', {}, "body"],
    ["a name that no column can have", `{"${"n".repeat(300)}":1}`, {}, "body"],
  ])("%s", async (_, body, more, expected) => {
    await send(world.staged(), body, more);
    expect(await places()).toEqual([expected]);
  });

  test("of bodies that share a flush only those that must", async () => {
    const node = world.staged();
    await send(node, '{"body":"first"}');
    await world.commit();
    const bodies = ['{"body":"a"}', '{"body":"b","new":1}', '{"label":"c"}', "{}", '{"new":2}'];
    await Promise.all(bodies.map((body) => send(node, body)));
    const kinds = await places();
    expect(kinds).toHaveLength(5);
    expect(kinds[0]).toBe("rows");
    expect([kinds[1], kinds[4]]).toEqual(["body", "body"]);
    await world.commit();
    expect((await world.rows()).map(({ at: _at, ...row }) => row)).toEqual(
      expect.arrayContaining([{ body: "a" }, { body: "b", new: "1" }, { label: "c" }, {}, { new: "2" }]),
    );
    expect(await world.rows()).toHaveLength(6);
  });

  test("nothing, where the table has all the columns that it may have", async () => {
    const { table } = await world.catalog.createTable({
      database: "default",
      name: "t",
      columns: [
        { name: "at", type: { kind: "timestamp" } },
        { name: "props", type: { kind: "dynamic" } },
        ...Array.from({ length: LIMITS.columnsPerTable - 2 }, (_, i) => ({
          name: `c${i}`,
          type: { kind: "long" as const },
        })),
      ],
    });
    expect(table.columns).toHaveLength(LIMITS.columnsPerTable);
    await send(world.staged(), '{"new":1}');
    expect(await places()).toEqual(["rows"]);
    await world.commit();
    expect(await world.values("props")).toEqual(['{"new":1}']);
  });
});

describe("without the catalog", () => {
  test("a table that is known goes on; one that is not, and one without props, answer 503", async () => {
    const shaky = shakyCatalog();
    const columns = [{ name: "at", type: { kind: "timestamp" as const } }];
    await world.catalog.createTable({ database: "default", name: "bare", columns });
    const node = world.staged({ catalog: shaky.catalog });
    await send(node, '{"body":"1"}');
    await send(node, '{"n":1}', { table: "bare" });
    shaky.isAway = true;
    expect(await send(node, '{"body":"2","new":true}', { idempotencyKey: "k", autoCreate: false })).toMatchObject({
      staged: true,
      replayed: false,
    });
    expect(await send(node, '{"body":"again"}', { idempotencyKey: "k" })).toMatchObject({ replayed: true });
    for (const table of ["unknown", "bare"]) {
      await expect(send(node, '{"n":1}', { table })).rejects.toMatchObject({ code: "unavailable", status: 503 });
    }
    await world.commit();
    expect(await world.values("body")).toEqual(["1", "2"]);
    expect(await world.values("n", "bare")).toEqual(["1"]);
  });

  test("a catalog that does not answer holds nobody up for long", async () => {
    const hanging = withCalls(world.catalog, { schemaGeneration: () => new Promise(() => undefined) });
    const failure = await send(world.staged({ catalog: hanging }), "{}").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EngineError);
    expect(failure).toMatchObject({ code: "unavailable", details: { headers: { "Retry-After": "1" } } });
  });

  test("X-Auto-Create: false and no table is 404 while the catalog is there", async () => {
    await expect(send(world.staged(), "{}", { autoCreate: false })).rejects.toMatchObject({ code: "table_not_found" });
    expect(await world.keys("engine/_staged/")).toEqual([]);
  });
});

describe("a table without props", () => {
  test("settles everything before the acknowledgement", async () => {
    const columns = [
      { name: "at", type: { kind: "timestamp" as const } },
      { name: "n", type: { kind: "long" as const } },
    ];
    await world.catalog.createTable({ database: "default", name: "t", columns });
    const node = world.staged();
    await expect(send(node, '{"n":"no number"}')).rejects.toMatchObject({
      code: "bad_request_body",
      details: { line: 1, column: "n" },
    });
    await send(node, '{"n":1,"new":"x"}');
    // The column is there before the rows are.
    expect((await world.catalog.table("default", "t"))?.columns.map(({ name }) => name)).toEqual(["at", "n", "new"]);
    await world.commit();
    expect(await world.rows()).toMatchObject([{ n: "1", new: "x" }]);
  });
});

describe("keys", () => {
  test("are answered with the first acknowledgement, before the commit and after it", async () => {
    const node = world.staged();
    const first = await send(node, '{"body":"x"}', { idempotencyKey: "k" });
    expect(await send(node, '{"body":"y"}', { idempotencyKey: "k" })).toEqual({ ...first, replayed: true });
    await world.commit();
    // Another node has it from the ledger, which knows more.
    const elsewhere = await send(world.staged({ node: "node-2" }), '{"body":"z"}', { idempotencyKey: "k" });
    expect(elsewhere).toMatchObject({ replayed: true, rows: 1, extentCount: 1, snapshotId: expect.any(Number) });
    expect(elsewhere).toEqual(await send(world.sync(), '{"body":"w"}', { idempotencyKey: "k" }));
    expect(await world.keys("engine/_staged/")).toEqual([]);
    expect(await world.values("body")).toEqual(["x"]);
  });

  test("of two requests at once one is staged", async () => {
    const node = world.staged();
    const acks = await Promise.all([1, 2, 3].map((i) => send(node, `{"body":"${i}"}`, { idempotencyKey: "k" })));
    expect(acks.map(({ replayed }) => replayed)).toEqual([false, true, true]);
    await world.commit();
    expect(await world.values("body")).toEqual(["1"]);
  });
});

describe("warnings", () => {
  const UNFIT = '{"body":"a"}\n{"at":"soon","n":"x"}\n{"at":"soon","n":1,"late":"y"}';
  const TOLD = [
    { code: "at_unreadable", count: 2, firstLine: 2 },
    { code: "kept_in_props", field: "n", type: "int", count: 1, firstLine: 2 },
  ];

  test("are the same in both modes, and true when the rows are committed", async () => {
    for (const mode of ["sync", "staged"] as const) {
      const name = `${mode}_table`;
      const shape = [...DEFAULT_SHAPE, { name: "n", type: { kind: "int" as const } }];
      await world.catalog.createTable({ database: "default", name, columns: shape });
      const ingest = world[mode]();
      expect((await send(ingest, '{"body":"fits","n":1}', { table: name })).warnings).toBeUndefined();
      expect((await send(ingest, UNFIT, { table: name })).warnings).toEqual(TOLD);
      await world.commit();
      const inProps = (await world.rows(name)).flatMap((row) => row["props"] ?? []);
      expect(inProps.toSorted()).toEqual(['{"at":"soon","n":"x"}', '{"at":"soon"}']);
    }
  });

  test("are not told of a value that a later column sends to props", async () => {
    const node = world.staged();
    await send(node, '{"body":"seed"}');
    await world.commit();
    const { id = 0 } = (await world.catalog.table("default", "t")) ?? {};
    const ack = await send(node, '{"n":"x"}');
    await world.catalog.addColumns(id, [{ name: "n", type: { kind: "int" } }]);
    expect(ack.warnings).toBeUndefined();
    await world.commit();
    expect(await world.values("props")).toEqual(['{"n":"x"}', "NULL"]);
  });

  test.each(["sync", "staged"] as const)("are not repeated to a replay in %s mode, whenever it comes", async (mode) => {
    const ingest = world[mode]();
    const keyed = { idempotencyKey: "k" };
    const [first, second] = await Promise.all([send(ingest, UNFIT, keyed), send(ingest, UNFIT, keyed)]);
    expect([first, second].filter(({ replayed }) => replayed).map(({ warnings }) => warnings)).toEqual([undefined]);
    expect([first, second].find(({ replayed }) => !replayed)?.warnings).toHaveLength(1);
    expect(await send(ingest, UNFIT, keyed)).not.toHaveProperty("warnings");
    await world.commit();
    const replay = await send(world[mode](), UNFIT, keyed);
    expect([replay.replayed, "warnings" in replay]).toEqual([true, false]);
  });

  test("name at most 32 fields, whatever the table has", async () => {
    const many = Array.from({ length: 50 }, (_, i) => ({ name: `n${i}`, type: { kind: "int" as const } }));
    await world.catalog.createTable({ database: "default", name: "t", columns: [...DEFAULT_SHAPE, ...many] });
    const row = JSON.stringify(Object.fromEntries(many.map(({ name }) => [name, "x"])));
    const { warnings = [] } = await send(world.sync(), `${row}\n${row}`);
    expect(warnings).toHaveLength(33);
    expect(warnings.at(-1)).toEqual({ code: "kept_in_props", count: 36, firstLine: 1 });
  });
});

test("columns that came meanwhile are learned: what travels as it came then does not for ever", async () => {
  const node = world.staged();
  await send(node, '{"new":1}');
  await world.commit();
  await expect
    .poll(
      async () => {
        await send(node, '{"new":2}');
        const keys = await world.keys("engine/_staged/");
        const [, , name = "", id = ""] = (keys.at(-1) ?? "").split("/");
        return decodeStaged(await world.inner.get(keys.at(-1) ?? ""), { node: name, id }).requests[0]?.place.kind;
      },
      { timeout: 5_000 },
    )
    .toBe("rows");
});
