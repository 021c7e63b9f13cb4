import { mayReach, ownerFilter, type Asker } from "../../../auth/owner.ts";
import type { RecordStore, RecordValue } from "../../../catalog/records.ts";
import type { SandboxState } from "../../contract/states.ts";
import { sandboxNotFound } from "../refusals.ts";
import { labelInColumn, SANDBOX_COLUMNS, toSandbox, type Sandbox } from "./sandbox.ts";

/** The sandbox, for its owner and for admins. Rejects with `sandbox_not_found`, also for one that was deleted. */
export async function getSandbox(records: RecordStore, id: string, asker: Asker): Promise<Sandbox> {
  const sql = `SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE id = ? AND deleted_at_ms IS NULL`;
  const [row] = id.includes("\0") ? [] : await records.rows(sql, [id]);
  const found = row === undefined ? undefined : toSandbox(row);
  if (found === undefined || !mayReach(asker, found.tenant)) throw sandboxNotFound(id);
  return found;
}

export type SandboxFilter = {
  state?: SandboxState | undefined;
  provider?: string | undefined;
  /** All of them. */
  labels?: readonly (readonly [name: string, value: string])[];
  limit: number;
  /** The id of the last one of the page before. */
  before?: string | undefined;
};

/** Newest first; those that the asker may see. */
export async function listSandboxes(records: RecordStore, filter: SandboxFilter, asker: Asker): Promise<Sandbox[]> {
  const conditions = ["deleted_at_ms IS NULL"];
  const values: RecordValue[] = [];
  const and = (condition: string, ...given: readonly RecordValue[]) => {
    conditions.push(condition);
    values.push(...given);
  };
  const owner = ownerFilter(asker);
  if (owner !== undefined) and("tenant = ?", owner);
  if (filter.state !== undefined) and("state = ?", filter.state);
  if (filter.provider !== undefined) and("agent_provider = ?", filter.provider);
  if (filter.before !== undefined) and("id < ?", filter.before);
  // Both databases know no other search that minds upper and lower case.
  for (const label of filter.labels ?? []) and("replace(labels, ?, '') <> labels", labelInColumn(label));
  const sql = `SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT ?`;
  return (await records.rows(sql, [...values, filter.limit])).map(toSandbox);
}
