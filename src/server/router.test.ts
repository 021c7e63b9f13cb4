import { describe, expect, test } from "vitest";
import { plainRoute } from "./route.ts";
import { Router } from "./router.ts";

function route(method: "GET" | "POST", path: string) {
  return plainRoute({
    method,
    path,
    role: "read",
    tag: "t",
    summary: path,
    responses: [],
    errors: [],
    handle: async () => ({ status: 200, headers: {} }),
  });
}

const router = new Router([
  route("GET", "/health"),
  route("POST", "/v1/query"),
  route("GET", "/v1/things/{id}"),
  route("POST", "/v1/things/{id}"),
  route("GET", "/v1/things/special"),
  route("GET", "/v1/things/{id}/parts/{part}"),
]);

const files = new Router([
  route("GET", "/v1/boxes/{id}/files"),
  route("GET", "/v1/boxes/{id}/files/{*path}"),
  route("GET", "/v1/boxes/{id}/files/special/{part}/end"),
  route("POST", "/v1/boxes/{id}/files/{*path}"),
  route("GET", "/v1/boxes/{id}/{other}"),
]);

describe("A parameter for the rest of a path", () => {
  test.each([
    ["/v1/boxes/7/files/a", "a"],
    ["/v1/boxes/7/files/a/b.txt", "a/b.txt"],
    ["/v1/boxes/7/files/a%2Fb%00%ff/%zz", "a%2Fb%00%ff/%zz"],
    ["/v1/boxes/7/files//a//", "/a//"],
    ["/v1/boxes/7/files/../../x", "../../x"],
    ["/v1/boxes/7/files/special", "special"],
    ["/v1/boxes/7/files/special/x", "special/x"],
    ["/v1/boxes/7/files/special/x/end/more", "special/x/end/more"],
  ])("%s gives it as it was sent", (path, rest) => {
    const { route: found, params } = files.match("GET", path);
    expect({ path: found.path, params }).toEqual({
      path: "/v1/boxes/{id}/files/{*path}",
      params: { id: "7", path: rest },
    });
  });

  test("loses against literals and parameters that lead to a row", () => {
    expect(files.match("GET", "/v1/boxes/7/files/special/x/end").params).toEqual({ id: "7", part: "x" });
    expect(files.match("GET", "/v1/boxes/7/files").params).toEqual({ id: "7" });
    expect(files.match("GET", "/v1/boxes/7/logs").params).toEqual({ id: "7", other: "logs" });
  });

  test("takes at least one character, and says which methods it takes", () => {
    expect(() => files.match("GET", "/v1/boxes/7/files/")).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(files.methods("/v1/boxes/7/files/a/b")).toEqual(["GET", "POST", "HEAD", "OPTIONS"]);
  });
});

describe("Router", () => {
  test("finds literals, parameters, and prefers literals", () => {
    expect(router.match("GET", "/health").route.path).toBe("/health");
    expect(router.match("GET", "/v1/things/special").route.path).toBe("/v1/things/special");
    expect(router.match("GET", "/v1/things/7/parts/a%2Fb").params).toEqual({ id: "7", part: "a/b" });
  });

  test("answers HEAD by the GET row", () => {
    expect(router.match("HEAD", "/health").route.method).toBe("GET");
  });

  test.each(["/", "/nope", "/v1", "/v1/things", "/v1/things/", "/health/", "//health", "/v1/things/7/parts"])(
    "%s is not found",
    (path) => {
      expect(() => router.match("GET", path)).toThrow(expect.objectContaining({ code: "not_found" }));
    },
  );

  test("another method names those that are taken", () => {
    expect(() => router.match("DELETE", "/v1/things/7")).toThrow(
      expect.objectContaining({
        code: "method_not_allowed",
        details: { headers: { Allow: "GET, POST, HEAD, OPTIONS" } },
      }),
    );
  });

  test("broken percent-encoding is the client's mistake", () => {
    expect(() => router.match("GET", "/v1/things/%zz")).toThrow(expect.objectContaining({ code: "invalid_parameter" }));
  });

  test("two rows for one method and path are a mistake of ours", () => {
    expect(() => new Router([route("GET", "/a"), route("GET", "/a")])).toThrow("two rows");
  });
});
