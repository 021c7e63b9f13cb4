import type { Asker } from "../src/auth/owner.ts";
import { EngineError } from "../src/core/errors.ts";
import type { Credential, Credentials } from "../src/credentials/credentials.ts";
import type { EngineKeys } from "../src/knowledge/agent/engines/keys.ts";

/** On whose behalf the engine of the agent asks: anybody's, so it has what is shared and nothing else. */
export const ANYBODY: Asker = { subject: "engine", kind: "internal", role: "read", databases: undefined };

/** The keys of engines are credentials that their owners share. */
export function agentKeys(credentials: Pick<Credentials, "get" | "reveal">): EngineKeys {
  return {
    find: (id, caller) => unlessMissing(credentials.get(id, caller)),
    async reveal(id) {
      const found = await unlessMissing(credentials.reveal(id, ANYBODY));
      if (found === undefined) return undefined;
      const { value, credential } = found;
      return mayBeKey(credential) && value.kind === "api_key" ? value.key : undefined;
    },
  };
}

/** Whether everybody's questions may use the credential as the key of an engine. */
export function mayBeKey({ kind, shared, databases }: Pick<Credential, "kind" | "shared" | "databases">): boolean {
  return kind === "api_key" && shared && databases === undefined;
}

async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof EngineError && error.code === "not_found") return undefined;
    throw error;
  }
}
