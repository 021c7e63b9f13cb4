import type { Asker } from "../../../auth/owner.ts";

/** What is known of a stored credential beside its secret. */
export type KnownCredential = {
  id: string;
  /** Not of one alone. */
  label: string;
  kind: string;
  /** As its owner gave it. `hosts`: the names of hosts that it is for. */
  metadata: Readonly<Record<string, unknown>>;
  /** See `auth/owner.ts`. */
  owner: string;
};

/** The store of credentials, without their secrets. Rejects with `not_configured` where the operator set no key. */
export interface CredentialDirectory {
  /** Rejects with `not_found`, also for one that the caller may not use. */
  get(id: string, caller: Asker): Promise<KnownCredential>;
  /** Those that the caller may use. */
  list(caller: Asker): Promise<KnownCredential[]>;
}
