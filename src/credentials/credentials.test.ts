import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, by, openAccess, type Access } from "../auth/access.test-kit.ts";
import type { Caller } from "../auth/caller.ts";
import { uuidV7Source } from "../core/ids.ts";
import { systemRandom } from "../core/random.ts";
import { Credentials } from "./credentials.ts";
import { CannotOpen, open, seal } from "../auth/sealing/envelope.ts";
import { isFullKey, keyringOf } from "../auth/sealing/keyring.ts";
import { credentialValue, previewOf, type CredentialValue } from "./kinds.ts";

const PEM = "-----BEGIN PRIVATE KEY-----\ncanary-pem\n-----END PRIVATE KEY-----\n";
/** One of each kind; every secret of them has the word in it. */
const VALUES: readonly CredentialValue[] = [
  { kind: "pat", token: "ghp_canary_0123456789_abcd", username: "ann" },
  { kind: "basic", username: "ann", password: "canary-password" },
  { kind: "oauth2", access_token: "canary-access", refresh_token: "canary-refresh", client_secret: "canary-client" },
  { kind: "url", url: "https://ann:canary-pw@db.example/canary-path?token=canary-query" },
  {
    kind: "aws_creds",
    access_key_id: "AKIAIOSFODNN7EXAMPLE",
    secret_access_key: "canary-aws",
    session_token: "canary-s",
  },
  { kind: "api_key", key: "canary-api-key-0123456789-wxyz", header: "X-Api-Key" },
  { kind: "github_app", app_id: "12", installation_id: "34", private_key: PEM },
];

const KEY = randomBytes(32).toString("base64");

let access: Access;
beforeEach(async () => {
  access = await openAccess();
});
afterEach(() => access.close());

function credentials(key: string | undefined = KEY, former: readonly string[] = []): Credentials {
  const { records, audit, clock } = access;
  const newId = uuidV7Source(clock, systemRandom);
  const keyring = key === undefined ? undefined : keyringOf(key, former);
  return new Credentials({ records, newId, random: systemRandom, audit, keyring });
}

const as = by(ADMIN);

describe("credentials", () => {
  test.each(VALUES.map((value) => [value.kind, value] as const))(
    "of the kind %s come back as they were",
    async (_, value) => {
      const made = await credentials().create({ label: "it", value, metadata: { team: "a" } }, as);
      expect(made).toMatchObject({
        label: "it",
        kind: value.kind,
        metadata: { team: "a" },
        status: "ok",
        createdBy: "root",
      });
      expect((await credentials().reveal(made.id, ADMIN)).value).toEqual(value);
    },
  );

  test("are shown by a preview and never more, and stored sealed", async () => {
    const store = credentials();
    for (const value of VALUES) await store.create({ label: value.kind, value }, as);
    const shown = await store.list(ADMIN);
    expect(shown.map(({ preview }) => preview).toReversed()).toEqual([
      "ann ••••abcd",
      "ann ••••",
      "••••",
      "https://db.example/••••",
      "••••MPLE",
      "X-Api-Key ••••wxyz",
      "app 12, installation 34",
    ]);
    const kept = await Promise.all(
      ["credentials", "audit_log"].map((name) => access.records.rows(`SELECT * FROM ${name}`)),
    );
    expect(JSON.stringify([shown, kept])).not.toContain("canary");
  });

  test("do not open in the place of another, nor with another kind, nor damaged, nor without the key", async () => {
    const store = credentials();
    const [first, second] = VALUES;
    if (first === undefined || second === undefined) throw new Error("no values");
    const one = await store.create({ label: "one", value: first }, as);
    const two = await store.create({ label: "two", value: first }, as);
    const set = async (assignment: string, values: readonly string[]) => {
      return await access.records.transact([
        { sql: `UPDATE credentials SET ${assignment} WHERE id = ?`, values: [...values, one.id] },
      ]);
    };
    const [original] = await access.records.rows("SELECT * FROM credentials WHERE id = ?", [one.id]);
    const restore = () =>
      set("kind = ?, sealed_key = ?, sealed_value = ?", [
        "pat",
        String(original?.["sealed_key"]),
        String(original?.["sealed_value"]),
      ]);
    const refusal = async () => String(await store.reveal(one.id, ADMIN).catch((error: unknown) => error));
    const from = (column: string) => `(SELECT ${column} FROM credentials WHERE id = ?)`;
    for (const [assignment, values] of [
      [`sealed_value = ${from("sealed_value")}`, [two.id]],
      [`sealed_key = ${from("sealed_key")}`, [two.id]],
      [`sealed_key = ${from("sealed_key")}, sealed_value = ${from("sealed_value")}`, [two.id, two.id]],
      ["sealed_value = sealed_key", []],
      ["sealed_key = sealed_value", []],
      ["kind = ?", ["api_key"]],
      ["sealed_value = ?", [""]],
    ] as const) {
      await set(assignment, values);
      expect(`${assignment}: ${await refusal()}`).toMatch(/cannot be opened: it is (damaged|sealed)/);
      await restore();
    }
    expect((await store.reveal(one.id, ADMIN)).value).toEqual(first);
    await expect(credentials(randomBytes(32).toString("base64")).reveal(one.id, ADMIN)).rejects.toThrow(
      /not configured/,
    );
  });

  test("need a key, and without one say which option is missing", async () => {
    const store = credentials("");
    const without = new Credentials({ ...access, newId: () => "x", random: systemRandom, keyring: undefined });
    await store.create({ label: "dev", value: { kind: "pat", token: "t" } }, as);
    const refusal = { code: "not_configured", message: expect.stringContaining("ENGINE_SECRET_KEY") as string };
    await expect(without.list(ADMIN)).rejects.toMatchObject(refusal);
    await expect(without.create({ label: "x", value: { kind: "pat", token: "t" } }, as)).rejects.toMatchObject(refusal);
    await expect(without.get("x", ADMIN)).rejects.toMatchObject(refusal);
    await expect(without.remove("x", as)).rejects.toMatchObject(refusal);
  });

  test("move to a new key without being opened, while the old one still opens them", async () => {
    const before = credentials();
    const made = await Promise.all(VALUES.map((value) => before.create({ label: value.kind, value }, as)));
    const next = randomBytes(32).toString("base64");
    const both = credentials(next, [KEY]);
    expect(await both.rotate(as)).toEqual({ rotated: VALUES.length, failed: [] });
    expect(await both.rotate(as)).toEqual({ rotated: 0, failed: [] });
    const after = credentials(next);
    for (const [i, { id }] of made.entries()) expect((await after.reveal(id, ADMIN)).value).toEqual(VALUES[i]);
    await expect(before.reveal(made[0]?.id ?? "", ADMIN)).rejects.toThrow(/not configured/);
    const lost = await before.create({ label: "lost", value: { kind: "pat", token: "t" } }, as);
    expect(await credentials(next).rotate(as)).toEqual({ rotated: 0, failed: [lost.id] });
  });

  test("are seen by callers whose databases include those of the maker", async () => {
    const store = credentials();
    const scoped = (...databases: string[]): Caller => ({ ...ADMIN, subject: "s", databases });
    const value: CredentialValue = { kind: "pat", token: "t" };
    const mine = await store.create({ label: "mine", value }, by(scoped("logs")));
    const global = await store.create({ label: "global", value }, as);
    const seen = async (caller: Caller) => (await store.list(caller)).map(({ label }) => label);
    expect(await seen(ADMIN)).toEqual(["global", "mine"]);
    expect(await seen(scoped("logs", "web"))).toEqual(["mine"]);
    expect(await seen(scoped("web"))).toEqual([]);
    for (const [id, caller] of [
      [mine.id, scoped("web")],
      [global.id, scoped("logs")],
      ["no-such", ADMIN],
    ] as const) {
      const refusal = { code: "not_found" };
      await expect(store.get(id, caller)).rejects.toMatchObject(refusal);
      await expect(store.reveal(id, caller)).rejects.toMatchObject(refusal);
      await expect(store.remove(id, by(caller))).rejects.toMatchObject(refusal);
    }
    await store.remove(mine.id, by(scoped("logs")));
    expect(await seen(ADMIN)).toEqual(["global"]);
  });

  test("belong to who made them; those that are shared are used by others, and changed by none of them", async () => {
    const store = credentials();
    const ann: Caller = { ...ADMIN, kind: "session", subject: "ann", role: "write" };
    const bob: Caller = { ...ann, subject: "bob" };
    const value: CredentialValue = { kind: "pat", token: "t" };
    const own = await store.create({ label: "own", value }, by(ann));
    const shared = await store.create({ label: "shared", value, shared: true }, by(ann));
    const seen = async (caller: Caller) => (await store.list(caller)).map(({ label }) => label);
    expect([await seen(ann), await seen(bob), await seen(ADMIN)]).toEqual([
      ["shared", "own"],
      ["shared"],
      ["shared", "own"],
    ]);
    expect((await store.reveal(shared.id, bob)).value).toEqual(value);
    for (const change of [
      () => store.get(own.id, bob),
      () => store.reveal(own.id, bob),
      () => store.remove(own.id, by(bob)),
      () => store.remove(shared.id, by(bob)),
      () => store.share(own.id, true, by(bob)),
      () => store.share(shared.id, false, by(bob)),
    ]) {
      await expect(change()).rejects.toMatchObject({ code: "not_found" });
    }
    // Of databases that the caller may not use it is not shared either.
    expect(await seen({ ...bob, databases: ["logs"] })).toEqual([]);
    await store.share(shared.id, false, by(ADMIN));
    expect(await seen(bob)).toEqual([]);
  });

  test("are replaced by whoever saw the last value, and by nobody else", async () => {
    const store = credentials();
    const value: CredentialValue = { kind: "oauth2", access_token: "a-1", refresh_token: "r-1" };
    const { id } = await store.create({ label: "o", value }, as);
    const { version } = await store.reveal(id, ADMIN);
    await store.markFailed(id, version, "invalid_grant", as);
    expect(await store.get(id, ADMIN)).toMatchObject({ status: "refresh_failed", statusDetail: "invalid_grant" });
    const next: CredentialValue = { ...value, access_token: "a-2", expires_at: "2030-01-01T00:00:00Z" };
    const replaced = await Promise.all([store.replace(id, version, next, as), store.replace(id, version, next, as)]);
    expect(replaced.filter(Boolean)).toHaveLength(1);
    expect(await store.get(id, ADMIN)).toMatchObject({ status: "ok", expiresAtMs: Date.parse("2030-01-01T00:00:00Z") });
    await store.markFailed(id, version, "too late", as);
    expect(await store.get(id, ADMIN)).toMatchObject({ status: "ok" });
  });
});

describe("an envelope", () => {
  test("is another each time, and any changed byte of it is noticed", () => {
    const keyring = keyringOf(KEY, []);
    const [a, b] = [seal(keyring, systemRandom, "s", "text"), seal(keyring, systemRandom, "s", "text")];
    expect(a.sealedKey).not.toBe(b.sealedKey);
    expect(a.sealedValue).not.toBe(b.sealedValue);
    expect(open(keyring, "s", a)).toBe("text");
    expect(() => open(keyring, "t", a)).toThrow(CannotOpen);
    for (const part of ["sealedKey", "sealedValue"] as const) {
      const bytes = Buffer.from(a[part], "base64");
      for (let i = 0; i < bytes.length; i++) {
        const changed = Buffer.from(bytes);
        changed[i] = (changed[i] ?? 0) ^ 1;
        const opening = () => open(keyring, "s", { ...a, [part]: changed.toString("base64") });
        expect(opening).toThrow(CannotOpen);
      }
    }
  });

  test.each([
    [KEY, true],
    [randomBytes(32).toString("base64url"), true],
    [randomBytes(31).toString("base64"), false],
    [randomBytes(33).toString("base64"), false],
    ["development", false],
    ["x".repeat(44), false],
  ])("has a key of full strength: %s %s", (text, isFull) => {
    expect(isFullKey(text)).toBe(isFull);
  });
});

test.each([
  {},
  { kind: "pat" },
  { kind: "pat", token: "" },
  { kind: "pat", token: "t", extra: 1 },
  { kind: "url", url: "not a url" },
  { kind: "github_app", app_id: "1", installation_id: "2", private_key: "nonsense" },
  { kind: "oauth2", access_token: "a", expires_at: "tomorrow" },
  { kind: "password", value: "x" },
])("%j is no credential", (value) => {
  expect(credentialValue.safeParse(value).success).toBe(false);
});

test("a preview shows nothing of a short secret", () => {
  expect(previewOf({ kind: "api_key", key: "x".repeat(19) })).toBe("••••");
});
