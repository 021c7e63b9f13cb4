import { NOW, type RecordStore, type Statement } from "../../../db/records.ts";
import type { Hold } from "../../../fabric/job.ts";
import type { EngineFields } from "../../agent/engines/fields.ts";
import type { DreamState } from "../session.ts";

/** A dream on a worker between two of its requests. */
export type RemoteDream = {
  dream: DreamState;
  /** As it was chosen when the dream began. */
  engine: EngineFields;
  /** The question that was answered last: its answer may be sent again. */
  applied?: string | undefined;
};

export type StoredDream = RemoteDream & {
  /** Counts the changes, so that two requests at once do not both go on from the same place. */
  version: number;
  /** Since the dream began, by the database's clock. */
  ageMs: number;
};

/**
 * Dreams on workers, a row for each job: any server answers the next request. A row belongs to one fence; whoever has the
 * job next begins anew.
 */
export class RemoteDreamStore {
  readonly #records: RecordStore;

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /** Undefined where this hold has not begun. */
  async load({ jobId, fence }: Hold): Promise<StoredDream | undefined> {
    const sql =
      "SELECT state, version, CAST(? AS bigint) - started_at_ms AS age_ms FROM dreaming_remote WHERE job_id = ? AND fence = ?";
    const [row] = await this.#records.rows(sql, [NOW, jobId, fence]);
    if (row === undefined) return undefined;
    const stored = JSON.parse(String(row["state"])) as RemoteDream;
    return { ...stored, version: Number(row["version"]), ageMs: Number(row["age_ms"]) };
  }

  /** For the transaction that begins it; another request of the same hold may be first. */
  beginStatement({ jobId, fence }: Hold, state: RemoteDream): Statement {
    const sql =
      "INSERT INTO dreaming_remote (job_id, fence, version, started_at_ms, state) VALUES (?, ?, 1, ?, ?) " +
      "ON CONFLICT (job_id) DO UPDATE SET fence = excluded.fence, version = 1, started_at_ms = excluded.started_at_ms, " +
      "state = excluded.state WHERE dreaming_remote.fence < excluded.fence RETURNING job_id";
    return { sql, values: [jobId, fence, NOW, JSON.stringify(state)], mustReturn: 1 };
  }

  /** For a transaction that makes sure of the hold. */
  saveStatement({ jobId, fence }: Hold, version: number, state: RemoteDream): Statement {
    const sql =
      "UPDATE dreaming_remote SET version = version + 1, state = ? WHERE job_id = ? AND fence = ? AND version = ? " +
      "RETURNING job_id";
    return { sql, values: [JSON.stringify(state), jobId, fence, version], mustReturn: 1 };
  }

  /** For the transaction that ends the run. */
  endStatement({ jobId, fence }: Hold, version: number): Statement {
    const sql = "DELETE FROM dreaming_remote WHERE job_id = ? AND fence = ? AND version = ? RETURNING job_id";
    return { sql, values: [jobId, fence, version], mustReturn: 1 };
  }
}

/** Deletes what is left of dreams whose hold is over. */
export function sweepRemoteStatement(): Statement {
  const sql =
    "DELETE FROM dreaming_remote WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = dreaming_remote.job_id AND " +
    "j.status = 'leased' AND j.fence = dreaming_remote.fence)";
  return { sql };
}
