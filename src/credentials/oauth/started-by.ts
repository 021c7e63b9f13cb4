import { scopeIncludes, type CallerKind, type Scope } from "../../auth/caller.ts";
import { mayReachWithin, type Asker } from "../../auth/owner.ts";

/** Who started a flow: the credential that comes of it is theirs, and for their databases. */
export type StartedBy = { owner: string; subject: string; kind: CallerKind; databases: Scope };

/** Whether the caller may ask what became of the flow. */
export function isTheirs({ owner, databases }: StartedBy, caller: Asker): boolean {
  return mayReachWithin(caller, owner) && scopeIncludes(caller.databases, databases);
}
