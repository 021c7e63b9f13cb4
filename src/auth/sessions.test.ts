import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EngineError } from "../core/errors.ts";
import { ACCESS_TTL_MS, ADMIN, by, openAccess, REFRESH_TTL_MS, type Access } from "./access.test-kit.ts";
import { Passwords } from "./passwords.ts";
import { isToken } from "./tokens.ts";

let access: Access;
beforeEach(async () => {
  access = await openAccess();
  await access.users.create({ name: "ann", password: "correct horse", role: "write" }, by(ADMIN));
});
afterEach(() => access.close());

const from = (address: string) => ({ address, requestId: "r-2" });
const HERE = from("10.0.0.9");
const signIn = () => access.signIn.signIn("ann", "correct horse", HERE);
const unauthorized = { code: "unauthorized" };

describe("sessions", () => {
  test("begin with the right password, and their access token soon ends", async () => {
    const { user, tokens } = await signIn();
    expect(user).toMatchObject({ name: "ann", role: "write" });
    expect(isToken("access", tokens.accessToken) && isToken("refresh", tokens.refreshToken)).toBe(true);
    const caller = { subject: "ann", kind: "session", role: "write", databases: undefined, userId: user.id };
    expect(await access.sessions.authenticate(tokens.accessToken)).toMatchObject(caller);
    access.clock.advance(ACCESS_TTL_MS - 1);
    expect(await access.sessions.authenticate(tokens.accessToken)).toMatchObject(caller);
    access.clock.advance(1);
    expect(await access.sessions.authenticate(tokens.accessToken)).toBeUndefined();
  });

  test("are kept without their tokens", async () => {
    const { tokens } = await signIn();
    const kept = await Promise.all(
      ["sessions", "access_tokens", "refresh_tokens", "audit_log"].map((table) =>
        access.records.rows(`SELECT * FROM ${table}`),
      ),
    );
    expect(kept.every((rows) => rows.length > 0)).toBe(true);
    for (const token of [tokens.accessToken, tokens.refreshToken]) expect(JSON.stringify(kept)).not.toContain(token);
  });

  test("go on with a refresh token, each good for one use", async () => {
    let { tokens } = await signIn();
    for (let i = 0; i < 5; i++) {
      access.clock.advance(REFRESH_TTL_MS - 1);
      tokens = await access.sessions.refresh(tokens.refreshToken, HERE);
      expect(await access.sessions.authenticate(tokens.accessToken)).toMatchObject({ subject: "ann" });
    }
    access.clock.advance(REFRESH_TTL_MS);
    await expect(access.sessions.refresh(tokens.refreshToken, HERE)).rejects.toMatchObject(unauthorized);
  });

  test("end as a whole when a refresh token comes a second time, and others do not", async () => {
    const other = await signIn();
    const { tokens: first } = await signIn();
    const second = await access.sessions.refresh(first.refreshToken, HERE);
    await expect(access.sessions.refresh(first.refreshToken, from("10.6.6.6"))).rejects.toMatchObject(unauthorized);
    expect(await access.sessions.authenticate(second.accessToken)).toBeUndefined();
    await expect(access.sessions.refresh(second.refreshToken, HERE)).rejects.toMatchObject(unauthorized);
    expect(await access.sessions.authenticate(other.tokens.accessToken)).toMatchObject({ subject: "ann" });
    const [entry] = await access.audit.list({ limit: 1 });
    expect(entry).toMatchObject({
      action: "auth.refresh_reuse",
      target: "ann",
      outcome: "refused",
      address: "10.6.6.6",
    });
  });

  test("give new tokens to one of many that refresh at once, and end: the others reused it", async () => {
    const { tokens } = await signIn();
    const all = await Promise.allSettled(
      Array.from({ length: 5 }, () => access.sessions.refresh(tokens.refreshToken, HERE)),
    );
    const given = all.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(given).toHaveLength(1);
    expect(await access.sessions.authenticate(given[0]?.accessToken ?? "")).toBeUndefined();
  });

  test("end when they are closed, and with their user", async () => {
    const [one, two] = [await signIn(), await signIn()];
    const caller = await access.sessions.authenticate(one.tokens.accessToken);
    await access.sessions.close(caller?.sessionId ?? "", by(caller ?? ADMIN));
    expect(await access.sessions.authenticate(one.tokens.accessToken)).toBeUndefined();
    await expect(access.sessions.refresh(one.tokens.refreshToken, HERE)).rejects.toMatchObject(unauthorized);
    expect(await access.sessions.authenticate(two.tokens.accessToken)).toMatchObject({ subject: "ann" });
    await access.users.remove("ann", by(ADMIN));
    expect(await access.sessions.authenticate(two.tokens.accessToken)).toBeUndefined();
  });

  test("leave nothing behind once they are over", async () => {
    for (let i = 0; i < 3; i++) await signIn();
    access.clock.advance(REFRESH_TTL_MS);
    await signIn();
    for (const table of ["sessions", "access_tokens", "refresh_tokens"]) {
      expect(await access.records.rows(`SELECT * FROM ${table}`)).toHaveLength(1);
    }
  });
});

describe("signing in", () => {
  test("tells nobody whether the user exists", async () => {
    const wrong = await access.signIn.signIn("ann", "wrong horse", HERE).catch((error: unknown) => error);
    const unknown = await access.signIn.signIn("bob", "wrong horse", HERE).catch((error: unknown) => error);
    expect(wrong).toMatchObject(unauthorized);
    expect(String(unknown)).toBe(String(wrong));
  });

  test("makes who guesses wait, by network", async () => {
    for (let i = 0; i < 10; i++) {
      await expect(access.signIn.signIn(`nobody-${i}`, "x", HERE)).rejects.toMatchObject(unauthorized);
    }
    const refusal = { code: "too_many_requests", details: { headers: { "Retry-After": "6" } } };
    await expect(signIn()).rejects.toMatchObject(refusal);
    expect(await access.signIn.signIn("ann", "correct horse", from("10.0.0.10"))).toMatchObject({
      user: { name: "ann" },
    });
    access.clock.advance(6_000);
    await signIn();
  });

  test("checks no more passwords than that, however many come at once", async () => {
    const check = vi.spyOn(Passwords.prototype, "verify");
    try {
      const guesses = Array.from({ length: 200 }, (_, i) => access.signIn.signIn("ann", `guess ${i}`, HERE));
      const codes = (await Promise.allSettled(guesses)).map((outcome) =>
        outcome.status === "rejected" ? (outcome.reason as EngineError).code : "signed in",
      );
      expect(check).toHaveBeenCalledTimes(10);
      expect(codes.filter((code) => code === "unauthorized")).toHaveLength(10);
      expect(codes.filter((code) => code === "too_many_requests")).toHaveLength(190);
      check.mockClear();
      // From many places, what the account has at once counts.
      const many = Array.from({ length: 100 }, (_, i) =>
        access.signIn.signIn("ann", `guess ${i}`, from(`10.8.0.${i}`)),
      );
      await Promise.allSettled(many);
      expect(check).toHaveBeenCalledTimes(10);
    } finally {
      check.mockRestore();
    }
  });

  test("takes no attempt away from those whose password is right, or was not looked at", async () => {
    for (let i = 0; i < 30; i++) await signIn();
    const busy = vi
      .spyOn(Passwords.prototype, "verify")
      .mockRejectedValue(new EngineError("too_many_requests", "busy"));
    for (let i = 0; i < 30; i++) await expect(signIn()).rejects.toMatchObject({ message: "busy" });
    busy.mockRestore();
    await signIn();
    await access.signIn.signIn("ann", "correct horse", from("10.7.0.1"));
  });

  test("protects an account that is attacked from many places, and does not lock its owner out", async () => {
    await signIn();
    for (let i = 0; i < 20; i++) {
      await expect(access.signIn.signIn("ann", "x", from(`10.9.0.${i}`))).rejects.toMatchObject(unauthorized);
    }
    const elsewhere = access.signIn.signIn("ann", "correct horse", from("10.9.9.9"));
    await expect(elsewhere).rejects.toMatchObject({ code: "too_many_requests" });
    expect(await signIn()).toMatchObject({ user: { name: "ann" } });
  });

  test("writes down who came and who was refused, and no password", async () => {
    await signIn();
    await access.signIn.signIn("ann", "a secret guess", HERE).catch(() => undefined);
    const entries = await access.audit.list({ limit: 2 });
    expect(entries.map(({ action, target, outcome }) => [action, target, outcome])).toEqual([
      ["auth.login", "ann", "refused"],
      ["auth.login", "ann", "ok"],
    ]);
    expect(JSON.stringify(entries)).not.toMatch(/secret guess|correct horse/);
  });
});
