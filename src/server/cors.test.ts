import { describe, expect, test } from "vitest";
import { allowedOrigins, corsHeaders, preflightHeaders } from "./cors.ts";

describe("the origins whose pages may call", () => {
  test("unset, are all where tokens are asked for, and none where they are not", () => {
    expect(allowedOrigins(undefined, true)).toBe("all");
    expect(allowedOrigins(undefined, false)).toEqual(new Set());
  });

  test.each([true, false])(
    "are those that are listed, and all with *, whatever is asked for (%s)",
    (tokensAreAsked) => {
      expect(allowedOrigins(["http://a", "http://b"], tokensAreAsked)).toEqual(new Set(["http://a", "http://b"]));
      expect(allowedOrigins(["http://a", "*"], tokensAreAsked)).toBe("all");
    },
  );
});

describe("what browsers are told", () => {
  test("all: a grant for everybody, never with credentials", () => {
    const headers = { ...corsHeaders("all", "http://a"), ...preflightHeaders("all", "http://a", ["GET", "PATCH"]) };
    expect(headers).toMatchObject({ "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, PATCH" });
    expect(headers["Access-Control-Allow-Headers"]).toMatch(/^Authorization, Content-Type, /);
    expect(Object.keys(headers)).not.toContain("Access-Control-Allow-Credentials");
    expect(corsHeaders("all", undefined)).toEqual({});
  });

  test("all: what a page needs to save only what it has seen, and to read the next page of a list", () => {
    const allowed = preflightHeaders("all", "http://a", ["PATCH"])["Access-Control-Allow-Headers"]?.split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["If-Match", "If-None-Match"]));
    const exposed = corsHeaders("all", "http://a")["Access-Control-Expose-Headers"]?.split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["ETag", "Link"]));
  });

  test("a list: a grant for exactly those, varying by origin", () => {
    const allowed = new Set(["http://a"]);
    expect(corsHeaders(allowed, "http://a")).toMatchObject({
      "Access-Control-Allow-Origin": "http://a",
      Vary: "Origin",
    });
    for (const origin of ["http://b", "http://a.b", "HTTP://A", "null", undefined]) {
      expect(corsHeaders(allowed, origin)).toEqual({ Vary: "Origin" });
      expect(preflightHeaders(allowed, origin, ["GET"])).toEqual({});
    }
    expect(preflightHeaders(allowed, "http://a", ["DELETE"])["Access-Control-Allow-Methods"]).toBe("DELETE");
  });

  test("nobody: nothing", () => {
    expect(corsHeaders(new Set(), "http://a")).toEqual({});
    expect(preflightHeaders(new Set(), "http://a", ["GET"])).toEqual({});
  });
});
