import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, by, openAccess, type Access } from "./access.test-kit.ts";

let access: Access;
beforeEach(async () => {
  access = await openAccess();
});
afterEach(() => access.close());

const ann = { name: "Ann", password: "correct horse", role: "read" } as const;
const as = by(ADMIN);

describe("users", () => {
  test("are found by name whatever its case, listed by name, and keep their spelling", async () => {
    const { users } = access;
    await users.create({ ...ann, name: "zoe@x.example" }, as);
    expect(await users.create(ann, as)).toMatchObject({ name: "Ann", role: "read", source: "local" });
    expect((await users.find("aNN"))?.user.name).toBe("Ann");
    expect((await users.list()).map(({ name }) => name)).toEqual(["Ann", "zoe@x.example"]);
    await expect(users.create({ ...ann, name: "ANN" }, as)).rejects.toMatchObject({ code: "conflict" });
  });

  test.each([
    ["", "long enough"],
    ["a b", "long enough"],
    ["x".repeat(256), "long enough"],
    ["a\0b", "long enough"],
    ["ann", "short"],
    ["ann", "x".repeat(1_025)],
  ])("are refused as %j with %j", async (name, password) => {
    const refusal = { code: "invalid_parameter" };
    await expect(access.users.create({ ...ann, name, password }, as)).rejects.toMatchObject(refusal);
    expect(await access.users.list()).toEqual([]);
  });

  test("keep no password: what is stored is argon2id", async () => {
    await access.users.create(ann, as);
    const rows = await access.records.rows("SELECT * FROM users");
    expect(JSON.stringify(rows)).not.toContain(ann.password);
    expect(rows[0]?.["password_hash"]).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  });

  test("lose their sessions with their password, and not with their role", async () => {
    const { users, signIn, sessions } = access;
    await users.create(ann, as);
    const { tokens } = await signIn.signIn("ann", ann.password, as);
    await users.setRole("ann", "write", as);
    expect(await sessions.authenticate(tokens.accessToken)).toMatchObject({ subject: "Ann", role: "write" });
    await users.setPassword("ann", "another horse", as);
    expect(await sessions.authenticate(tokens.accessToken)).toBeUndefined();
    await expect(signIn.signIn("ann", ann.password, as)).rejects.toMatchObject({ code: "unauthorized" });
    await signIn.signIn("ann", "another horse", as);
    expect(access.revocations()).toBe(2);
  });

  test("that are not there cannot be changed", async () => {
    const refusal = { code: "not_found" };
    await expect(access.users.setRole("ann", "write", as)).rejects.toMatchObject(refusal);
    await expect(access.users.setRole("ann", "admin", as)).rejects.toMatchObject(refusal);
    await expect(access.users.setPassword("ann", "long enough", as)).rejects.toMatchObject(refusal);
    await expect(access.users.remove("ann", as)).rejects.toMatchObject(refusal);
  });

  test("always have an admin among them, once they had one, also when two are demoted at once", async () => {
    const { users } = access;
    await users.create({ ...ann, role: "admin" }, as);
    const refusal = { code: "conflict", message: expect.stringContaining("last admin") as string };
    await expect(users.remove("ann", as)).rejects.toMatchObject(refusal);
    await expect(users.setRole("ann", "read", as)).rejects.toMatchObject(refusal);
    expect(await users.setRole("ann", "admin", as)).toMatchObject({ role: "admin" });
    await users.create({ ...ann, name: "bob", role: "admin" }, as);
    const demoted = await Promise.allSettled([users.setRole("ann", "write", as), users.remove("bob", as)]);
    expect(demoted.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await users.list()).filter(({ role }) => role === "admin")).toHaveLength(1);
  });

  test("are seeded once, when there are none", async () => {
    const { users } = access;
    const seed = { name: "admin", password: "admin", role: "admin" } as const;
    const made = await Promise.all([users.seed(seed, as), users.seed({ ...seed, name: "other" }, as)]);
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await users.seed({ ...seed, name: "third" }, as)).toBe(false);
    expect(await users.list()).toHaveLength(1);
  });

  test("leave a trace in the audit log of every change, and of no change that did not happen", async () => {
    const { users, audit } = access;
    await users.create({ ...ann, role: "admin" }, as);
    await users.remove("ann", as).catch(() => undefined);
    await users.create({ ...ann, name: "bob" }, as);
    await users.setRole("bob", "write", as);
    await users.setPassword("bob", "another horse", as);
    await users.remove("bob", as);
    const entries = await audit.list({ limit: 10 });
    expect(entries.map(({ action, target }) => `${action} ${target}`)).toEqual([
      "user.delete bob",
      "user.password bob",
      "user.role bob",
      "user.create bob",
      "user.create Ann",
    ]);
    expect(entries[2]).toMatchObject({
      actor: "root",
      actorKind: "static",
      address: "10.0.0.1",
      requestId: "r-1",
      outcome: "ok",
      details: { role: "write" },
      atMs: access.clock.nowMs(),
    });
    expect(JSON.stringify(entries)).not.toMatch(/horse/);
    expect(await audit.list({ limit: 10, action: "user.create", target: "bob" })).toHaveLength(1);
    const [last] = await audit.list({ limit: 1, before: entries[3]?.id });
    expect(last).toEqual(entries[4]);
  });
});
