import { exportJWK, generateKeyPair, type JWK } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { IssuerKeys } from "./issuer-keys.ts";

const MINUTE_MS = 60_000;
const UNAVAILABLE = { code: "unavailable" };
const NO_KEY = { code: "ERR_JWKS_NO_MATCHING_KEY" };

let jwk: JWK;
beforeAll(async () => {
  jwk = await exportJWK((await generateKeyPair("ES256", { extractable: true })).publicKey);
});

let clock: ManualClock;
let keys: IssuerKeys;
/** Names of the keys that the issuer has; undefined while it does not answer. */
let published: string[] | undefined;
let asked: number;
/** Holds answers back. */
let gate: Promise<void> | undefined;

beforeEach(() => {
  clock = new ManualClock();
  published = ["a"];
  asked = 0;
  gate = undefined;
  const load = async () => {
    asked++;
    const found = published;
    await gate;
    if (found === undefined) throw new Error("no answer");
    return found.map((kid) => Object.assign({ kid }, jwk));
  };
  keys = new IssuerKeys({ issuer: "https://i.example", load, clock, log: silentLog });
});

async function find(kid: string): Promise<void> {
  await keys.key({ alg: "ES256", kid }, { payload: "", signature: "" });
}

describe("the keys of an issuer", () => {
  test("are fetched when they are needed first, once for all who wait", async () => {
    expect(asked).toBe(0);
    await Promise.all(["a", "a", "a"].map(find));
    await find("a");
    expect(asked).toBe(1);
  });

  test("are fetched again at once for one that is not among them, once for all who wait", async () => {
    await find("a");
    published = ["a", "b"];
    await Promise.all([find("b"), find("a"), find("b"), find("b")]);
    expect(asked).toBe(2);
    await find("b");
    expect(asked).toBe(2);
  });

  test("are not fetched twice for the first token, nor for the same unknown name within a minute", async () => {
    await expect(find("b")).rejects.toMatchObject(NO_KEY);
    expect(asked).toBe(1);
    for (let i = 0; i < 10; i++) await expect(find("b")).rejects.toMatchObject(NO_KEY);
    expect(asked).toBe(2);
    clock.advance(MINUTE_MS - 1);
    await expect(find("b")).rejects.toMatchObject(NO_KEY);
    expect(asked).toBe(2);
    clock.advance(1);
    published = ["b"];
    await find("b");
    expect(asked).toBe(3);
  });

  test("are asked for again where the fetch that was under way came too early to have one", async () => {
    await find("a");
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    const guess = find("guess").catch((error: unknown) => error);
    await expect.poll(() => asked).toBe(2);
    published = ["a", "b"];
    const rotated = find("b");
    gate = undefined;
    resolve();
    await rotated;
    expect(await guess).toMatchObject(NO_KEY);
    expect(asked).toBe(3);
  });

  test("are fetched a few times in a row for names that somebody makes up, then every ten seconds", async () => {
    await find("a");
    const guess = async (many: number) => {
      for (let i = 0; i < many; i++) await expect(find(`guess-${clock.nowMs()}-${i}`)).rejects.toMatchObject(NO_KEY);
    };
    const atOnce = Array.from({ length: 200 }, (_, i) => find(`at-once-${i}`));
    expect((await Promise.allSettled(atOnce)).every(({ status }) => status === "rejected")).toBe(true);
    expect(asked).toBe(1 + 1);
    await guess(200);
    expect(asked).toBe(1 + 5);
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      await guess(20);
    }
    expect(asked).toBe(1 + 5 + 6);
    // One that is really new is known by the next fetch, whoever caused it.
    published = ["a", "b"];
    await expect(find("b")).rejects.toMatchObject(NO_KEY);
    clock.advance(10_000);
    await guess(20);
    await find("b");
    expect(asked).toBe(1 + 5 + 7);
  });

  test("are good while the issuer is away, and others cannot be known", async () => {
    await find("a");
    published = undefined;
    clock.advance(MINUTE_MS);
    for (let i = 0; i < 10; i++) {
      await expect(find("b")).rejects.toMatchObject({ ...UNAVAILABLE, details: { headers: { "Retry-After": "1" } } });
      await find("a");
    }
    expect(asked).toBe(2);
    published = ["b"];
    clock.advance(MINUTE_MS);
    await find("b");
    expect(asked).toBe(3);
    await expect(find("a")).rejects.toMatchObject(NO_KEY);
  });

  test("that were taken back are good no longer than ten minutes", async () => {
    await find("a");
    published = ["b"];
    clock.advance(10 * MINUTE_MS - 1);
    await find("a");
    clock.advance(1);
    await expect(find("a")).rejects.toMatchObject(NO_KEY);
  });

  test("are fetched beside the requests before they are too old, so that none waits", async () => {
    await find("a");
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    clock.advance(5 * MINUTE_MS);
    await find("a");
    await find("a");
    expect(asked).toBe(2);
    resolve();
    await find("a");
    clock.advance(5 * MINUTE_MS - 1);
    await find("a");
    expect(asked).toBe(2);
  });

  test("are good for a day without the issuer", async () => {
    await find("a");
    published = undefined;
    for (let minute = 0; minute < 24 * 60 - 1; minute++) {
      clock.advance(MINUTE_MS);
      await find("a");
    }
    clock.advance(MINUTE_MS);
    await expect(find("a")).rejects.toMatchObject(UNAVAILABLE);
    published = ["a"];
    clock.advance(MINUTE_MS);
    await find("a");
  });

  test("that never came are asked for again after a second, then ever more seldom", async () => {
    published = undefined;
    const askedAtSecs: number[] = [];
    for (let second = 0; second < 240; second++) {
      const before = asked;
      await expect(find("a")).rejects.toMatchObject(UNAVAILABLE);
      await expect(find("a")).rejects.toMatchObject(UNAVAILABLE);
      if (asked > before) askedAtSecs.push(second);
      clock.advance(1_000);
    }
    expect(askedAtSecs).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
    published = ["a"];
    clock.advance(MINUTE_MS);
    await find("a");
  });
});
