import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FEATURES } from "./features.ts";
import { referenceDocs } from "./reference.ts";

test("the generated documents are what the features say (npm run docs writes them)", async () => {
  const documents = await referenceDocs(FEATURES);
  const written = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8");
  expect(Object.fromEntries(Object.keys(documents).map((name) => [name, written(name)]))).toEqual(documents);
});
