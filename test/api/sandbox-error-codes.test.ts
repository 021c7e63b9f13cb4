import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ERROR_CODES, type ErrorCode } from "../../src/core/errors.ts";
import { openApiOf } from "../../src/server/openapi.ts";
import { CONNECTION_ROUTES } from "../../src/credentials/routes/connections.ts";
import { routesOf } from "../../src/server/route.ts";
import { SANDBOX_ROUTES } from "../../src/sandbox/control/routes/sandbox-routes.ts";

/** The specification's list. */
const SPECIFIED: Readonly<Record<number, readonly ErrorCode[]>> = {
  400: ["config_error", "config_validation_error", "agent_communication_error"],
  401: ["unauthorized"],
  403: ["forbidden"],
  404: ["sandbox_not_found", "session_not_found", "credential_not_found", "file_not_found", "agent_provider_not_found"],
  409: ["sandbox_already_exists", "sandbox_invalid_state", "session_invalid_state"],
  429: ["rate_limited"],
  500: ["internal"],
  504: ["sandbox_timeout", "timeout"],
};
const specified = Object.values(SPECIFIED).flat();

const docs = readFileSync(new URL("../../docs/sandboxes.md", import.meta.url), "utf8");

function documentedAfter(heading: string): Map<string, number> {
  const [, table = ""] = new RegExp(`${heading}[^|]*((?:\\|.*\\n)+)`).exec(docs) ?? [];
  return new Map(
    [...table.matchAll(/^\|\s*(\d+)\s*\|\s*`(\w+)`/gm)].map(([, status, code = ""]) => [code, Number(status)]),
  );
}

test("the codes of the specification have its statuses", () => {
  for (const [status, codes] of Object.entries(SPECIFIED)) {
    for (const code of codes) expect([code, ERROR_CODES[code].status]).toEqual([code, Number(status)]);
  }
});

test("every code of a route below /api/v1 is documented, as the specification's or as ours", () => {
  const theirs = documentedAfter("Codes of the specification:");
  const ours = documentedAfter("Codes of ours");
  expect([...theirs.keys()].toSorted()).toEqual([...specified].toSorted());
  expect([...ours.keys()].filter((code) => theirs.has(code))).toEqual([]);
  for (const [code, status] of [...theirs, ...ours])
    expect([code, ERROR_CODES[code as ErrorCode].status]).toEqual([code, status]);

  const forward = async () => ({ status: 200, headers: {} });
  const all = [...routesOf(SANDBOX_ROUTES, { forward }), ...routesOf(CONNECTION_ROUTES, { forward })];
  const routes = all.filter(({ path }) => path.startsWith("/api/v1/"));
  const { paths } = openApiOf(routes, { title: "t", version: "1" });
  const named = [...JSON.stringify(paths).matchAll(/`([a-z_]+)`: /g)].map(([, code = ""]) => code);
  const told = new Set(named.filter((code) => Object.hasOwn(ERROR_CODES, code)));
  expect(told.size).toBeGreaterThan(specified.length);
  expect([...told].filter((code) => !theirs.has(code) && !ours.has(code))).toEqual([]);
  // One that is too much has the specification's code.
  expect(told.has("too_many_requests")).toBe(false);
});
