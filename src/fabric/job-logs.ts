import { NOW, type RecordRow, type RecordStore, type RecordValue } from "../db/records.ts";
import { EngineError } from "../core/errors.ts";
import { LOG_LEVELS, type LogLevel, type LogLine } from "./handler.ts";
import { heldValues, IS_HELD, textOf, type Hold } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { boundedText, leaseLost } from "./refusals.ts";

/** A line as it was kept. */
export type KeptLine = LogLine & {
  /** From 1, in the order in which the lines came. */
  seq: number;
  atMs: number;
};

/** Another append of the same holder may come first. */
const ATTEMPTS = 20;

/**
 * What handlers say while they run, kept beside the job for its operator, over all attempts. Of a job that says much the
 * first lines are kept, which say how it began, and the newest, which say how it ended: `FABRIC_LIMITS.log`. What lay
 * between is forgotten, and missing numbers show it.
 */
export class JobLogs {
  readonly #records: RecordStore;

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /**
   * Keeps lines in their order, each cut to `FABRIC_LIMITS.log.lineChars`; all or none. Rejects with `lease_lost`, and
   * with `bad_request_body` for more than `FABRIC_LIMITS.log.linesAtOnce`; another error than an `EngineError` leaves
   * open whether they were kept.
   */
  async append(hold: Hold, lines: readonly LogLine[]): Promise<void> {
    const { linesAtOnce } = FABRIC_LIMITS.log;
    if (lines.length > linesAtOnce) {
      throw new EngineError("bad_request_body", `lines: at most ${linesAtOnce} lines go into the log at once`);
    }
    if (lines.length === 0) return;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      if (await this.#appendAfter(hold, await this.#newestSeq(hold.jobId), lines)) return;
    }
    throw new EngineError("unavailable", `too many write the log of job ${hold.jobId} at once: try again`);
  }

  /** The oldest lines with a greater number, in their order. */
  async read(jobId: string, { afterSeq, limit }: { afterSeq: number; limit: number }): Promise<KeptLine[]> {
    const rows = await this.#records.rows(
      "SELECT seq, at_ms, level, message FROM job_logs WHERE job_id = ? AND seq > ? ORDER BY seq LIMIT ?",
      [jobId, afterSeq, limit],
    );
    return rows.map(toLine);
  }

  async #newestSeq(jobId: string): Promise<number> {
    const [row] = await this.#records.rows("SELECT max(seq) AS newest FROM job_logs WHERE job_id = ?", [jobId]);
    return Number(row?.["newest"] ?? 0);
  }

  /** False when the newest line is another one by now. */
  async #appendAfter(hold: Hold, newestSeq: number, lines: readonly LogLine[]): Promise<boolean> {
    const { jobId } = hold;
    const { firstLines, newestLines, lineChars } = FABRIC_LIMITS.log;
    const given = lines.flatMap(({ level, message }, i): RecordValue[] => [
      newestSeq + 1 + i,
      level,
      boundedText(message, lineChars),
    ]);
    const outcome = await this.#records.transact([
      {
        sql: `UPDATE jobs SET updated_at_ms = ? WHERE ${IS_HELD} RETURNING id`,
        values: [NOW, ...heldValues(hold)],
        mustReturn: 1,
      },
      {
        // Statements may run before it is known what the one before them returned: this one asks again.
        sql:
          "INSERT INTO job_logs (job_id, seq, at_ms, level, message) SELECT id, column1, ?, column2, column3 FROM jobs " +
          `CROSS JOIN (VALUES ${lines.map(() => "(CAST(? AS bigint), ?, ?)").join(", ")}) AS given WHERE ${IS_HELD} ` +
          "AND NOT EXISTS (SELECT 1 FROM job_logs WHERE job_id = ? AND seq > ?) ON CONFLICT DO NOTHING RETURNING seq",
        values: [NOW, ...given, ...heldValues(hold), jobId, newestSeq],
        mustReturn: lines.length,
      },
      {
        sql: "DELETE FROM job_logs WHERE job_id = ? AND seq > ? AND seq <= ?",
        values: [jobId, firstLines, newestSeq + lines.length - newestLines],
      },
    ]);
    if (!outcome.done && outcome.failed === 0) throw leaseLost(hold);
    return outcome.done;
  }
}

function toLine(row: RecordRow): KeptLine {
  return { seq: Number(row["seq"]), atMs: Number(row["at_ms"]), level: levelOf(row), message: textOf(row, "message") };
}

/** A word that this program alone wrote. */
function levelOf({ level }: RecordRow): LogLevel {
  const known = LOG_LEVELS.find((one) => one === level);
  if (known === undefined) throw new Error(`the level of a stored line is ${String(level)}`);
  return known;
}
