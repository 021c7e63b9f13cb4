import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withTemporaryFolder } from "../support/data-file.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "../main.ts";
import { mustBeSame } from "./same-rows.ts";

/** The query benchmarks in their smallest form: that they run and that their sides agree, not how fast. */
const printed = keepPrinted();

describe("answers of two sides", () => {
  const same =
    (actual: object[], expected: object[], ordered = false) =>
    () =>
      mustBeSame("q", { actual: actual as never, expected: expected as never, ordered });

  test("are the same in another order, another rounding, another way to write moments and nested values", () => {
    expect(same([{ a: 1 }, { a: 2 }], [{ a: 2 }, { a: 1 }])).not.toThrow();
    expect(same([{ a: 0.1 + 0.2 }], [{ a: 0.3 }])).not.toThrow();
    expect(same([{ a: "2026-01-01T00:00:00.5Z" }], [{ a: "2026-01-01 00:00:00.500000" }])).not.toThrow();
    expect(same([{ a: { b: [1, null] } }], [{ a: '{"b":[1,null]}' }])).not.toThrow();
  });

  test("are not the same with another row, number, value, moment or order", () => {
    expect(same([{ a: 1 }], [{ a: 1 }, { a: 1 }])).toThrow("1 rows, not 2");
    expect(same([{ a: 1.000001 }], [{ a: 1 }])).toThrow("row 0");
    expect(same([{ a: null }], [{ a: 0 }])).toThrow("row 0");
    expect(same([{ a: "2026-01-01T00:00:00.5Z" }], [{ a: "2026-01-01 00:00:00.05" }])).toThrow("row 0");
    expect(same([{ a: 1 }, { a: 2 }], [{ a: 2 }, { a: 1 }], true)).toThrow("row 0");
    expect(same([{ a: { b: 1 } }], [{ a: '{"c":1}' }])).toThrow("row 0");
  });
});

test("queries in KQL are read from files of all kinds, translated, and their refusals counted", async () => {
  await withTemporaryFolder(async (folder) => {
    await writeFile(
      join(folder, "one.kql"),
      "// a comment\nLogs\n| where Time > ago(1d) and Count > 5\n| summarize n = count() by tostring(User.name)\n",
    );
    await writeFile(
      join(folder, "two.md"),
      "# Title\n```bash\nls | wc\n```\nwords | more words of a sentence\n```kql\nLogs | project Time, Text | take 5\n```\ntext\n```\nLogs | evaluate autocluster()\n```\n",
    );
    await writeFile(
      join(folder, "three.yaml"),
      "id: x\nquery: |\n  Logs\n  | join (Users) on Id\n  | count\nversion: 1\n",
    );
    await main(["run", "query/kql-corpus", "--folders", folder, "--rounds", "1", "--out", folder]);
  });
  const text = printed.join("\n");
  expect(text).toMatch(/^all +share +0\.75 /m);
  expect(text).toMatch(/^translated +p99 +[0-9.]+ /m);
  expect(text).toMatch(/^marked: 1 of 4 are refused: .*autocluster/m);
});
