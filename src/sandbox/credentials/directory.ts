import type { JobOwner } from "../../fabric/job.ts";

/** What is known of a stored credential beside its secret. */
export type KnownCredential = {
  id: string;
  /** Not of one alone. */
  label: string;
  kind: string;
  /** As its owner gave it. `hosts`: the names of hosts that it is for. */
  metadata: Readonly<Record<string, unknown>>;
};

/** The store of credentials, without their secrets. Rejects with `not_configured` where the operator set no key. */
export interface CredentialDirectory {
  /** Rejects with `not_found`, also for one that the caller may not see. */
  get(id: string, caller: Pick<JobOwner, "databases">): Promise<KnownCredential>;
  /** Those that the caller may see. */
  list(caller: Pick<JobOwner, "databases">): Promise<KnownCredential[]>;
}
