import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { QUERY_CLASSES } from "../../src/capacity/costs/costs.ts";
import { questionsOn, type Question } from "./queries.ts";
import { writeRows, type RowsFile } from "./rows-file.ts";

let folder: string;
let data: RowsFile;
let rows: { at: string; trace_id: string }[];
let questions: Question[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-questions-"));
  data = await writeRows(folder, { name: "logs", shape: "logs", sizeBytes: 200_000, seed: 3 });
  const lines = (await readFile(data.path, "utf8")).trimEnd().split("\n");
  rows = lines.map((line) => JSON.parse(line) as (typeof rows)[number]);
  questions = questionsOn({ compacted: { table: "merged", data }, fresh: { table: "young", data } });
});
afterAll(() => rm(folder, { recursive: true }));

test("the file has the rows that it says it has, equally far apart in time", async () => {
  expect(rows).toHaveLength(data.rows);
  expect(await readFile(data.path)).toHaveLength(data.sizeBytes);
  expect(data.sizeBytes).toBeGreaterThanOrEqual(200_000);
  expect(rows[0]?.at).toBe(data.firstAt);
  expect(Date.parse(rows.at(-1)?.at ?? "") - Date.parse(data.firstAt)).toBe((data.rows - 1) * data.stepMs);
  expect(rows[data.middle.index]?.trace_id).toBe(data.middle.key);
});

test("the same seed makes the same bytes, another one others", async () => {
  const write = async (name: string, seed: number) =>
    await readFile((await writeRows(folder, { name, shape: "logs", sizeBytes: 10_000, seed })).path, "utf8");
  const first = await write("first", 5);
  expect(await write("again", 5)).toBe(first);
  expect(await write("other", 6)).not.toBe(first);
});

test.each(QUERY_CLASSES)("a question of the class %s has so many rows in its range, and their bytes", (name) => {
  const own = questions.filter((question) => question.class === name);
  expect(own).toHaveLength(2);
  for (const { sql, n, rangeBytes } of own) {
    const [, from = "", to = ""] = /"at" >= '([^']+)' AND "at" < '([^']+)'/.exec(sql) ?? [];
    const inRange = rows.filter(({ at }) => at.replace("T", " ") >= from && at.replace("T", " ") < to);
    const found = sql.includes("trace_id =") ? inRange.filter((row) => sql.includes(row.trace_id)) : inRange;
    expect(found).toHaveLength(n);
    expect(rangeBytes / data.sizeBytes).toBeCloseTo(inRange.length / rows.length, 3);
    expect(sql.includes(name === "fresh" ? "young" : "merged")).toBe(true);
  }
  expect(own[1]?.rangeBytes).toBeGreaterThan(own[0]?.rangeBytes ?? 0);
});
