import { expect, test } from "vitest";
import { fingerprintOf, normalised } from "./fingerprint.ts";
import { observed } from "./observation.ts";

const FAILED = { label: "ci", status: "failed", message: "it broke" };

test.each([
  [{ status: "FAILED" }],
  [{ conclusion: "failure" }],
  [{ outcome: "timed_out" }],
  [{ label: "test_failure" }],
  [{ label: "ci", level: "error" }],
  [{ label: "build/linux", severity: "Fatal" }],
])("%o is a failure", (row) => {
  expect(observed({ ...row, message: "it broke" }).failure).toEqual({ message: "it broke" });
});

test.each([
  [{ status: "passed" }],
  [{ label: "ci", level: "warn" }],
  // Else every error that any program logs would be one.
  [{ level: "error" }],
  [{ label: "city", level: "error" }],
  [{ status: 1 }],
  [{ status: null, label: ["ci"] }],
])("%o is none", (row) => {
  expect(observed({ ...row, message: "it broke" }).failure).toBeUndefined();
});

test.each([[{}], [{ message: "" }], [{ message: " \u200b\n" }], [{ message: { text: "it broke" } }]])(
  "a failure that does not say what failed is none: %o",
  (row) => {
    expect(observed({ status: "failed", ...row }).failure).toBeUndefined();
  },
);

test.each([
  [{ files: ["a.ts", 7, "b.ts", "a.ts"] }, ["a.ts", "b.ts"]],
  [{ files: '["a.ts","b.ts"]' }, ["a.ts", "b.ts"]],
  [{ files: "[a].ts, b.ts\nc.ts" }, ["[a].ts", "b.ts", "c.ts"]],
  [{ file: "a.ts" }, ["a.ts"]],
  [{ files: null, path: "a.ts" }, ["a.ts"]],
  [{ files: {} }, []],
])("files of %o", (row, files) => {
  expect(observed({ ...FAILED, ...row }).files).toEqual(files);
});

test.each([
  [{ commit: "0123ABC" }, ["0123abc"]],
  [{ sha: "f".repeat(40) }, ["f".repeat(40)]],
  [{ commit: "main" }, []],
  [{ commit: "0123abc; rm -rf" }, []],
])("commits of %o", (row, commits) => {
  expect(observed({ ...FAILED, ...row }).commits).toEqual(commits);
});

test.each([
  ["2026-01-01 10:00:01.123456789", "2026-01-01T10:00:01.123Z"],
  ["2026-01-01T10:00:01Z", "2026-01-01T10:00:01.000Z"],
  ["yesterday", ""],
  [7, ""],
])("the time %s is %s", (at, time) => {
  expect(observed({ ...FAILED, at }).at).toBe(time);
});

test("a secret is masked before a text is cut, and whatever is written between its letters", () => {
  const token = `ghp_${"a1B2".repeat(10)}`;
  const [before, after] = [token.slice(0, 9), token.slice(9)];
  for (const text of [token, `${before}\u200b${after}`, `${before}\u001b[0m${after}`, `${"x".repeat(380)} ${token}`]) {
    expect(observed({ ...FAILED, message: text }).failure?.message).toMatch(/^(?:x+ )?\[masked token\]$/);
  }
});

test.each([
  ["src/a.ts:17:4 expected 3", "src/a.ts:99:12 expected 40"],
  ["took 12.5ms", "took 7ms"],
  ["at 2026-01-01T10:00:00.123Z", "at 2026-12-31 23:59:59+02:00"],
  ["10:11:12 it broke", "9:30:01.5 it broke"],
  ["job 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "job FFFFa1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"],
  ["commit 0123abcdef", "commit f9e8d7c6b5a4"],
  ["pointer 0xdeadbeef", "pointer 0x7"],
  ["It  broke\nhere", "it broke here"],
])("%s and %s are the same failure", (a, b) => {
  expect(normalised(a)).toBe(normalised(b));
});

test.each([
  ["expected apples", "expected pears"],
  // Words of the letters a to f alone are words.
  ["the facade", "the defaced"],
])("%s and %s are two", (a, b) => {
  expect(normalised(a)).not.toBe(normalised(b));
});

test("another repository has other failures", () => {
  expect(fingerprintOf("a", "it broke")).not.toBe(fingerprintOf("b", "it broke"));
});

test("a message from outside costs no more than its length", () => {
  const startedMs = performance.now();
  for (const piece of ["1", "a", "1:", "a-", "12-", "0x", "\u001b[", "password=", "Bearer ", "[", " "]) {
    fingerprintOf("", observed({ ...FAILED, message: piece.repeat(1_000_000), files: piece.repeat(1_000_000) }).at);
    normalised(observed({ ...FAILED, message: piece.repeat(1_000_000) }).failure?.message ?? "");
  }
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});
