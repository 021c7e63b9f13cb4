import { expect, test } from "vitest";
import { makeCorpus } from "./corpus.test-kit.ts";
import { CANARY } from "./evidence.test-kit.ts";
import { FRAMES } from "./frames.test-kit.ts";
import { KNOWN_HOLES } from "./known-holes.test-kit.ts";
import { SEEDS } from "./seeds.test-kit.ts";
import { parseTemplate, render, slotsOf } from "./template.test-kit.ts";
import { MARKER, type Target } from "./texts.test-kit.ts";

const ROOT = "/srv/engine/data";
const TARGET: Target = {
  root: ROOT,
  folder: `${ROOT}/theirs`,
  ownFolder: `${ROOT}/mine`,
  tlm: `${ROOT}/theirs/logs/2026-01-01/1.tlm`,
  parquet: `${ROOT}/theirs/logs/2026-01-01/2.parquet`,
  catalog: "/srv/engine/catalog.db",
};
const SEEDS_TRIED = [1, 2, 3, 2_026];
const corpus = (seed: number) => makeCorpus({ seed, count: 2_400, target: TARGET });

test("the same seed makes the same statements, another one others", () => {
  const sqlOf = (seed: number) => corpus(seed).map(({ sql }) => sql);
  expect(sqlOf(1)).toEqual(sqlOf(1));
  const others = new Set(sqlOf(1));
  expect(sqlOf(2).filter((sql) => !others.has(sql)).length).toBeGreaterThan(500);
});

test.each(SEEDS_TRIED)("seed %i: at least 2,000 statements, no two the same", (seed) => {
  const statements = corpus(seed);
  expect(statements.length).toBeGreaterThanOrEqual(2_400);
  expect(new Set(statements.map(({ sql }) => sql)).size).toBe(statements.length);
  expect(statements.map(({ index }) => index)).toEqual(statements.map((_, i) => i));
});

test.each(SEEDS_TRIED)("seed %i: every seed and every frame is in it", (seed) => {
  const statements = corpus(seed);
  const fillable = SEEDS.filter(({ template }) => slotsOf(parseTemplate(template)).size > 0);
  expect(fillable.length).toBeGreaterThanOrEqual(60);
  expect([...new Set(statements.map((statement) => statement.seed))].toSorted()).toEqual(
    fillable.map(({ name }) => name).toSorted(),
  );
  expect(new Set(statements.map(({ frame }) => frame))).toEqual(new Set(FRAMES.map(({ name }) => name)));
});

test.each(SEEDS_TRIED)("seed %i: nothing in it is taken for a finding", (seed) => {
  const all = corpus(seed)
    .map(({ sql }) => sql)
    .join("\n");
  expect(all).not.toContain(MARKER);
  expect(all).not.toContain(CANARY.slice(3));
});

test.each(SEEDS_TRIED)("seed %i: it goes through every hole that is known", (seed) => {
  const statements = corpus(seed);
  const missing = KNOWN_HOLES.filter(({ isIn }) => !statements.some(isIn)).map(({ name }) => name);
  expect(missing).toEqual([]);
});

test("slots with one text are filled together", () => {
  const template = parseTemplate("SELECT ‹star:e›.*, ‹text:e› FROM t AS ‹alias:e›, ‹table:u›");
  expect(render(template)).toBe("SELECT e.*, 'e' FROM t AS e, u");
  expect(render(template, ({ name }) => (name === "e" ? '"x"' : undefined))).toBe('SELECT "x".*, "x" FROM t AS "x", u');
  expect([...slotsOf(template)]).toEqual([
    ["e", new Set(["star", "text", "alias"])],
    ["u", new Set(["table"])],
  ]);
});
