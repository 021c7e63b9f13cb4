import { EngineError } from "../../core/errors.ts";
import type { CredentialDirectory, KnownCredential } from "./directory.ts";

/** A store that everybody sees all of. */
export function directoryOf(known: readonly KnownCredential[]): CredentialDirectory {
  return {
    list: async () => [...known],
    get: async (id) => {
      const found = known.find((one) => one.id === id);
      if (found === undefined) throw new EngineError("not_found", `there is no credential ${JSON.stringify(id)}`);
      return found;
    },
  };
}

export const noCredentials = directoryOf([]);
