import { expect, test } from "vitest";
import { checkAccept, preferredType } from "../../src/server/negotiate.ts";
import { nameOf, ROUTES } from "./routes.test-kit.ts";

/** What is no JSON and cannot be: pages, files, and streams of events. */
const OTHERS = [
  "GET /metrics",
  "GET /docs",
  "GET /ui/",
  "GET /ui/{*path}",
  "GET /v1/exports/{id}/download",
  "GET /v1/oauth/{provider}/callback",
  "POST /v1/oauth/{provider}/callback",
  "POST /api/v1/oauth/{provider}/callback",
  "GET /v1/tail",
  "GET /mcp/v1",
  "POST /v1/agent/ask",
  "GET /v1/jobs/{id}/events",
  "POST /flight/{*method}",
  "GET /api/v1/sandboxes/{id}/logs",
  "GET /api/v1/sandboxes/{id}/stream",
  "GET /api/v1/sandboxes/{id}/files/{*path}",
  "GET /api/v1/sandboxes/{id}/exec/{exec_id}/stream",
  "POST /api/v1/sandboxes/{id}/exec/stream",
  "GET /api/v1/sessions/{sid}/stream",
  "GET /api/v1/workspaces/{id}/export",
];

const takes = (accept: string) => (route: (typeof ROUTES)[number]) => {
  try {
    checkAccept(route, accept);
    return true;
  } catch {
    return false;
  }
};

test("every route answers who takes anything, or says nothing", () => {
  expect(ROUTES.length).toBeGreaterThan(80);
  for (const accept of ["*/*", "", "text/html;q=0.1, */*;q=0.01"]) {
    expect(ROUTES.filter((route) => !takes(accept)(route)).map(nameOf)).toEqual([]);
  }
});

test("every route answers in JSON who takes only that, but those that have none", () => {
  const refusing = ROUTES.filter((route) => !takes("application/json")(route)).map(nameOf);
  expect(refusing.toSorted()).toEqual(OTHERS.toSorted());
});

test("where JSON is one of several, it is what who asks for it gets, and a route's first what all others do", () => {
  for (const { responses } of ROUTES) {
    const types = responses.flatMap(({ type }) => (type === undefined ? [] : [type]));
    const wanted = types.includes("application/json") ? "application/json" : types[0];
    expect(preferredType(types, "application/json")).toBe(wanted ?? "");
    expect(preferredType(types, "*/*")).toBe(types[0] ?? "");
  }
});
