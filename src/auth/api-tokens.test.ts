import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../core/random.ts";
import { ADMIN, by, openAccess, type Access } from "./access.test-kit.ts";
import type { Caller } from "./caller.ts";
import { hashToken, isToken, newToken } from "./tokens.ts";

const STATIC: Caller = { subject: "token:1234", kind: "static", role: "write", databases: undefined };

let access: Access;
let ann: Caller;
beforeEach(async () => {
  access = await openAccess({ staticCallers: [STATIC] });
  const { id } = await access.users.create({ name: "ann", password: "correct horse", role: "write" }, by(ADMIN));
  ann = { subject: "ann", kind: "session", role: "write", databases: undefined, userId: id };
});
afterEach(() => access.close());

const make = async (caller: Caller, request: Partial<Parameters<Access["apiTokens"]["create"]>[0]> = {}) =>
  await access.apiTokens.create({ name: "ci", role: "read", ...request }, by(caller));

describe("the form of a token", () => {
  test("has a prefix to search for and a checksum", () => {
    const token = newToken("api", seededRandom(3));
    expect(token).toMatch(/^engine_pat_[0-9A-Za-z]{49}$/);
    expect(isToken("api", token)).toBe(true);
    expect(isToken("access", token)).toBe(false);
    for (let i = 0; i < token.length; i++) {
      const changed = token.slice(0, i) + (token[i] === "7" ? "8" : "7") + token.slice(i + 1);
      expect([changed, isToken("api", changed)]).toEqual([changed, false]);
    }
    expect(isToken("api", `${token}0`) || isToken("api", token.slice(1)) || isToken("api", "")).toBe(false);
  });
});

describe("long-lived tokens", () => {
  test("are their owner, with the role and the databases asked for", async () => {
    const { token, record } = await make(ann, { databases: ["Logs", "logs", "web"] });
    expect(record).toMatchObject({ name: "ci", owner: "ann", role: "read", databases: ["logs", "web"] });
    expect(await access.apiTokens.authenticate(token)).toEqual({
      subject: "ann",
      kind: "api_token",
      role: "read",
      databases: ["logs", "web"],
      userId: ann.userId,
      tokenId: record.id,
    });
    expect(await access.apiTokens.authenticate(newToken("api", seededRandom(9)))).toBeUndefined();
  });

  test("are shown once and kept as a hash", async () => {
    const { token, record } = await make(ann);
    const kept = JSON.stringify(await access.records.rows("SELECT * FROM api_tokens"));
    expect(kept).toContain(hashToken(token));
    expect(kept).not.toContain(token);
    expect(record.preview).toBe(`engine_pat_…${token.slice(-4)}`);
  });

  test("do not pass their maker", async () => {
    const forbidden = { code: "forbidden" };
    await expect(make(ann, { role: "admin" })).rejects.toMatchObject(forbidden);
    const scoped: Caller = { ...ann, databases: ["logs"] };
    await expect(make(scoped, { databases: ["logs", "web"] })).rejects.toMatchObject(forbidden);
    expect((await make(scoped)).record.databases).toEqual(["logs"]);
    await expect(make({ ...ann, kind: "api_token" })).rejects.toMatchObject(forbidden);
    await expect(make({ ...ann, kind: "anonymous" })).rejects.toMatchObject({ code: "conflict" });
    await expect(make({ ...ann, kind: "oidc" })).rejects.toMatchObject({ code: "invalid_parameter" });
  });

  test("sink with their owner's role and end with their owner", async () => {
    const { token } = await make(ann, { role: "write" });
    await access.users.setRole("ann", "read", by(ADMIN));
    expect(await access.apiTokens.authenticate(token)).toMatchObject({ role: "read" });
    await access.users.setRole("ann", "admin", by(ADMIN));
    expect(await access.apiTokens.authenticate(token)).toMatchObject({ role: "write" });
    await access.users.create({ name: "bob", password: "correct horse", role: "admin" }, by(ADMIN));
    await access.users.remove("ann", by(ADMIN));
    expect(await access.apiTokens.authenticate(token)).toBeUndefined();
  });

  test("made with a token of the configuration end when it is taken out", async () => {
    const [kept, lost] = [await make(STATIC, { role: "write" }), await make({ ...STATIC, subject: "token:5678" })];
    expect(await access.apiTokens.authenticate(kept.token)).toMatchObject({ subject: "token:1234", role: "write" });
    expect(await access.apiTokens.authenticate(lost.token)).toBeUndefined();
  });

  test("end at their time and when they are revoked", async () => {
    const { token } = await make(ann, { expiresAtMs: access.clock.nowMs() + 1_000 });
    access.clock.advance(999);
    expect(await access.apiTokens.authenticate(token)).toBeDefined();
    access.clock.advance(1);
    expect(await access.apiTokens.authenticate(token)).toBeUndefined();
    const other = await make(ann);
    await access.apiTokens.revoke(other.record.id, by(ann));
    expect(await access.apiTokens.authenticate(other.token)).toBeUndefined();
    expect(access.revocations()).toBe(1);
  });

  test("are listed and revoked by their owner, and by an administrator", async () => {
    const bob: Caller = { ...ann, subject: "bob" };
    const { record } = await make(ann);
    expect(await access.apiTokens.list(bob)).toEqual([]);
    expect(await access.apiTokens.list(ann)).toEqual([record]);
    expect(await access.apiTokens.list(ADMIN)).toEqual([record]);
    const scopedAdmin: Caller = { ...ADMIN, databases: ["logs"] };
    expect(await access.apiTokens.list(scopedAdmin)).toEqual([]);
    for (const other of [bob, scopedAdmin]) {
      await expect(access.apiTokens.revoke(record.id, by(other))).rejects.toMatchObject({ code: "not_found" });
    }
    await access.apiTokens.revoke(record.id, by(ADMIN));
    expect(await access.apiTokens.list(ann)).toEqual([]);
    const actions = (await access.audit.list({ limit: 2 })).map(({ action, target }) => [action, target]);
    expect(actions).toEqual([
      ["token.revoke", record.id],
      ["token.create", record.id],
    ]);
  });

  test("say when they were last used, about once a minute", async () => {
    const { token, record } = await make(ann);
    const lastUse = async () => (await access.apiTokens.list(ann))[0]?.lastUsedAtMs;
    expect(record.lastUsedAtMs).toBeUndefined();
    await access.apiTokens.authenticate(token);
    const firstMs = access.clock.nowMs();
    await expect.poll(lastUse).toBe(firstMs);
    access.clock.advance(59_000);
    await access.apiTokens.authenticate(token);
    access.clock.advance(2_000);
    await access.apiTokens.authenticate(token);
    await expect.poll(lastUse).toBe(firstMs + 61_000);
  });
});
