import { ownerFilterWithin, ownerOf, type Asker } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";

/**
 * Realms divide the memory of a database: `default`, `project:<folder>`, any other text; `user:<name>` is that user's (by
 * `ownerOf`) and admins' alone.
 */
const PRIVATE = "user:";

export function isPrivateRealm(realm: string): boolean {
  return realm.startsWith(PRIVATE);
}

/** What is not shown, or only turns around what is. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Whether a realm looks like a private one to people and is none. */
export function imitatesPrivate(realm: string): boolean {
  if (isPrivateRealm(realm)) return realm.length === PRIVATE.length;
  return /^\s*user\s*:/iu.test(realm.normalize("NFKC").replace(UNSEEN, ""));
}

/** The realms that a caller may see and change. */
export type RealmRights = {
  /** The only private realm that is theirs; undefined for those who may see all. */
  readonly own: string | undefined;
};

export const ALL_REALMS: RealmRights = { own: undefined };

export function realmRights(caller: Asker): RealmRights {
  return ownerFilterWithin(caller) === undefined ? ALL_REALMS : { own: `${PRIVATE}${ownerOf(caller)}` };
}

export function maySee({ own }: RealmRights, realm: string): boolean {
  return own === undefined || realm === own || !isPrivateRealm(realm);
}

/** Throws `forbidden` for a realm that is somebody else's. */
export function checkRealm(rights: RealmRights, realm: string): void {
  if (maySee(rights, realm)) return;
  throw new EngineError("forbidden", `the realm ${JSON.stringify(realm)} is its user's and admins' alone`);
}

/** The same as a condition of SQL on the column `realm`. */
export function realmCondition({ own }: RealmRights): { sql: string; values: string[] } {
  if (own === undefined) return { sql: "", values: [] };
  return { sql: ` AND (substr(realm, 1, ${PRIVATE.length}) <> ? OR realm = ?)`, values: [PRIVATE, own] };
}
