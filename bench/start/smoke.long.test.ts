import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./start.ts";

const printed = keepPrinted();

test("start and idle memory are measured of the bundle and of the sources", { timeout: 240_000 }, async () => {
  execFileSync(process.execPath, ["scripts/build.ts"], { stdio: "ignore" });
  await main(["--rounds", "1", "--idle-ms", "500"]);
  const text = printed.join("\n");
  expect(text).toMatch(/^bundle( +[0-9.]+){5}$/m);
  expect(text).toMatch(/^sources( +[0-9.]+){5}$/m);
  expect(text.match(/^server +1( +[0-9.]+){2}$/gm)).toHaveLength(2);
  expect(text.match(/^query +\d( +[0-9.]+){2}$/gm)).toHaveLength(2);
  expect(text.match(/^all: [0-9.]+ MiB PSS, [0-9.]+ MiB if alone$/gm)).toHaveLength(2);
});
