import { expect, test } from "vitest";
import { assertAllowed, isAllowed } from "../../scripts/release/licences.ts";

test.each(["MIT", "Apache-2.0", "(MIT OR GPL-3.0-only)", "MIT AND ISC", "GPL-3.0-only OR Unlicense"])(
  "%s is allowed",
  (license) => {
    expect(isAllowed(license)).toBe(true);
  },
);

test.each([
  "",
  "none",
  "GPL-3.0-only",
  "AGPL-3.0-or-later",
  "MIT AND GPL-3.0-only",
  "MIT OR GPL-3.0-only AND SSPL-1.0",
  "(MIT OR ISC) AND GPL-3.0-only",
  "SEE LICENSE IN LICENSE.md",
  "UNLICENSED",
  "mit",
  "constructor",
])("%j is not", (license) => {
  expect(isAllowed(license)).toBe(false);
});

test("a release with another licence is refused, and every package is named", () => {
  const packages = [
    { name: "good", version: "1.0.0", license: "MIT" },
    { name: "bad", version: "2.0.0", license: "GPL-3.0-only" },
    { name: "unknown", version: "3.0.0", license: "none" },
  ];
  expect(() => assertAllowed(packages)).toThrow("bad 2.0.0 (GPL-3.0-only), unknown 3.0.0 (none)");
});
