import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../core/log.ts";
import { ADMIN, by, openAccess, openToAll, type Access } from "../access.test-kit.ts";
import { WebIssuers } from "./issuers.ts";
import type { GrantOutcome, SignInClient } from "./sign-in-client.ts";
import type { BrowserRequest } from "./web-sessions.ts";
import { WebSignIn } from "./web-sign-in.ts";

const ISSUER = "https://issuer.example";
const BROWSER: BrowserRequest = { address: "10.0.0.9", requestId: "r", userAgent: undefined, formerHash: undefined };
const ASKED = { provider: ISSUER, redirectUri: `${ISSUER}/back`, state: "s", nonce: "n", verifier: "v" };
/** More than a network may fail at once. */
const MANY = 12;

let access: Access;
beforeEach(async () => {
  access = await openAccess();
  await access.users.create({ name: "ann", password: "correct horse", role: "write" }, by(ADMIN));
});
afterEach(() => access.close());

function signInWith(outcome: GrantOutcome) {
  const client: SignInClient = {
    issuer: ISSUER,
    authorizationUrl: () => Promise.resolve(ISSUER),
    exchange: () => Promise.resolve(outcome),
    refresh: () => Promise.resolve(outcome),
    issued: () => Promise.resolve(undefined),
  };
  const way = { provider: ISSUER, title: ISSUER, client };
  const { signIn, webSessions, audit } = access;
  const issuers = new WebIssuers([way]);
  const webSignIn = new WebSignIn({ signIn, webSessions, authenticator: openToAll(), issuers, audit, log: silentLog });
  const comeBack = () => webSignIn.withCode(way, { code: "c", iss: undefined }, ASKED, BROWSER);
  return { webSignIn, comeBack };
}

test("an issuer that does not answer locks nobody's network out", async () => {
  const { webSignIn, comeBack } = signInWith({ kind: "unreachable", reason: "no answer" });
  for (let i = 0; i < MANY; i++) expect(await comeBack()).toBe("provider_unreachable");
  const { caller } = await webSignIn.withPassword("ann", "correct horse", BROWSER);
  expect(caller.subject).toBe("ann");
  const entries = await access.audit.list({ limit: 100 });
  const refused = entries.filter(({ outcome }) => outcome === "refused").map(({ details }) => details);
  expect(refused).toEqual(Array.from({ length: MANY }, () => ({ voucher: "issuer", why: "provider_unreachable" })));
});

test.each<[GrantOutcome, string]>([
  [{ kind: "refused", error: "invalid_grant" }, "provider_refused"],
  [{ kind: "invalid", reason: "no token" }, "invalid_token"],
])("codes that an issuer answers with %j count as failed sign-ins", async (outcome, problem) => {
  const { webSignIn, comeBack } = signInWith(outcome);
  for (let i = 0; i < 10; i++) expect(await comeBack()).toBe(problem);
  const limited = { code: "too_many_requests" };
  await expect(comeBack()).rejects.toMatchObject(limited);
  await expect(webSignIn.withPassword("ann", "correct horse", BROWSER)).rejects.toMatchObject(limited);
});
