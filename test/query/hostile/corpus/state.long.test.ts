import { afterAll, beforeAll, expect, test } from "vitest";
import { describeStatement, makeCorpus } from "./corpus.test-kit.ts";
import { FileWatch } from "./evidence.test-kit.ts";
import { openLocalEngine, type LocalEngine } from "./local.test-kit.ts";

/** Statements between two looks at the state, which take longer than they do. */
const BATCH = 10;

let engine: LocalEngine;

beforeAll(async () => {
  engine = await openLocalEngine();
});
afterAll(() => engine.close());

test("no hostile statement leaves anything in DuckDB or in a file", { timeout: 300_000 }, async () => {
  const statements = makeCorpus({ seed: 2, count: 2_000, target: engine.target });
  // Those that could: the others only read.
  const some = statements.filter(({ fill }) => fill.some(({ text }) => /COPY|COMMIT|SET |EXPORT/.test(text.text)));
  expect(some.length).toBeGreaterThan(400);
  await engine.run("SELECT 1");
  const files = new FileWatch(engine.target.root);
  let before = await engine.state();
  expect(before.length).toBeGreaterThan(2_000);
  const findings: string[] = [];
  let answered = 0;
  for (let start = 0; start < some.length; start += BATCH) {
    const batch = some.slice(start, start + BATCH);
    for (const { sql } of batch) if ((await engine.run(sql)) === "answered") answered++;
    const after = await engine.state();
    const found = [...differences(before, after), ...files.changes()];
    if (found.length === 0) continue;
    findings.push(`${found.join("\n")}\nof one of\n  ${batch.map(describeStatement).join("\n  ")}`);
    files.restore();
    before = after;
  }
  expect(findings).toEqual([]);
  expect(answered).toBeGreaterThan(20);
});

/** Lines that only one of two lists has. */
function differences(before: readonly string[], after: readonly string[]): string[] {
  const [old, now] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !now.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !old.has(line)).map((line) => `+ ${line}`),
  ];
}
