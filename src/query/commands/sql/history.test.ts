import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { History, HISTORY_ENTRIES, oneLine } from "./history.ts";

function home(): string {
  const folder = mkdtempSync(join(tmpdir(), "history-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "home");
}

test("what is added is read back, the newest first, by its user alone", async () => {
  const folder = home();
  const history = new History(folder);
  expect(await history.read()).toEqual([]);
  for (const entry of ["SELECT 1;", "SELECT 'ü';", " secret", "", "two\nlines", "x".repeat(20_000)])
    await history.add(entry);
  expect(await history.read()).toEqual(["SELECT 'ü';", "SELECT 1;"]);
  const file = join(folder, "sql_history");
  expect([statSync(file).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([0o600, 0o700]);
  chmodSync(file, 0o644);
  await history.read();
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the file does not grow without end, and shells side by side lose nothing", async () => {
  const folder = home();
  const [one, two] = [new History(folder), new History(folder)];
  await Promise.all([...Array(50).keys()].flatMap((i) => [one.add(`one ${i}`), two.add(`two ${i}`)]));
  expect(await one.read()).toHaveLength(100);
  const file = join(folder, "sql_history");
  writeFileSync(file, [...Array(2 * HISTORY_ENTRIES + 1).keys()].map((i) => `SELECT ${i};\n`).join(""));
  const read = await one.read();
  expect([read.length, read[0]]).toEqual([HISTORY_ENTRIES, `SELECT ${2 * HISTORY_ENTRIES};`]);
  expect(readFileSync(file, "utf8").trimEnd().split("\n")).toHaveLength(HISTORY_ENTRIES);
  expect(readdirSync(folder)).toEqual(["sql_history"]);
});

test("a file that is too large is read from its end", async () => {
  const folder = home();
  const history = new History(folder);
  await history.add("SELECT 0;");
  writeFileSync(join(folder, "sql_history"), `${"x".repeat(5 * 2 ** 20)}\nSELECT 1;\n`);
  expect(await history.read()).toEqual(["SELECT 1;"]);
});

test.for([
  [["SELECT 1;"], "SELECT 1;"],
  [["SELECT", "  1;"], "SELECT 1;"],
  [["SELECT 1 -- one", ";"], undefined],
  [["SELECT 'a", "b';"], undefined],
  [['SELECT "a', 'b";'], undefined],
] as const)("%j becomes one entry where that changes nothing", ([lines, entry]) => {
  expect(oneLine(lines)).toBe(entry);
});
