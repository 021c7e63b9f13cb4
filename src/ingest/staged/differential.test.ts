import { drawnSeed } from "../../core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TableRecord } from "../../catalog/catalog.ts";
import { ManualClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { seededRandom } from "../../core/random.ts";
import { randomCase } from "../../format/ndjson/generate-cases.test-kit.ts";
import type { NdjsonBody } from "../../format/ndjson/scanner.ts";
import { formatColumnType, originOf, type ColumnSpec } from "../../format/types.ts";
import type { IngestService } from "../ingest.ts";
import { send, StagedWorld } from "./staged-world.test-kit.ts";

/**
 * Sync and staged ingest of the same requests, in the same order, into two tables of the same history: the same rows
 * must come out. The nodes' idea of the schema is as old as chance will have it, commits come when chance will have
 * them. Columns are added by hand only while nothing is staged: one that is added between an acknowledgement and its
 * commit is there before the staged rows, and would be after those of sync mode.
 */
let world: StagedWorld;

beforeAll(async () => {
  world = await StagedWorld.open();
});

afterAll(async () => {
  await world.close();
});

const ROUNDS = 60;

test("staged ingest and its commit give the rows of sync ingest", async () => {
  const random = seededRandom(drawnSeed());
  const clock = new ManualClock();
  const nodes = ["node-1", "node-2"].map((node) => world.staged({ clock, node }));
  const sync = world.sync({ clock });
  const committer = world.committer({ maxExtents: 5 });
  const commit = () => committer.commitRound(undefined, new AbortController().signal);
  let rows = 0;
  let refused = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { columns, bodies } = randomCase(random);
    const tables = { sync: `s${round}`, staged: `t${round}` };
    const [initial, later] = splitColumns(columns, () => random.next());
    const made = await Promise.all(Object.values(tables).map((name) => createTable(name, initial)));
    for (const body of [...bodies, ...bodies]) {
      if (random.next() < 0.3) await commit();
      if (random.next() < 0.5 && later.length > 0) {
        await commit();
        await addToAll(made, later.splice(0, 1 + Math.floor(random.next() * later.length)));
      }
      if (random.next() < 0.2) clock.advance(5_000);
      const node = nodes[Math.floor(random.next() * nodes.length)] ?? sync;
      const outcomes = [await outcomeOf(sync, tables.sync, body), await outcomeOf(node, tables.staged, body)];
      expect(outcomes[1], `round ${round}`).toBe(outcomes[0]);
      if (outcomes[0] !== "ok") refused++;
    }
    await commit();
    const expected = await world.rows(tables.sync);
    expect(sorted(await world.rows(tables.staged)), `round ${round}`).toEqual(sorted(expected));
    expect(await columnsOf(tables.staged)).toEqual(await columnsOf(tables.sync));
    rows += expected.length;
  }
  expect(await world.keys("engine/_staged/")).toEqual([]);
  expect(await world.keys("engine/_damaged/")).toEqual([]);
  expect(rows).toBeGreaterThan(300);
  expect(refused).toBeGreaterThan(5);
  await world.catalog.verify();
});

/** Columns to start with, and those that come by hand. Vectors do not take part: a late one is refused in sync mode only. */
function splitColumns(columns: readonly ColumnSpec[], chance: () => number): [ColumnSpec[], ColumnSpec[]] {
  const initial: ColumnSpec[] = [];
  const later: ColumnSpec[] = [];
  for (const column of columns) {
    if (column.type.kind === "vector") continue;
    const isFixed = ["at", "props"].includes(column.name.toLowerCase());
    (isFixed || chance() < 0.4 ? initial : later).push(column);
  }
  return [initial, later];
}

async function createTable(name: string, columns: ColumnSpec[]): Promise<TableRecord> {
  return (await world.catalog.createTable({ database: "default", name, columns })).table;
}

/** A column may have come by evolution, as a string; then it stays one in both. */
async function addToAll(tables: readonly TableRecord[], columns: readonly ColumnSpec[]): Promise<void> {
  for (const column of columns) {
    const added = await Promise.allSettled(tables.map(({ id }) => world.catalog.addColumns(id, [column])));
    expect(new Set(added.map(({ status }) => status)).size).toBe(1);
  }
}

async function outcomeOf(to: IngestService, table: string, body: NdjsonBody): Promise<string> {
  try {
    await send(to, body.bytes, { table, evolve: body.evolve, inferTypes: body.inferTypes ?? false });
    return "ok";
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
}

function sorted(rows: readonly Record<string, string>[]): string[] {
  return rows.map((row) => JSON.stringify(row)).toSorted((a, b) => (a < b ? -1 : 1));
}

async function columnsOf(name: string): Promise<string[] | undefined> {
  const table = await world.catalog.table("default", name);
  return table?.columns.map((column) => `${column.name} ${formatColumnType(column.type)} ${originOf(column)}`);
}
