import { expect, test } from "vitest";
import { loadConfig } from "../src/config/load.ts";
import { StartupError } from "../src/core/errors.ts";
import { needsStorage, planOf } from "./plan.ts";

const POSTGRES = { ENGINE_CATALOG_URL: "postgres://db/engine" };
const BOTH = { ENGINE_QUERY_PEERS: "http://q:1", ENGINE_INGEST_PEERS: "http://i:1" };

function plan(roles: string | undefined, env: Record<string, string> = {}) {
  const given = roles === undefined ? env : { ENGINE_ROLES: roles, ...env };
  return planOf(loadConfig({ env: given, userHome: "/home/u", cores: 2 }));
}

test.each([
  [undefined, {}, "here", "here", true],
  ["all_in_one", {}, "here", "here", true],
  ["edge,all_in_one", BOTH, "here", "here", true],
  ["nonsense", {}, "here", "here", true],
  ["query,nonsense", BOTH, "here", "here", true],
  ["edge", BOTH, "peers", "peers", false],
  ["EDGE , edge", BOTH, "peers", "peers", false],
])("%s on a catalog of this machine", (roles, env, query, ingest, storage) => {
  const made = plan(roles, env);
  expect([made.query, made.ingest, needsStorage(made)]).toEqual([query, ingest, storage]);
});

test.each([
  ["edge", {}, "here", "here", true],
  ["edge", { ENGINE_QUERY_PEERS: "http://q:1" }, "peers", "here", true],
  ["edge,query", BOTH, "here", "peers", true],
  ["edge,ingest", BOTH, "peers", "here", true],
  ["query", {}, "here", "nobody", true],
  ["ingest", BOTH, "nobody", "here", true],
  ["query,ingest", {}, "here", "here", true],
  ["committer", {}, "nobody", "nobody", true],
  ["worker", {}, "nobody", "nobody", true],
  ["compaction", {}, "nobody", "nobody", true],
  ["edge,compaction", BOTH, "peers", "peers", true],
])("%s in a cluster", (roles, env, query, ingest, storage) => {
  const made = plan(roles, { ...POSTGRES, ...env });
  expect([made.query, made.ingest, needsStorage(made)]).toEqual([query, ingest, storage]);
  for (const role of ["committer", "worker", "compaction"] as const) {
    expect(made.background[role]).toBe(roles.split(",").includes(role));
  }
});

test.each(["query", "ingest", "committer", "worker", "compaction", "edge", "edge,query", "edge,worker"])(
  "%s is refused on a catalog of this machine",
  (roles) => {
    const env = roles === "edge" ? {} : BOTH;
    expect(() => plan(roles, env)).toThrow(StartupError);
    expect(() => plan(roles, env)).toThrow(/share a PostgreSQL catalog.*set ENGINE_CATALOG_URL/);
  },
);

test("everything is everything in the background too", () => {
  expect(plan("all_in_one").background).toEqual({ committer: true, worker: true, compaction: true });
});

test("peers that nobody forwards to are said to be so", () => {
  expect(plan(undefined).notes).toEqual([]);
  expect(plan("edge", BOTH).notes).toEqual([]);
  expect(plan("edge,query", { ...POSTGRES, ...BOTH }).notes).toEqual([expect.stringContaining("ENGINE_QUERY_PEERS")]);
  expect(plan("all_in_one", BOTH).notes).toHaveLength(2);
  expect(plan("committer,worker", POSTGRES).notes).toEqual([]);
});
