import { afterAll, beforeAll, expect, test } from "vitest";
import { CalledServices, type Json } from "./services.test-kit.ts";

/** What people keep: saved queries, a history of queries, settings. */

type Who = "admin" | "reader" | "other" | "limited";
const SAVED = "/v1/saved-queries";
const HISTORY = "/v1/query-history";
const SETTINGS = "/v1/auth/settings";

let services: CalledServices<Who>;
beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["admin", "admin"],
    ["reader", "read"],
    ["other", "read"],
  ]);
  await services.limit("limited", "read", ["a"], "admin");
}, 120_000);
afterAll(() => services.close());

const messageOf = (answer: Json) => (answer["error"] as Json)["message"];

test("a query is saved, read, changed, shared and deleted", async () => {
  const made = await services.json("reader", "POST", SAVED, { name: "rows", text: "SELECT count(*) FROM t" });
  expect(made).toMatchObject({
    httpStatus: 201,
    name: "rows",
    description: "",
    language: "sql",
    text: "SELECT count(*) FROM t",
    database: "default",
    shared: false,
    is_own: true,
  });
  const path = `${SAVED}/${String(made["id"])}`;
  expect((await services.json("other", "GET", path)).httpStatus).toBe(404);
  expect(await services.json("reader", "PATCH", path, { shared: true })).toMatchObject({ shared: true, name: "rows" });
  expect(await services.json("other", "GET", path)).toMatchObject({ httpStatus: 200, is_own: false });
  expect((await services.json("other", "PATCH", path, { name: "mine" })).httpStatus).toBe(403);
  expect((await services.json("limited", "GET", path)).httpStatus).toBe(404);
  expect(await services.json("other", "GET", `${SAVED}?search=COUNT`)).toMatchObject({
    saved_queries: [{ name: "rows" }],
  });
  expect((await services.json("reader", "DELETE", path)).httpStatus).toBe(200);
  expect((await services.json("reader", "GET", path)).httpStatus).toBe(404);
});

test("lists come in pages", async () => {
  for (const name of ["a", "b", "c"]) await services.json("other", "POST", SAVED, { name, text: "x" });
  const first = await services.send("other", "GET", `${SAVED}?limit=2`);
  const link = /<([^>]+)>; rel="next"/.exec(first.headers.get("Link") ?? "")?.[1] ?? "";
  const names = (page: unknown) =>
    (page as { saved_queries: { name: string }[] }).saved_queries.map(({ name }) => name);
  expect(names(await first.json())).toEqual(["c", "b"]);
  expect(names(await services.json("other", "GET", link))).toEqual(["a"]);
});

test("a history is of one's own queries", async () => {
  const ran = { text: "SELECT 1", outcome: "ok", rows: 1, elapsed_ms: 12 };
  const kept = await services.json("reader", "POST", HISTORY, ran);
  expect(kept).toMatchObject({ ...ran, httpStatus: 201, database: "default", language: "sql" });
  expect(await services.json("other", "GET", HISTORY)).toMatchObject({ queries: [] });
  expect(await services.json("reader", "GET", HISTORY)).toMatchObject({ queries: [{ id: kept["id"] }] });
  expect((await services.json("reader", "DELETE", `${HISTORY}/${String(kept["id"])}`)).httpStatus).toBe(200);
  expect(await services.json("reader", "GET", HISTORY)).toMatchObject({ queries: [] });
  expect((await services.json("limited", "POST", HISTORY, ran)).httpStatus).toBe(403);
  expect((await services.json("reader", "DELETE", HISTORY)).httpStatus).toBe(200);
});

test("settings are kept for each", async () => {
  expect(await services.json("reader", "GET", SETTINGS)).toMatchObject({ settings: {} });
  const settings = { theme: "dark", __proto__x: 1, constructor: { a: [1, "ä"] } };
  await services.json("reader", "PUT", SETTINGS, { settings });
  expect((await services.json("reader", "GET", SETTINGS))["settings"]).toEqual(settings);
  expect(await services.json("other", "GET", SETTINGS)).toMatchObject({ settings: {} });
});

test("what cannot be kept is refused, and says why", async () => {
  const cases: [string, string, unknown, number, RegExp][] = [
    ["POST", SAVED, { text: "x" }, 400, /^name: /],
    ["POST", SAVED, { name: "x", text: "" }, 400, /^text: /],
    ["POST", SAVED, { name: "x\n", text: "x" }, 400, /^name: /],
    ["POST", SAVED, { name: "x", text: "\0" }, 400, /^text: accepted is Unicode text without NUL/],
    ["POST", SAVED, { name: "x", text: "\ud800" }, 400, /^text: accepted is Unicode text without NUL/],
    ["POST", SAVED, { name: "x", text: "x".repeat(65_537) }, 400, /^text: /],
    ["POST", SAVED, { name: "x", text: "x", database: "../x" }, 400, /^database: accepted is the name of a database/],
    ["POST", SAVED, { name: "x", text: "x", owner: "admin" }, 400, /owner/],
    ["GET", `${SAVED}/x`, undefined, 400, /id/],
    ["GET", `${SAVED}?limit=0`, undefined, 400, /limit/],
    ["POST", HISTORY, { text: "x", outcome: "<b>" }, 400, /^outcome: accepted are/],
    ["POST", HISTORY, { text: "x", rows: -1 }, 400, /^rows: /],
    ["PUT", SETTINGS, { settings: { a: "\0" } }, 400, /^settings.a: texts are Unicode without NUL/],
    [
      "PUT",
      SETTINGS,
      { settings: { a: "x".repeat(65_536) } },
      413,
      /^the settings have \d+ bytes; at most 65536 are kept$/,
    ],
    ["PUT", SETTINGS, { settings: [] }, 400, /^settings: /],
  ];
  for (const [method, path, body, httpStatus, message] of cases) {
    const answer = await services.json("reader", method, path, body);
    expect([path, body, answer.httpStatus]).toEqual([path, body, httpStatus]);
    expect(messageOf(answer)).toMatch(message);
  }
});
