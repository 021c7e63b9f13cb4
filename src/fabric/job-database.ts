import { checkMayUse } from "../auth/caller.ts";
import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import type { Job } from "./job.ts";

/**
 * For kinds whose payload names a database. Who may enqueue a job, and who sees it, goes by the job's own database: it
 * must not be about another one. Throws `bad_request_body`, or `forbidden` for one that is not the owner's.
 */
export function checkJobDatabase({ database, owner }: Pick<Job, "database" | "owner">, named: string): void {
  checkMayUse(owner, named);
  if (database === foldName(named)) return;
  throw new EngineError("bad_request_body", `payload.database: the job is about ${JSON.stringify(database ?? null)}`);
}
