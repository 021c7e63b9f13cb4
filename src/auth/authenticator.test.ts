import { describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { seededRandom } from "../core/random.ts";
import { createAuthenticator, type TokenBackend } from "./authenticator.ts";
import { ANONYMOUS } from "./caller.ts";
import { FailureLimit } from "./failure-limit.ts";
import { networkOf } from "./network.ts";
import { ownerOf } from "./owner.ts";
import { staticTokens } from "./static-tokens.ts";
import { newToken } from "./tokens.ts";

const TOKENS = staticTokens([
  { token: "reader", role: "read" },
  { token: "boss", role: "admin" },
]);

function authenticator(options: { isOn?: boolean; backends?: readonly TokenBackend[]; clock?: ManualClock } = {}) {
  const { isOn = true, backends = [TOKENS], clock = new ManualClock() } = options;
  const made = createAuthenticator({ isOn, backends, failures: new FailureLimit({ clock }) });
  return (authorization: string | undefined, address = "10.0.0.1") =>
    made.authenticate({ authorization, address, requestId: "r-1" });
}

describe("bearer tokens", () => {
  test.each(["Bearer reader", "bearer reader", "BEARER   reader  "])("takes %j", async (header) => {
    expect(await authenticator()(header)).toMatchObject({ kind: "static", role: "read", databases: undefined });
  });

  test.each([undefined, "", "reader", "Bearer", "Bearer ", "Basic cmVhZGVy", "Bearer read er"])(
    "refuses %j, and says what is asked for",
    async (header) => {
      const refusal = { code: "unauthorized", details: { headers: { "WWW-Authenticate": 'Bearer realm="engine"' } } };
      await expect(authenticator()(header)).rejects.toMatchObject(refusal);
    },
  );

  test("says the same of a token that is unknown and one that a backend no longer takes", async () => {
    const over: TokenBackend = {
      recognizes: (token) => token.startsWith("old-"),
      authenticate: () => Promise.resolve(undefined),
    };
    const authenticate = authenticator({ backends: [over, TOKENS] });
    const errors = await Promise.all(
      ["Bearer old-1", "Bearer nonsense"].map((header) => authenticate(header).catch((error: unknown) => error)),
    );
    expect(errors[0]).toMatchObject({ code: "unauthorized" });
    expect(String(errors[0])).toBe(String(errors[1]));
  });

  test("names tokens apart without saying what they are", async () => {
    const [reader, boss] = await Promise.all(["Bearer reader", "Bearer boss"].map((header) => authenticator()(header)));
    expect(reader?.subject).not.toBe(boss?.subject);
    expect(`${reader?.subject} ${boss?.subject}`).not.toMatch(/reader|boss/);
  });

  test("compares a token with every known one by its hash, wherever it differs", async () => {
    for (const wrong of ["readex", "xeader", "reade", "readerr", "r"]) {
      await expect(authenticator()(`Bearer ${wrong}`)).rejects.toMatchObject({ code: "unauthorized" });
    }
  });

  test("lets everyone do everything while it is off, and still knows who shows a token", async () => {
    const authenticate = authenticator({ isOn: false });
    const anyone = { kind: "anonymous", role: "admin" };
    expect(await authenticate(undefined)).toMatchObject(anyone);
    expect(await authenticate("Bearer nonsense")).toMatchObject(anyone);
    const reader = await authenticate("Bearer reader");
    expect(reader).toMatchObject({ kind: "static", role: "read" });
    // What is made meanwhile is one owner's, whoever makes it.
    expect([ownerOf(ANONYMOUS), ownerOf(reader)]).toEqual(["local", "local"]);
  });
});

describe("the limit on failures", () => {
  const wrong = { code: "unauthorized" };
  const waits = { code: "too_many_requests", details: { headers: { "Retry-After": "1" } } };

  test("makes a wrong token wait that comes again and again from a network, and no other token or network", async () => {
    const clock = new ManualClock();
    let asked = 0;
    const backend: TokenBackend = {
      recognizes: () => true,
      authenticate: (token, from) => {
        asked++;
        return TOKENS.authenticate(token, from);
      },
    };
    const authenticate = authenticator({ clock, backends: [backend] });
    for (let i = 0; i < 50; i++) await expect(authenticate("Bearer wrong")).rejects.toMatchObject(wrong);
    for (let i = 0; i < 50; i++) await expect(authenticate("Bearer wrong")).rejects.toMatchObject(waits);
    expect(asked).toBe(50);
    await expect(authenticate("Bearer other")).rejects.toMatchObject(wrong);
    await expect(authenticate("Bearer wrong", "10.0.0.2")).rejects.toMatchObject(wrong);
    clock.advance(1_000);
    await expect(authenticate("Bearer wrong")).rejects.toMatchObject(wrong);
    await expect(authenticate("Bearer wrong")).rejects.toMatchObject(waits);
  });

  test("lets a valid token pass from where any number of wrong ones came, also all at once", async () => {
    const authenticate = authenticator();
    const guesses = Array.from({ length: 3_000 }, (_, i) => authenticate(`Bearer guess-${i % 2_000}`));
    const good = Array.from({ length: 200 }, () => authenticate("Bearer boss"));
    const settled = await Promise.allSettled(guesses);
    expect(settled.every(({ status }) => status === "rejected")).toBe(true);
    for (const caller of await Promise.all(good)) expect(caller).toMatchObject({ role: "admin" });
    expect(await authenticate("Bearer boss")).toMatchObject({ role: "admin" });
  });

  test("takes all addresses of an IPv6 network for one", async () => {
    const authenticate = authenticator();
    for (let i = 0; i < 50; i++) {
      await expect(authenticate("Bearer wrong", `2001:db8::${i.toString(16)}`)).rejects.toMatchObject(wrong);
    }
    await expect(authenticate("Bearer wrong", "2001:db8::ffff")).rejects.toMatchObject(waits);
    await expect(authenticate("Bearer wrong", "2001:db8:0:1::1")).rejects.toMatchObject(wrong);
  });

  test("looks up a few tokens at a time from where many wrong ones came, and as many as come from elsewhere", async () => {
    let running = 0;
    let most = 0;
    const backend: TokenBackend = {
      recognizes: () => true,
      authenticate: async (token, from) => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return TOKENS.authenticate(token, from);
      },
    };
    const authenticate = authenticator({ backends: [backend] });
    for (let i = 0; i < 50; i++) await authenticate(`Bearer guess-${i}`).catch(() => undefined);
    most = 0;
    const flood = Array.from({ length: 500 }, (_, i) => authenticate(`Bearer more-${i}`).catch(() => undefined));
    expect(await authenticate("Bearer boss")).toMatchObject({ role: "admin" });
    await Promise.all(flood);
    expect(most).toBe(2);
    await Promise.all(Array.from({ length: 20 }, () => authenticate("Bearer boss", "10.0.0.2")));
    expect(most).toBe(20);
  });

  test("holds for tokens of workers as for others", async () => {
    const token = newToken("worker", seededRandom(1));
    const good = newToken("worker", seededRandom(2));
    const identity = {
      id: "w",
      name: "w",
      owner: "ann",
      capabilities: undefined,
      admitted: [],
      labels: {},
      drain: false,
    };
    const made = createAuthenticator({
      isOn: true,
      backends: [],
      workers: { authenticate: (shown) => Promise.resolve(shown === good ? identity : undefined) },
      failures: new FailureLimit({ clock: new ManualClock() }),
    });
    const ask = (shown: string) =>
      made.authenticateWorker({ authorization: `Bearer ${shown}`, address: "10.0.0.1", requestId: "r-1" });
    for (let i = 0; i < 50; i++) await expect(ask(token)).rejects.toMatchObject(wrong);
    await expect(ask(token)).rejects.toMatchObject(waits);
    expect(await ask(good)).toEqual(identity);
  });

  test("is not used up by those who do not try a token", async () => {
    const authenticate = authenticator();
    for (let i = 0; i < 100; i++) {
      await expect(authenticate(undefined)).rejects.toMatchObject({ code: "unauthorized" });
    }
    expect(await authenticate("Bearer boss")).toMatchObject({ role: "admin" });
  });

  test("remembers a bounded number of keys, the last ones", () => {
    const limit = new FailureLimit({ clock: new ManualClock(), burst: 1, maxKeys: 3 });
    for (const key of ["a", "b", "c", "a", "d"]) limit.count(key);
    expect(["a", "b", "c", "d"].filter((key) => limit.isReached(key))).toEqual(["a", "c", "d"]);
  });

  test("counts no failure that was given back, and gives back none that was not counted", () => {
    const clock = new ManualClock();
    const limit = new FailureLimit({ clock, burst: 2, refillMs: 1_000 });
    limit.giveBack("a");
    limit.count("a");
    limit.count("a");
    expect(limit.isReached("a")).toBe(true);
    limit.giveBack("a");
    expect(limit.isReached("a")).toBe(false);
    limit.giveBack("a");
    limit.giveBack("a");
    limit.count("a");
    expect(limit.isReached("a")).toBe(false);
    limit.count("a");
    expect(limit.isReached("a")).toBe(true);
  });
});

test.each([
  ["10.1.2.3", "10.1.2.3"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002:ffff::", "2001:db8:1:2::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
