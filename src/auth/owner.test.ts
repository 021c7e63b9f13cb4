import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ownerSql } from "./owner-sql.ts";
import { ANONYMOUS, callerOfWorker, type Caller } from "./caller.ts";
import { mayReach, mayReachWithin, mayUse, ownerOf } from "./owner.ts";

const caller = (kind: Caller["kind"], subject: string, more: Partial<Caller> = {}): Caller => {
  return { kind, subject, role: "write", databases: undefined, ...more };
};

const OWNERS: readonly (readonly [Caller, string])[] = [
  [ANONYMOUS, "local"],
  [caller("session", "ann"), "ann"],
  [caller("idp", "ann@example.com"), "ann@example.com"],
  [caller("api_token", "ann"), "ann"],
  [caller("api_token", "token:ci"), "token:ci"],
  [caller("static", "token:ci"), "token:ci"],
  [caller("oidc", "https://issuer#ann"), "https://issuer#ann"],
  [caller("internal", "engine", { role: "admin" }), "engine"],
  // Users who are called as something else is.
  [caller("session", "local"), "user:local"],
  [caller("idp", "engine"), "user:engine"],
  [caller("api_token", "local"), "user:local"],
  [caller("session", "anonymous"), "anonymous"],
];

describe("the owner of what a caller makes", () => {
  test.each(OWNERS)("%j: %s", (by, owner) => {
    expect(ownerOf(by)).toBe(owner);
  });

  test("is the same by the rule in SQL, that migrations have", () => {
    const db = new DatabaseSync(":memory:");
    const find = db.prepare(`SELECT ${ownerSql("subject", "kind")} AS owner FROM (SELECT ? AS subject, ? AS kind)`);
    for (const [{ subject, kind }, owner] of OWNERS) expect(find.get(subject, kind)).toEqual({ owner });
    expect(find.get("worker:x", "worker")).toEqual({ owner: "admins:" });
    db.close();
  });

  test("of a worker is the worker's owner, whatever the worker is called", () => {
    const worker = callerOfWorker({ name: "ann", owner: "bob" });
    expect(ownerOf(worker)).toBe("bob");
    expect(mayReach(worker, "ann")).toBe(false);
    expect(ownerOf(caller("worker", "worker:ann"))).toBe("admins:");
  });
});

test("a record is reached by its owner and by admins", () => {
  const [ann, bob] = [caller("session", "ann"), caller("session", "bob")];
  const root = caller("session", "root", { role: "admin" });
  const limited = caller("api_token", "root", { role: "admin", databases: ["a"] });
  const reach = [ann, caller("api_token", "ann"), bob, root, limited].map((by) => mayReach(by, "ann"));
  expect(reach).toEqual([true, true, false, true, false]);
  // Of records that name databases the limit says which an admin reaches.
  expect([bob, root, limited].map((by) => mayReachWithin(by, "ann"))).toEqual([false, true, true]);
  expect(mayReach(limited, "root")).toBe(true);
  // Nobody's are the admins'.
  expect([ann, bob, root].map((by) => mayReach(by, "admins:"))).toEqual([false, false, true]);
});

test("a record that is shared is used by others, and reached by none of them", () => {
  const bob = caller("session", "bob");
  expect(mayUse(bob, { owner: "ann", shared: true })).toBe(true);
  expect(mayUse(bob, { owner: "ann", shared: false })).toBe(false);
  expect(mayUse(bob, { owner: "bob", shared: false })).toBe(true);
});
