import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { compact, fieldValues, isKept } from "../../format/ndjson/inferred-values.test-kit.ts";
import { formatColumnType } from "../../format/types.ts";
import { send, StagedWorld } from "./staged-world.test-kit.ts";

/** Bodies that reach one table in some order, by groups that arrive together, at two nodes in turn. */

let world: StagedWorld;
let tables = 0;
beforeEach(async () => {
  world = await StagedWorld.open();
});
afterEach(async () => {
  await world.catalog.verify();
  await world.close();
});

/** Every combination of nodes is one case; each run has a table of its own. */
const NODES = {
  "two nodes in sync mode": () => [world.sync(), world.sync()],
  "two nodes in staged mode": () => [world.staged({ node: "a" }), world.staged({ node: "b" })],
  "a node of each mode": () => [world.sync(), world.staged()],
};

/** Sends the groups one after the other, and has all that is staged committed now and then. */
async function sendAll(name: keyof typeof NODES, groups: readonly (readonly string[][])[]): Promise<string> {
  const table = `t${++tables}`;
  const nodes = NODES[name]();
  const rows = groups.flat(2).length;
  let sent = 0;
  for (const [number, group] of groups.entries()) {
    const bodies = group.filter((values) => values.length > 0);
    const sending = bodies.map((values, i) => {
      const lines = values.map((json) => `{"f":${json},"body":"${sent++}"}\n`);
      const node = nodes[(number + i) % nodes.length];
      if (node === undefined) throw new Error("there is no node");
      return send(node, lines.join(""), { table, inferTypes: true });
    });
    await Promise.all(sending);
    if (number % 2 === 1) await world.commit();
  }
  await world.commit();
  expect(await world.rows(table)).toHaveLength(rows);
  return table;
}

async function typeOf(table: string): Promise<string> {
  const column = (await world.catalog.table("default", table))?.columns.find(({ name }) => name === "f");
  return column === undefined ? "none" : formatColumnType(column.type);
}

const groupsOf = (values: fc.Arbitrary<string[]>) =>
  fc.array(fc.array(values, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 });

const wholes = fc.oneof(fc.integer().map(String), fc.maxSafeInteger().map(String), fc.constantFrom("-0", "1e3", "7.0"));
const fractions = fc.integer().map((quarters) => `${quarters}.25`);
const exactNumbers = fc.oneof(
  fc.array(wholes, { maxLength: 4 }),
  fc.array(fc.oneof(wholes, fractions), { maxLength: 4 }),
);

describe.each(Object.keys(NODES) as (keyof typeof NODES)[])("%s", (name) => {
  test("numbers that a double holds end in a column of one type, whatever comes first", async () => {
    await fc.assert(
      fc.asyncProperty(groupsOf(exactNumbers), async (groups) => {
        const all = groups.flat(2);
        if (all.length === 0) return;
        const table = await sendAll(name, groups);
        const isWhole = all.every((token) => Number.isInteger(Number(token)));
        expect(await typeOf(table)).toBe(isWhole ? "long" : "real");
        expect((await world.rows(table)).every((row) => "f" in row && !("props" in row))).toBe(true);
      }),
      { numRuns: 15 },
    );
  });

  test("every value is found again in its column, or in props digit for digit", async () => {
    await fc.assert(
      fc.asyncProperty(groupsOf(fieldValues), async (groups) => {
        const all = groups.flat(2);
        if (all.length === 0) return;
        const table = await sendAll(name, groups);
        const type = await typeOf(table);
        const lost = (await world.rows(table)).filter(({ f, props, body }) => {
          const sent = all[Number(body)] ?? "";
          if (sent === "null") return f !== undefined || props !== undefined;
          if (f === undefined) return props !== `{"f":${compact(sent)}}`;
          return !isKept(sent, type === "timestamp" ? BigInt(f) : f, type);
        });
        expect(lost).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });
});
