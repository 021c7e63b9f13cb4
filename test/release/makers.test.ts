import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MAKERS } from "../../scripts/release/makers.ts";

test("a release has both kinds of programs that `engine update` replaces, and the docs name its parts", () => {
  const names = MAKERS.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["archives", "single-files"]));
  const docs = readFileSync(new URL("../../docs/releases.md", import.meta.url), "utf8");
  expect(docs).toContain(`makes a part (${names.map((name) => `\`${name}\``).join(", ")})`);
});
