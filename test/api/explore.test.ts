import { afterAll, beforeAll, expect, test } from "vitest";
import { ndjson } from "../support/client.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";

/** `POST /v1/explore` from outside: what a page of logs asks for. */

type Who = "admin" | "reader" | "limited";
let services: CalledServices<Who>;
beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["admin", "admin"],
    ["reader", "read"],
  ]);
  await services.limit("limited", "read", ["other"], "admin");
  const rows = Array.from({ length: 60 }, (_, i) => ({
    at: `2026-01-05T10:${String(i).padStart(2, "0")}:00.000000001Z`,
    level: i % 3 === 0 ? "error" : "info",
    code: i % 4,
    props: { user: { id: i % 2 }, extra: i < 10 ? "x" : undefined },
  }));
  const headers = { "X-Table": "logs", "Content-Type": "application/x-ndjson" };
  expect((await services.send("admin", "POST", "/v1/ingest", ndjson(rows), headers)).status).toBe(200);
}, 120_000);
afterAll(() => services.close());

const RANGE = { from: "2026-01-05T10:00:00Z", to: "2026-01-05T11:00:00Z" };
const explore = (who: Who, body: Json, headers: Record<string, string> = {}) =>
  services.json(who, "POST", "/v1/explore", body, headers);

test("counts rows, buckets, values and fields of a table by one request", async () => {
  const found = await explore("reader", {
    table: "logs",
    ...RANGE,
    where: "level != 'debug'",
    histogram: { buckets: 4, by: "level", values: 1 },
    facets: ["level", { field: "props.user.id", values: 1 }],
    fields: ["props", ["props", "extra"]],
  });
  expect(found).toMatchObject({
    httpStatus: 200,
    rows: 60,
    sampled: null,
    histogram: {
      step_ns: 900e9,
      by: { field: "level", type: "string", distinct: 2, series: [{ value: "info", rows: 40 }] },
      buckets: [0, 15, 30, 45].map((minute) => ({
        from: `2026-01-05T10:${String(minute).padStart(2, "0")}:00.000000000Z`,
        rows: 15,
        by: [10],
      })),
    },
    facets: [
      {
        rows: 60,
        nulls: 0,
        distinct: 2,
        values: [
          { value: "info", rows: 40 },
          { value: "error", rows: 20 },
        ],
      },
      { field: "props.user.id", type: "dynamic", distinct: 2, values: [{ value: "0", rows: 30 }] },
    ],
    fields: [
      {
        rows: 60,
        keys: {
          distinct: 2,
          values: [
            { key: "user", rows: 60 },
            { key: "extra", rows: 10 },
          ],
        },
      },
      { field: ["props", "extra"], rows: 10 },
    ],
  });
  const kql = await explore("reader", { table: "logs", ...RANGE, where: 'level == "error"', language: "kql" });
  expect(kql).toMatchObject({ rows: 20, histogram: null, facets: [], fields: [] });
});

test("reads as of a snapshot, before rows and columns that came later", async () => {
  const before = await explore("reader", { table: "logs", ...RANGE });
  const row = JSON.stringify({ at: "2026-01-05T10:30:00Z", level: "late", late_column: "x" });
  const headers = { "X-Table": "logs", "Content-Type": "application/x-ndjson" };
  expect((await services.send("admin", "POST", "/v1/ingest", row, headers)).status).toBe(200);
  expect(await explore("reader", { table: "logs", ...RANGE })).toMatchObject({ rows: 61 });
  const version = before["snapshot"];
  for (const [language, where] of [
    ["sql", "level <> ''"],
    ["kql", 'level != ""'],
  ]) {
    const asked = { table: "logs", ...RANGE, version, language, where };
    expect(await explore("reader", asked)).toMatchObject({ httpStatus: 200, rows: 60, snapshot: version });
  }
  expect(await explore("reader", { table: "logs", ...RANGE, version, fields: ["late_column"] })).toMatchObject({
    httpStatus: 400,
    error: { code: "invalid_parameter" },
  });
  expect(await explore("reader", { table: "logs", ...RANGE, version: 1e9 })).toMatchObject({
    error: { code: "invalid_query" },
  });
});

test("needs the database's right, and is told what is wrong with a request", async () => {
  expect(await explore("limited", { table: "logs", ...RANGE })).toMatchObject({
    httpStatus: 404,
    error: { code: "database_not_found" },
  });
  const asked = { table: "logs", ...RANGE };
  for (const [code, change] of [
    ["table_not_found", { table: "log" }],
    ["invalid_parameter", { to: RANGE.from }],
    ["bad_request_body", { from: "yesterday" }],
    ["bad_request_body", { from: "0001-01-01T00:00:00Z" }],
    ["bad_request_body", { histogram: { buckets: 0 } }],
    ["bad_request_body", { histogram: { buckets: 1_001 } }],
    ["bad_request_body", { facets: Array.from({ length: 21 }, () => "level") }],
    ["bad_request_body", { facets: [["props", "a\0b"]] }],
    ["bad_request_body", { fields: ["\ud800"] }],
    ["bad_request_body", { query: "SELECT 1" }],
    ["bad_request_body", { version: -1 }],
    ["invalid_parameter", { facets: ["levels"] }],
    ["invalid_query", { where: "level IN (SELECT name FROM system.tables)" }],
    ["parse_error", { where: "level = 'a\0'" }],
    ["parse_error", { where: "level = 'a\0'", language: "kql" }],
  ] as const) {
    expect([change, (await explore("reader", { ...asked, ...change }))["error"]]).toMatchObject([change, { code }]);
  }
  const slow = await explore("reader", asked, { "X-Engine-Max-Wall-Clock-Ms": "0" });
  expect(slow).toMatchObject({ httpStatus: 400, error: { code: "invalid_header" } });
});
