import { describe, expect, test } from "vitest";
import { bodyTypeOf, checkAccept } from "./negotiate.ts";
import { requestIdOf } from "./request-id.ts";
import { plainRoute } from "./route.ts";

const route = plainRoute({
  method: "POST",
  path: "/x",
  role: "read",
  tag: "t",
  summary: "x",
  body: { types: ["application/sql", "text/plain"], description: "", limitBytes: 1 },
  responses: [{ status: 200, description: "", type: "application/x-ndjson" }],
  errors: [],
  handle: async () => ({ status: 200, headers: {} }),
});

describe("content type", () => {
  test.each([
    [undefined, "application/sql"],
    ["", "application/sql"],
    ["application/x-www-form-urlencoded", "application/sql"],
    ["Text/Plain; charset=utf-8", "text/plain"],
  ])("%s is taken as %s", (sent, taken) => {
    expect(bodyTypeOf(route, sent)).toBe(taken);
  });

  test("another type is 415 and names what is taken", () => {
    expect(() => bodyTypeOf(route, "application/xml")).toThrow(
      expect.objectContaining({ code: "unsupported_media_type", message: expect.stringContaining("application/sql") }),
    );
  });
});

describe("Accept", () => {
  test.each([undefined, "", "*/*", "application/*", "text/html, application/x-ndjson;q=0.1", "application/x-ndjson"])(
    "%s is acceptable",
    (accept) => {
      expect(() => checkAccept(route, accept)).not.toThrow();
    },
  );

  test.each(["text/html", "image/*", "application/x-ndjson;q=0", "application/x-ndjson;q=0, */*"])(
    "%s is not",
    (accept) => {
      expect(() => checkAccept(route, accept)).toThrow(expect.objectContaining({ code: "not_acceptable" }));
    },
  );
});

describe("request id", () => {
  test("a sane one is kept, any other replaced", () => {
    const newId = () => "new";
    expect(requestIdOf("abc-123", newId)).toBe("abc-123");
    expect(requestIdOf("a".repeat(128), newId)).toBe("a".repeat(128));
    for (const bad of [undefined, "", "a b", "a".repeat(129), "ä", "a\u0007"])
      expect(requestIdOf(bad, newId)).toBe("new");
  });
});
