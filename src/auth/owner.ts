import type { Caller } from "./caller.ts";

/**
 * Who owns a record. Credentials, jobs, schedules, exports, workers, sandboxes and what belongs to them carry the text
 * that `ownerOf` gives, in a column of their own: only that owner, and admins, reach the record.
 *
 * | caller | owner |
 * |---|---|
 * | authentication is off | `local` |
 * | a user, by a session, an identity provider's token or an API token | the name of the user |
 * | an OpenID Connect issuer's | `<issuer>#<subject>` |
 * | a token of the configuration | `token:<name>`, or `token:` and a few digits of its hash |
 * | a worker | the owner of the worker |
 * | this program | `engine` |
 *
 * No name of a user has a `:`, and no other owner is without one, except the two words of this program: a user who has
 * one of those for a name owns as `user:<name>`. So nobody can take a name that is another kind's owner.
 */
export const LOCAL_OWNER = "local";
export const ENGINE_OWNER = "engine";

/** Of records whose maker is not known any more: only admins reach them. Nobody is called so. */
export const NO_OWNER = "admins:";

const OWN_WORDS: ReadonlySet<string> = new Set([LOCAL_OWNER, ENGINE_OWNER]);

/** The owner of what the caller makes. The same rule in SQL, for records of earlier versions: `ownerSql`. */
export function ownerOf({ owner, subject, kind }: Pick<Caller, "owner" | "subject" | "kind">): string {
  if (owner !== undefined) return owner;
  switch (kind) {
    case "anonymous":
      return LOCAL_OWNER;
    case "internal":
      return ENGINE_OWNER;
    case "worker":
      return NO_OWNER;
    case "static":
    case "session":
    case "api_token":
    case "idp":
    case "oidc":
      return OWN_WORDS.has(subject) ? `user:${subject}` : subject;
  }
}

/** Whoever asks for a record. */
export type Asker = Pick<Caller, "owner" | "subject" | "kind" | "role" | "databases">;

/**
 * Whether the caller may list, read, use, change and delete a record of that owner. An admin whose token is limited to
 * databases is no admin of records that belong to none.
 */
export function mayReach(caller: Asker, owner: string): boolean {
  return ownerFilter(caller) === undefined || ownerOf(caller) === owner;
}

/** The only owner whose records the caller may list; undefined for an admin, who sees all. */
export function ownerFilter(caller: Asker): string | undefined {
  return caller.role === "admin" && caller.databases === undefined ? undefined : ownerOf(caller);
}

/**
 * The same for records that name databases, as jobs do: an admin whose token is limited reaches those of everybody, of
 * its databases. That the record is of the caller's databases is to be checked besides.
 */
export function mayReachWithin(caller: Asker, owner: string): boolean {
  return ownerFilterWithin(caller) === undefined || ownerOf(caller) === owner;
}

export function ownerFilterWithin(caller: Asker): string | undefined {
  return caller.role === "admin" ? undefined : ownerOf(caller);
}

/** Whether the caller may use a record without seeing what is secret in it, or changing it. */
export function mayUse(caller: Asker, { owner, shared }: { owner: string; shared: boolean }): boolean {
  return shared || mayReach(caller, owner);
}
