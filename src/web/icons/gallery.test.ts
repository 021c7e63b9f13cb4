import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openGallery } from "./gallery.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "engine-icons-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function fileOf(content: unknown): string {
  const file = join(folder, "icons.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

test("those of the program are there without a file", () => {
  const { kinds, vendors } = openGallery(undefined);
  expect(kinds["table"]).toEqual({ path: expect.stringMatching(/^M/) as string, view_box: "0 0 20 20" });
  expect(vendors).toEqual({});
});

test("a file adds icons and replaces them", () => {
  const table = { path: "M0 0h1v1z", view_box: "0 0 1 1" };
  const { kinds, vendors } = openGallery(
    fileOf({ kinds: { table, "s3.bucket": "m1-1e-2 z" }, vendors: { acme: "M1 1" } }),
  );
  expect(kinds["table"]).toEqual(table);
  expect(kinds["s3.bucket"]).toEqual({ path: "m1-1e-2 z", view_box: "0 0 20 20" });
  expect(kinds["dashboard"]).toBeDefined();
  expect(vendors).toEqual({ acme: { path: "M1 1", view_box: "0 0 20 20" } });
});

const NOT_PATHS = [
  '<svg onload="alert(1)"/>',
  'M0 0"/><script>alert(1)</script>',
  "url(#x)",
  "javascript:alert(1)",
  "data:image/svg+xml,x",
  "https://example.com/x.svg",
  "M0 0&quot;",
  "",
  `M${"0 ".repeat(5_000)}`,
  7,
  null,
  ["M0 0"],
  { path: "M0 0", href: "https://example.com" },
  { path: "M0 0", view_box: "0 0 1 1 onload=x" },
  { view_box: "0 0 1 1" },
];
test.each(NOT_PATHS)("what is no path is refused at the start: %j", (icon) => {
  for (const map of ["kinds", "vendors"]) {
    expect(() => openGallery(fileOf({ [map]: { acme: icon } }))).toThrow(`icons.json: ${map}.acme`);
  }
});

test.each([
  ["{", "icons.json: "],
  ["[]", "icons.json: "],
  ["null", "icons.json: "],
  ['{"kinds":[]}', "icons.json: kinds"],
  ['{"kinds":{"A B":"M0 0"}}', "icons.json: kinds"],
  ['{"icons":{}}', "icons.json: "],
  [`{"kinds":{}}${" ".repeat(1024 * 1024)}`, "more than 1048576 bytes"],
])("a file that is something else is refused: %.40s", (content, message) => {
  expect(() => openGallery(fileOf(content))).toThrow(message);
});

test("a name that objects have of themselves is none", () => {
  const { kinds } = openGallery(fileOf('{"kinds":{"__proto__":"M7 7"}}'));
  expect(Object.getPrototypeOf(kinds)).toBe(Object.prototype);
  expect(JSON.stringify(kinds)).not.toContain("M7 7");
});

test("a file that is not there is named", () => {
  expect(() => openGallery(join(folder, "none.json"))).toThrow("none.json: ENOENT");
});
