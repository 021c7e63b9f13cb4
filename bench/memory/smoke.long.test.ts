import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./serve.ts";

const printed = keepPrinted();

test("memory is measured over HTTP, from import to questions", { timeout: 120_000 }, async () => {
  await main(["--memories", "200", "--edges", "400", "--questions", "10", "--saves", "5", "--dimensions", "8"]);
  expect(printed.join("\n")).toMatch(/^all have vectors/m);
  expect(printed.join("\n").match(/^question( +[0-9.]+){3}$/gm)).toHaveLength(2);
});
