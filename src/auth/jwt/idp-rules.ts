import { USER_NAME, type CallerRole } from "../../config/kinds.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { memberOf, nameIn, roleIn } from "./claims.ts";
import type { Claims } from "./verifier.ts";

export type IdpRules = {
  /** Folded, as e-mail addresses are compared here. */
  adminEmails: readonly string[];
  /** Folded; undefined for everyone. */
  allowedEmailDomains: readonly string[] | undefined;
  defaultRole: CallerRole;
};

/** Whom a token of the identity provider vouches for. */
export type Vouched = {
  subject: string;
  /** What a new user is called. */
  name: string;
  role: CallerRole;
  /** When the provider said so. */
  atMs: number;
};

/**
 * Who may come in with good claims, and as what. Users can change their own `user_metadata`, so it only ever takes
 * rights away; `app_metadata` is the provider's. The claim `role` is of the provider's database and means nothing here.
 *
 * Throws `forbidden`.
 */
export function judge(claims: Claims, rules: IdpRules): Vouched {
  if (claims["is_anonymous"] === true) throw new EngineError("forbidden", "anonymous sign-ins may not come in");
  const email = verifiedEmail(claims);
  const { allowedEmailDomains: domains, adminEmails, defaultRole } = rules;
  if (domains !== undefined && (email === undefined || !domains.includes(email.slice(email.lastIndexOf("@") + 1)))) {
    throw new EngineError("forbidden", "no verified e-mail address of an allowed domain is in the token");
  }
  const isAdmin = email !== undefined && adminEmails.includes(email);
  const role = isAdmin ? "admin" : (roleIn(memberOf(claims["app_metadata"], "role")) ?? defaultRole);
  const subject = nameIn(claims.sub);
  const name = email !== undefined && isUserName(claims["email"]) ? claims["email"] : subject;
  if (subject === undefined || !isUserName(name)) {
    throw new EngineError("forbidden", "the token has neither an e-mail address nor a subject that can name a user");
  }
  // Of a provider that does not say when, every token is as new as the others.
  return { subject, name, role, atMs: Math.max(0, Math.trunc((claims.iat ?? 0) * 1_000)) };
}

/**
 * Folded as names are: only ASCII letters, for beyond them lower case makes the same of letters that providers tell
 * apart. An address that is said not to be verified could be anybody's.
 */
function verifiedEmail(claims: Claims): string | undefined {
  const { email } = claims;
  if (typeof email !== "string" || !email.includes("@")) return undefined;
  const said = [claims["email_verified"], memberOf(claims["user_metadata"], "email_verified")];
  // Some providers write booleans as text.
  const isRefuted = said.some((verified) => verified !== undefined && verified !== true && verified !== "true");
  return isRefuted ? undefined : foldName(email);
}

function isUserName(text: unknown): text is string {
  return typeof text === "string" && USER_NAME.test(text);
}
