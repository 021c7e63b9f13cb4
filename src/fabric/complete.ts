import { NOW, type RecordValue } from "../db/records.ts";
import { Batch } from "./batch.ts";
import { JOB_COLUMNS, toJob, type Hold, type Job } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { boundedJson, leaseLost } from "./refusals.ts";

type Completion = { hold: Hold; result: string };

const ROWS_PER_STATEMENT = 64;

/** Ends jobs well, many with one statement when many end at once. */
export class Complete {
  readonly #ports: FabricPorts;
  readonly #updates: Batch<Completion, Job | undefined>;

  constructor(ports: FabricPorts) {
    this.#ports = ports;
    this.#updates = new Batch((completions) => this.#update(completions), ROWS_PER_STATEMENT);
  }

  /**
   * Resolves when it is durable that the job is done. The same holder may say so again, for it may not have heard the
   * answer: the first result stays. Rejects with `lease_lost`, `body_too_large`.
   */
  async complete(hold: Hold, result: unknown): Promise<Job> {
    const text = boundedJson(result, FABRIC_LIMITS.resultBytes, "the result");
    const job = await this.#updates.add({ hold, result: text });
    if (job === undefined) throw leaseLost(hold);
    return job;
  }

  async #update(completions: readonly Completion[]): Promise<(Job | undefined)[]> {
    const values = completions.flatMap(({ hold, result }): RecordValue[] => [
      hold.jobId,
      hold.holder,
      hold.fence,
      result,
    ]);
    const rows = await this.#ports.records.write({
      sql:
        "WITH ended (ended_id, by_holder, by_fence, with_result) AS (VALUES " +
        `${completions.map(() => "(?, ?, CAST(? AS bigint), ?)").join(", ")}) ` +
        "UPDATE jobs SET status = 'done', result = CASE WHEN status = 'done' THEN result ELSE with_result END, " +
        "finished_at_ms = coalesce(finished_at_ms, ?), updated_at_ms = ?, lease_expires_at_ms = NULL, error = NULL " +
        "FROM ended WHERE id = ended_id AND holder = by_holder AND fence = by_fence " +
        "AND (status = 'done' OR (status = 'leased' AND lease_expires_at_ms > ?)) " +
        `RETURNING ${JOB_COLUMNS}`,
      values: [...values, NOW, NOW, NOW],
    });
    const done = new Map(rows.map((row) => [String(row["id"]), toJob(row)]));
    return completions.map(({ hold }) => {
      const job = done.get(hold.jobId);
      return job?.fence === hold.fence && job.holder === hold.holder ? job : undefined;
    });
  }
}
