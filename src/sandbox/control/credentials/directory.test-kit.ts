import { mayUse } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import type { CredentialDirectory, KnownCredential } from "./directory.ts";

type Stored = Omit<KnownCredential, "owner"> & { owner?: string; shared?: boolean };

/** A store with these; ann's, where it is not said whose they are. */
export function directoryOf(stored: readonly Stored[]): CredentialDirectory {
  const all = stored.map(({ owner = "ann", shared = false, ...rest }) => ({ ...rest, owner, shared }));
  return {
    list: async (caller) => all.filter((one) => mayUse(caller, one)),
    get: async (id, caller) => {
      const found = all.find((one) => one.id === id && mayUse(caller, one));
      if (found === undefined) throw new EngineError("not_found", `there is no credential ${JSON.stringify(id)}`);
      return found;
    },
  };
}

export const noCredentials = directoryOf([]);
