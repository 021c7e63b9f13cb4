import { EngineError } from "../core/errors.ts";
import { heldValues, IS_HELD, JOB_COLUMNS, toJob, type Hold, type Job } from "./job.ts";
import type { FabricPorts } from "./ports.ts";
import { leaseLost } from "./refusals.ts";

/** The job, for whoever holds it at this moment: before something is given to its holder alone. Rejects with `lease_lost`. */
export async function held({ records }: Pick<FabricPorts, "records">, hold: Hold): Promise<Job> {
  const [row] = await records.rows(`SELECT ${JOB_COLUMNS} FROM jobs WHERE ${IS_HELD}`, heldValues(hold));
  if (row === undefined) throw leaseLost(hold);
  return toJob(row);
}

/** Throws `not_found` for a credential that the job does not name: its holder may have no other. */
export function checkNames({ id, credentials }: Pick<Job, "id" | "credentials">, credentialId: string): void {
  if (credentials.includes(credentialId)) return;
  throw new EngineError("not_found", `job ${id} names no credential ${credentialId}`);
}
