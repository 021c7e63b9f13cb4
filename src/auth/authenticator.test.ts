import { describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { createAuthenticator, type TokenBackend } from "./authenticator.ts";
import { ANONYMOUS } from "./caller.ts";
import { FailureLimit } from "./failure-limit.ts";
import { networkOf } from "./network.ts";
import { ownerOf } from "./owner.ts";
import { staticTokens } from "./static-tokens.ts";

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
  test("makes an address wait that guesses, and no other", async () => {
    const clock = new ManualClock();
    const authenticate = authenticator({ clock });
    for (let i = 0; i < 50; i++) {
      await expect(authenticate(`Bearer guess-${i}`)).rejects.toMatchObject({ code: "unauthorized" });
    }
    const refusal = { code: "too_many_requests", details: { headers: { "Retry-After": "1" } } };
    await expect(authenticate("Bearer boss")).rejects.toMatchObject(refusal);
    expect(await authenticate("Bearer boss", "10.0.0.2")).toMatchObject({ role: "admin" });
    clock.advance(1_000);
    expect(await authenticate("Bearer boss")).toMatchObject({ role: "admin" });
  });

  test("is not used up by those who do not try a token", async () => {
    const authenticate = authenticator();
    for (let i = 0; i < 100; i++) {
      await expect(authenticate(undefined)).rejects.toMatchObject({ code: "unauthorized" });
    }
    expect(await authenticate("Bearer boss")).toMatchObject({ role: "admin" });
  });

  test("remembers a bounded number of addresses, the last ones", () => {
    const limit = new FailureLimit({ clock: new ManualClock(), burst: 1, maxAddresses: 3 });
    for (const address of ["a", "b", "c", "a", "d"]) limit.count(address);
    const isWaiting = (address: string) => {
      try {
        limit.check(address);
        return false;
      } catch {
        return true;
      }
    };
    expect(["a", "b", "c", "d"].filter(isWaiting)).toEqual(["a", "c", "d"]);
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
