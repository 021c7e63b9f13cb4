import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { withoutIntegrity, type LockFile } from "../../scripts/release/lock-file.ts";

const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as LockFile;
const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

test("every package that is installed with the program has its integrity, whatever platform it is for", () => {
  expect(withoutIntegrity(lock)).toEqual([]);
});

test("a native package without its integrity is refused: npm leaves it out without a word", () => {
  const name = "node_modules/@duckdb/node-bindings-linux-arm64";
  const { integrity, ...entry } = lock.packages[name] ?? { version: "" };
  expect(integrity).toMatch(/^sha512-/);
  expect(withoutIntegrity({ packages: { ...lock.packages, [name]: entry } })).toEqual([name]);
});

test.each(PLATFORMS)("DuckDB is there for %s, in the version that is asked for", (platform) => {
  const { version } = lock.packages["node_modules/@duckdb/node-api"] ?? {};
  expect(lock.packages[`node_modules/@duckdb/node-bindings-${platform}`]).toMatchObject({ version });
});

test("no entry says where a package was fetched: that is a matter of whoever installs", () => {
  expect(Object.values(lock.packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});
