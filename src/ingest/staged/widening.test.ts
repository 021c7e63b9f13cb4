import { drawnSeed } from "../../core/drawn-seed.test-kit.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { seededRandom } from "../../core/random.ts";
import { formatColumnType } from "../../format/types.ts";
import { send, StagedWorld } from "./staged-world.test-kit.ts";

/**
 * Types from data, whoever comes first: rows of a few fields in any order, in bodies of any size, sent one by one or
 * together, to two nodes in sync mode and two in staged mode, with commits in between.
 */
let world: StagedWorld;
beforeEach(async () => {
  world = await StagedWorld.open();
});
afterEach(() => world.close());

type Draw = (bound: number) => number;

/** A field, its values as they are sent, and the type that its column must have in the end; undefined for any. */
type Field = { name: string; value: (draw: Draw) => string; type?: "long" | "real" };

const SMALL = (draw: Draw) => String(draw(2_000) - 1_000);
const FIELDS: readonly Field[] = [
  { name: "whole", value: SMALL, type: "long" },
  { name: "mixed", value: (draw) => (draw(8) === 0 ? `${draw(50)}.25` : SMALL(draw)), type: "real" },
  {
    name: "edge",
    value: (draw) => ["9007199254740992", "-9007199254740992", "0.5", "1e3"][draw(4)] ?? "1",
    type: "real",
  },
  { name: "far", value: (draw) => ["9007199254740993", "7", "2.5", "-9223372036854775808"][draw(4)] ?? "1" },
  { name: "digits", value: (draw) => ["0.1000000000000000055", "3", "0.1"][draw(3)] ?? "1" },
  { name: "words", value: (draw) => ['"a"', "12", "0.5", "true", '{"x":[1.50]}'][draw(5)] ?? "1" },
];

test("every value is in its column or in props, and a field of numbers ends with one type in every order", async () => {
  const seed = drawnSeed();
  const random = seededRandom(seed);
  const draw: Draw = (bound) => Math.floor(random.next() * bound);
  for (let round = 0; round < 25; round++) {
    const table = `t${round}`;
    const rows = rowsOf(draw);
    const nodes = ["a", "b"].flatMap((node) => [world.sync(), world.staged({ node })]);
    for (let at = 0; at < rows.length;) {
      const bodies = Array.from({ length: 1 + draw(4) }, () => rows.slice(at, (at += 1 + draw(5)))).filter(
        ({ length }) => length > 0,
      );
      const sent = bodies.map((body) => {
        const lines = body.map(({ line }) => line).join("\n");
        return send(pick(nodes, draw), lines, { table, inferTypes: true });
      });
      await Promise.all(sent);
      if (draw(3) === 0) await world.commit({ maxExtents: 1 + draw(4) });
    }
    // What is sent back, because a column is to be widened first, may need another round.
    for (let i = 0; i < 3; i++) await world.commit();
    const found = new Map((await world.rows(table)).map((row) => [row["label"], row]));
    const about = `seed ${seed}, round ${round}`;
    expect({ about, rows: found.size }).toEqual({ about, rows: rows.length });
    for (const { label, values } of rows) {
      const lost = [...values].filter(([name, token]) => !isKept(found.get(label) ?? {}, name, token));
      expect({ about, label, lost }).toEqual({ about, label, lost: [] });
    }
    const columns = (await world.catalog.table("default", table))?.columns ?? [];
    const typeOf = (name: string) =>
      columns.filter((one) => one.name === name).map(({ type }) => formatColumnType(type));
    for (const { name, type } of FIELDS) {
      const tokens = rows.flatMap(({ values }) => values.get(name) ?? []);
      if (type === undefined || tokens.length === 0) continue;
      const isReal = tokens.some((token) => token.includes("."));
      expect({ about, name, type: typeOf(name) }).toEqual({ about, name, type: [isReal ? "real" : "long"] });
    }
  }
  expect(await world.keys("engine/_staged/")).toEqual([]);
  await world.catalog.verify();
}, 120_000);

test("a column that cannot be widened does not keep another one narrow, which a draft of the same round has brought", async () => {
  const options = { table: "t", inferTypes: true };
  await send(world.sync(), '{"label":"0","far":9007199254740993}', options);
  await send(world.staged({ node: "a" }), '{"label":"1","mixed":5}', options);
  await send(world.staged({ node: "b" }), '{"label":"2","far":2.5,"mixed":37.25}', options);
  await world.commit();
  const columns = (await world.catalog.table("default", "t"))?.columns ?? [];
  const types = columns.map(({ name, type }) => `${name} ${formatColumnType(type)}`);
  expect(types).toEqual(expect.arrayContaining(["far long", "mixed real"]));
  const rows = (await world.rows("t")).map(({ label, mixed }) => `${label}: ${mixed ?? ""}`);
  expect(rows.toSorted()).toEqual(["0: ", "1: 5", "2: 37.25"]);
});

function pick<T>(all: readonly T[], draw: Draw): T {
  const picked = all[draw(all.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

function rowsOf(draw: Draw) {
  return Array.from({ length: 10 + draw(40) }, (_, i) => {
    const label = `row ${i}`;
    const own = FIELDS.filter(() => draw(3) > 0).map(({ name, value }) => [name, value(draw)] as const);
    const members = [`"label":"${label}"`, ...own.map(([name, token]) => `"${name}":${token}`)];
    return { label, values: new Map(own), line: `{${members.join()}}` };
  });
}

/** As text in the column: the same number, or what was sent; else in `props`, digit for digit. */
function isKept(row: Record<string, string>, name: string, token: string): boolean {
  const stored = row[name];
  if (stored === undefined) return row["props"]?.includes(`"${name}":${token}`) === true;
  const bare = token.startsWith('"') ? (JSON.parse(token) as string) : token;
  return stored === token || stored === bare || (/^-?\d/.test(token) && Number(stored) === Number(token));
}
