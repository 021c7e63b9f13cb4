import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { migrationTexts, type Migration } from "../src/db/migration.ts";
import { MIGRATIONS } from "./migrations.ts";

const digest = (texts: readonly string[]) => createHash("sha256").update(JSON.stringify(texts)).digest("hex");

// Catalogs count their migrations. A published text never changes: a new migration goes behind these, and adds a line.
it.each([
  ["sqlite", 14, "7590b09cc061e311ca0825ac0753a251351fd32075185c9b8ca24208c2dda610"],
  ["postgres", 11, "0181b41869e9e1b9bbf86f5163af07a0db8ed280c6e3031b851b9a6204a4d41e"],
] as const)("the first migrations of %s are as they were published", (dialect, count, published) => {
  expect(digest(migrationTexts(dialect, MIGRATIONS).slice(0, count))).toBe(published);
});

it("have names of their own", () => {
  expect(new Set(MIGRATIONS.map(({ name }) => name)).size).toBe(MIGRATIONS.length);
});

const numbered = (...numbers: readonly number[]): Migration[] =>
  numbers.map((sqlite) => ({ name: `n${sqlite}`, sqlite, sql: `text ${sqlite}` }));

it("are ordered by their numbers, whatever the order of the list", () => {
  const only: Migration = { name: "only", postgres: 1, sql: "other" };
  expect(migrationTexts("sqlite", [...numbered(2, 1), only])).toEqual(["text 1", "text 2"]);
  expect(migrationTexts("postgres", [...numbered(2, 1), only])).toEqual(["other"]);
});

it.each([
  ["a gap", numbered(1, 3), 'migration "n3" has number 3 in sqlite, where 2 is next'],
  ["a number given twice", numbered(1, 1), 'migration "n1" has number 1 in sqlite, where 2 is next'],
  ["no first one", numbered(2), 'migration "n2" has number 2 in sqlite, where 1 is next'],
  [
    "a missing text",
    [{ name: "m", sqlite: 1, sql: { postgres: "x" } }],
    'migration "m" has a number in sqlite and no text',
  ],
])("are refused with %s", (_what, migrations, why) => {
  expect(() => migrationTexts("sqlite", migrations)).toThrow(why);
});
