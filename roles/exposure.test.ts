import { FEATURE_ROWS } from "./features.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { by, ADMIN, openAccess, type Access } from "../src/auth/access.test-kit.ts";
import { Passwords } from "../src/auth/passwords.ts";
import { loadConfig } from "../src/config/load.ts";
import { answersOf, warningOf, weakUserOf, type Exposure } from "./exposure.ts";
import { planOf } from "./plan.ts";

const OPEN: Exposure = { tokensAreAsked: false, weakUser: undefined, answers: "data" };

describe("what is warned of", () => {
  const isOpenAt = (host: string, exposure = OPEN) => warningOf(exposure, { host, port: 8080 })?.isOpen;

  test("loopback addresses are this machine's alone, all others are not", () => {
    for (const host of ["127.0.0.1", "127.8.8.8", "::1", "localhost", "a.localhost"])
      expect(isOpenAt(host)).toBe(false);
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "fe80::1", "engine.example"]) expect(isOpenAt(host)).toBe(true);
  });

  test("a server with nothing to read or change, or that lets nobody in unasked, is not", () => {
    expect(isOpenAt("0.0.0.0", { ...OPEN, answers: "nothing" })).toBeUndefined();
    expect(isOpenAt("0.0.0.0", { ...OPEN, tokensAreAsked: true })).toBeUndefined();
    expect(isOpenAt("127.0.0.1", { ...OPEN, tokensAreAsked: true })).toBeUndefined();
    expect(isOpenAt("0.0.0.0", { ...OPEN, tokensAreAsked: true, weakUser: "admin" })).toBe(true);
  });

  test("an edge does not know what its peers ask for, and says so", () => {
    const lines = warningOf({ ...OPEN, answers: "what peers answer" }, { host: "::", port: 1 })?.lines;
    expect(lines).toEqual([
      "WARNING: authentication is off, and other machines can reach [::]:1.",
      "Whoever reaches it may do everything, unless its peers ask for tokens.",
      "Set ENGINE_AUTH_TOKENS or ENGINE_AUTH_BACKEND, or listen on 127.0.0.1.",
    ]);
  });

  test.each([
    ["all_in_one", "data"],
    ["query", "data"],
    ["edge", "what peers answer"],
    ["edge,ingest", "data"],
    ["committer", "nothing"],
    ["compaction,worker", "nothing"],
  ])("%s answers %s", (roles, answers) => {
    const peers = "http://peer:8080";
    const env = { ENGINE_ROLES: roles, ENGINE_QUERY_PEERS: peers, ENGINE_INGEST_PEERS: peers };
    const catalog = { ENGINE_CATALOG_URL: "postgres://db/engine" };
    expect(answersOf(planOf(loadConfig({ env: { ...env, ...catalog }, rows: FEATURE_ROWS })))).toBe(answers);
  });
});

describe("a password that everybody knows", () => {
  let access: Access;
  const passwords = new Passwords();
  beforeAll(async () => {
    access = await openAccess();
    await access.users.seed({ name: "Admin", password: "admin", role: "admin" }, by(ADMIN));
  });
  afterAll(() => access.close());

  const weakUser = (name: string, password: string) =>
    weakUserOf([{ name, password, role: "admin" }], { users: access.users, passwords });

  test("counts while it signs in", async () => {
    expect(await weakUser("admin", "admin")).toBe("Admin");
    // Known, but not that user's.
    expect(await weakUser("admin", "changeme")).toBeUndefined();
    expect(await weakUser("nobody", "admin")).toBeUndefined();
    expect(await weakUserOf([], { users: access.users, passwords })).toBeUndefined();
  });

  test("counts no more once it was changed, and one of the user's own never does", async () => {
    await access.users.setPassword("admin", "battery staple", by(ADMIN));
    expect(await weakUser("admin", "admin")).toBeUndefined();
    expect(await weakUser("admin", "battery staple")).toBeUndefined();
    await access.users.setPassword("admin", "password", by(ADMIN));
    expect(await weakUser("admin", "password")).toBe("Admin");
  });
});
