import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalHost, canonicalRule, isAllowed } from "./host-names.ts";

describe("a host is compared in one form", () => {
  it.each([
    ["Example.COM", "example.com"],
    ["example.com.", "example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["ＥＸＡＭＰＬＥ.com", "example.com"],
    ["a_b.example", "a_b.example"],
    ["0x7f.1", "127.0.0.1"],
    ["2130706433", "127.0.0.1"],
    ["017700000001", "127.0.0.1"],
    ["127.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
    ["[::1]", "::1"],
    ["::FFFF:7F00:1", "::ffff:7f00:1"],
    ["2001:DB8:0::1", "2001:db8::1"],
  ])("%s is %s", (text, host) => {
    expect(canonicalHost(text)).toBe(host);
  });

  it.each([
    ["nothing", ""],
    ["a NUL", "example.com\0.evil.example"],
    ["a space", "exa mple.com"],
    ["a line feed", "example.com\nevil.example"],
    ["a percent sign", "example%2ecom"],
    ["user information", "user@example.com"],
    ["a path", "example.com/x"],
    ["two dots at the end", "example.com.."],
    ["an empty label", "a..b"],
    ["a dash at the end", "a-.example"],
    ["a long label", `${"a".repeat(64)}.example`],
    ["a long name", `${"a.".repeat(130)}example`],
    ["a zone", "fe80::1%eth0"],
    ["an open bracket", "[::1"],
    ["a wildcard", "*.example.com"],
  ])("%s is in no host's name", (_what, text) => {
    expect(canonicalHost(text)).toBeUndefined();
  });

  it("is the same once it is in that form", () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6(), fc.string({ unit: "binary" })), (text) => {
        const host = canonicalHost(text);
        expect(host === undefined ? undefined : canonicalHost(host)).toBe(host);
      }),
    );
  });
});

describe("rules", () => {
  const rules = ["example.com", "*.example.org", "10.1.2.3"];

  it.each(["example.com", "a.example.org", "a.b.example.org", "10.1.2.3"])("let %s through", (host) => {
    expect(isAllowed(host, rules)).toBe(true);
  });

  it.each(["www.example.com", "example.org", "badexample.org", "example.com.evil.net", ".example.org", "10.1.2.30"])(
    "do not let %s through",
    (host) => {
      expect(isAllowed(host, rules)).toBe(false);
    },
  );

  it("none let nothing through", () => {
    expect(isAllowed("example.com", [])).toBe(false);
  });

  it("are names, or names behind a star", () => {
    expect(canonicalRule("*.EXAMPLE.com.")).toBe("*.example.com");
    for (const text of ["*", "*.", "*.*.com", "a*.com", "*.10.0.0.1", "*.0x7f.1", "https://example.com"]) {
      expect([text, canonicalRule(text)]).toEqual([text, undefined]);
    }
  });
});
