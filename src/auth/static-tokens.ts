import { createHash, timingSafeEqual } from "node:crypto";
import type { TokenBackend } from "./authenticator.ts";
import type { StaticToken } from "./option-kinds.ts";
import type { Caller } from "./caller.ts";

/** What the subjects of tokens of the configuration begin with; no user is called so. */
export const STATIC_PREFIX = "token:";

export type StaticBackend = TokenBackend & {
  callers: readonly Caller[];
  /** The bearer of the token with that hash (`hashToken`), as long as the configuration has it. */
  callerOf(hash: string): Caller | undefined;
};

/**
 * Tokens of the configuration. What is compared are hashes, all of them each time: time tells nothing about a token.
 * `judges`: whether it has its say of all tokens, as the last backend, or only of its own, before others.
 */
export function staticTokens(
  tokens: readonly StaticToken[],
  { kind = "static", judges = "all" }: { kind?: "static" | "internal"; judges?: "all" | "its own" } = {},
): StaticBackend {
  const known = tokens.map(({ token, role, name }) => {
    const digest = digestOf(token);
    // Where nobody is named, a few digits of the hash tell tokens apart in logs and say nothing about them.
    const called = `${STATIC_PREFIX}${name ?? digest.toString("hex").slice(0, 8)}`;
    const subject = kind === "internal" ? "engine" : called;
    const caller: Caller = { subject, kind, role, databases: undefined };
    return { digest, caller };
  });
  return {
    callers: known.map(({ caller }) => caller),
    callerOf: (hash) => known.find(({ digest }) => digest.toString("hex") === hash)?.caller,
    recognizes: (token) => judges === "all" || isAny(known, token),
    authenticate: (token) => {
      const shown = digestOf(token);
      let found: Caller | undefined;
      for (const { digest, caller } of known) if (timingSafeEqual(digest, shown)) found = caller;
      return Promise.resolve(found);
    },
  };
}

/** All are compared, found or not. */
function isAny(known: readonly { digest: Buffer }[], token: string): boolean {
  const shown = digestOf(token);
  return known.filter(({ digest }) => timingSafeEqual(digest, shown)).length > 0;
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
