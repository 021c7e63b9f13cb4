import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./sandboxes.ts";

const printed = keepPrinted();

test("sandboxes are measured", { timeout: 120_000 }, async () => {
  await main(["--rounds", "1", "--lines", "100", "--file-mb", "2", "--idle", "2"]);
  const text = printed.join("\n");
  if (text.includes("sandboxes: skipped")) return;
  for (const name of ["runc by hand", "engine, cold", "engine, prepared"]) {
    expect(text).toMatch(new RegExp(`^${name}( +[0-9.]+){3}$`, "m"));
  }
  expect(text).toMatch(/^engine( +[0-9.]+){2}$/m);
  expect(text).toMatch(/^upload( +[0-9.]+){2}$/m);
  expect(text).toMatch(/^ {2}the server -?[0-9.]+ MiB$/m);
});
