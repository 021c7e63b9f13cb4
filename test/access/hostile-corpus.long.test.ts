import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCorpus, type HostileStatement } from "../query/hostile/corpus/corpus.test-kit.ts";
import { runCorpus, startHostileWorld, type HostileWorld } from "./hostile-corpus.test-kit.ts";

/** The long form is `node scripts/hostile-corpus.ts`. */
const COUNT = 2_400;

let world: HostileWorld;
let statements: HostileStatement[];
let theirRows: string;

beforeAll(async () => {
  world = await startHostileWorld();
  statements = makeCorpus({ seed: drawnSeed(), count: COUNT, target: world.target });
  theirRows = await world.theirRows();
});
afterAll(() => world.stop());

test("the evidence is seen where there is some", () => {
  expect(world.evidence.in(theirRows, "")).toEqual(["the canary"]);
});

test("no statement reaches the other database, nor leaves anything behind", { timeout: 600_000 }, async () => {
  const report = await runCorpus(world, { statements, send: world.query });
  expect(report.findings).toEqual([]);
  expect(report.sent).toBeGreaterThanOrEqual(2_000);
  // Many are valid queries with odd names: what is never run finds nothing.
  expect(report.statuses["200"]).toBeGreaterThan(200);
});

test("nor does any that is exported", { timeout: 600_000 }, async () => {
  const some = statements.filter(({ index }) => index % 40 === 0);
  const report = await runCorpus(world, { statements: some, send: world.export });
  expect(report.findings).toEqual([]);
  expect(report.sent).toBeGreaterThanOrEqual(60);
});

test("the log has nothing of it, and the other database answers as before", async () => {
  expect(world.log()).toContain('"msg":"listening"');
  expect(world.evidence.in(world.log(), statements.map(({ sql }) => sql).join("\n"))).toEqual([]);
  expect(await world.theirRows()).toBe(theirRows);
});
