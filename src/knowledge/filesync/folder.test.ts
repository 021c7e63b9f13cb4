import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeLeftovers } from "./folder.ts";

let path = "";
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "engine-folder-"));
});
afterEach(() => rmSync(path, { recursive: true }));

test("what a killed pass has left goes, and nothing that somebody may have written", async () => {
  const texts = {
    "a.md": "a",
    "a.md.0123456789ab.tmp": "half of a",
    "b.md.0123456789ab.aside": "b, which was being deleted",
    "c.md": "c, written since",
    "c.md.0123456789ab.aside": "c, as it was",
    "notes.tmp": "not ours",
    "d.md.tmp": "not ours",
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(path, name), text);
  await removeLeftovers({ path } as Parameters<typeof removeLeftovers>[0]);
  const left = readdirSync(path).map((name) => [name, readFileSync(join(path, name), "utf8")]);
  expect(Object.fromEntries(left)).toEqual({
    "a.md": "a",
    "b.md": "b, which was being deleted",
    "c.md": "c, written since",
    "c-0123456789ab.md": "c, as it was",
    "notes.tmp": "not ours",
    "d.md.tmp": "not ours",
  });
});
