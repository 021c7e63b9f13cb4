import { createHash, timingSafeEqual } from "node:crypto";
import type { TokenBackend } from "./authenticator.ts";
import type { StaticToken } from "../config/kinds.ts";
import type { Caller } from "./caller.ts";

/** What the subjects of tokens of the configuration begin with; no user is called so. */
export const STATIC_PREFIX = "token:";

/** Tokens of the configuration. What is compared are hashes, all of them each time: time tells nothing about a token. */
export function staticTokens(
  tokens: readonly StaticToken[],
  kind: "static" | "internal" = "static",
): TokenBackend & { callers: readonly Caller[] } {
  const known = tokens.map(({ token, role }) => {
    const digest = digestOf(token);
    // The configuration names no one: a few digits of the hash tell tokens apart in logs and say nothing about them.
    const subject = kind === "internal" ? "engine" : `${STATIC_PREFIX}${digest.toString("hex").slice(0, 8)}`;
    const caller: Caller = { subject, kind, role, databases: undefined };
    return { digest, caller };
  });
  return {
    callers: known.map(({ caller }) => caller),
    // Before the internal token others have their say only of what it is not.
    recognizes: (token) => kind === "static" || known.some(({ digest }) => timingSafeEqual(digest, digestOf(token))),
    authenticate: (token) => {
      const shown = digestOf(token);
      let found: Caller | undefined;
      for (const { digest, caller } of known) if (timingSafeEqual(digest, shown)) found = caller;
      return Promise.resolve(found);
    },
  };
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
