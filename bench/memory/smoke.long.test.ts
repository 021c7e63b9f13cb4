import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as runKnownItems } from "./known-items.ts";
import { main as runServe } from "./serve.ts";

const printed = keepPrinted();

test("headings are answered by their paragraphs, on both parts of the documents", () => {
  runKnownItems(["--documents", fileURLToPath(new URL("../../docs", import.meta.url))]);
  expect(printed.join("\n").match(/^recall, PPR( +[0-9.]+ +[0-9.]+×){2}$/gm)).toHaveLength(2);
});

test("memory is measured over HTTP, from import to questions", { timeout: 120_000 }, async () => {
  await runServe(["--memories", "200", "--edges", "400", "--questions", "10", "--saves", "5", "--dimensions", "8"]);
  expect(printed.join("\n")).toMatch(/^all have vectors/m);
  expect(printed.join("\n").match(/^question( +[0-9.]+){3}$/gm)).toHaveLength(2);
});
