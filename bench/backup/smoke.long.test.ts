import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./copy.ts";

/** In its smallest form: that all sides run, not how fast. */
const printed = keepPrinted();

test("a backup is measured against cp", { timeout: 240_000 }, async () => {
  await main(["--mib", "1", "--extents", "20", "--rounds", "1"]);
  const text = printed.join("\n");
  for (const side of ["cp -r and sync", "backup create", "backup restore", "create, unchanged"]) {
    expect(text).toMatch(new RegExp(`^${side}( +[0-9.]+){2} +[0-9.]+×$`, "m"));
  }
});
