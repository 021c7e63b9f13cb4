import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./merge.ts";

/** In its smallest form: that all sides run and have the same rows, in order, not how fast. */
const printed = keepPrinted();

test("a merge is measured against COPY from every source", { timeout: 240_000 }, async () => {
  await main(["logs", "nested", "--rows", "3000", "--extent-rows", "500", "--late", "700", "--rounds", "1"]);
  const text = printed.join("\n");
  expect(text).toContain("logs: 3000 rows, 6 extents of");
  for (const source of ["table", "parquet", "ndjson"]) {
    expect(text.match(new RegExp(`^${source} +(own|kept|turn)( +[0-9.]+){6} +[0-9.]+× +[0-9.]+$`, "gm"))).toHaveLength(
      6,
    );
  }
});

test("COPY from something else is refused", async () => {
  const nonsense = ["--rows", "100", "--rounds", "1", "--against", "nothing"];
  await expect(main(nonsense)).rejects.toThrow("nothing is nothing that COPY could read here");
});
