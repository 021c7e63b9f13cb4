import type { Scope } from "../../../auth/caller.ts";
import type { Asker } from "../../../auth/owner.ts";

/** The stored credentials, as engines need them. */
export type EngineKeys = {
  /** What a credential is, without its value; undefined for one that the caller may not use, or that is not there. */
  find(id: string, caller: Asker): Promise<StoredKey | undefined>;
  /** The key of one that everybody's questions may use; undefined where it is not, or not any more, such a one. */
  reveal(id: string): Promise<string | undefined>;
};

export type StoredKey = { kind: string; shared: boolean; databases: Scope };
