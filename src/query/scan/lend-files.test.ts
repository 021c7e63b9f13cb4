import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { canLend, lendFiles } from "./lend-files.ts";
import type { LocalExtent, ResolvedTable } from "../contract/tables.ts";

let base: string;
let input: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "engine-lend-"));
  input = join(base, "in");
  mkdirSync(input);
});
afterEach(() => rmSync(base, { recursive: true }));

function extent(path: string): LocalExtent {
  return { id: path, format: "parquet", formatVersion: 1, rows: 1, columns: [], minAtNs: 0n, path: join(base, path) };
}

function table(...extents: LocalExtent[]): ResolvedTable {
  return { name: "t", columns: [], needed: undefined, extents, bareRows: 0 };
}

test("a query gets its extents as hard links, each once, and none of them stays", async () => {
  for (const name of ["a", "b"]) {
    mkdirSync(join(base, name));
    writeFileSync(join(base, name, "x.parquet"), name);
  }
  const first = extent("a/x.parquet");
  const lent = await lendFiles(input, [table(first, extent("b/x.parquet")), table(first)]);
  const paths = lent.tables.flatMap(({ extents }) => extents.map(({ path }) => path));
  expect(paths.map((path) => readFileSync(path, "utf8"))).toEqual(["a", "b", "a"]);
  expect(new Set(paths).size).toBe(2);
  expect(statSync(paths[0] ?? "").ino).toBe(statSync(first.path).ino);
  // Whoever deletes the extent meanwhile takes nothing from the query.
  rmSync(first.path);
  expect(readFileSync(paths[0] ?? "", "utf8")).toBe("a");
  await lent.release();
  expect(readdirSync(input)).toEqual([]);
});

test("an extent that is missing has no link, and is missed by nobody in the end", async () => {
  const lent = await lendFiles(input, [table(extent("gone.parquet"))]);
  expect(existsSync(lent.tables[0]?.extents[0]?.path ?? "")).toBe(false);
  await lent.release();
});

test("nothing stays of links that could not all be made", async () => {
  writeFileSync(join(base, "x.parquet"), "");
  writeFileSync(join(base, "y.parquet"), "");
  linkSync(join(base, "y.parquet"), join(input, "y.parquet"));
  const both = table(extent("x.parquet"), extent("y.parquet"));
  await expect(lendFiles(input, [both])).rejects.toMatchObject({ code: "EEXIST" });
  expect(existsSync(join(input, "x.parquet"))).toBe(false);
});

test("folders are tried with a file, which is gone after", () => {
  const other = join(base, "other");
  mkdirSync(other);
  expect(canLend(other, input)).toBe(true);
  expect([...readdirSync(other), ...readdirSync(input)]).toEqual([]);
  expect(() => canLend(join(base, "nowhere"), input)).toThrow("ENOENT");
});
