import { rm } from "node:fs/promises";
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { quoteIdentifier, quoteText } from "../../src/io/duckdb/duckdb.ts";
import { duckdbReadJson } from "../support/dialects.ts";
import type { CopyJob, CopyReply } from "./copy.ts";

/** The process of DuckDB's COPY; see `copy.ts`. */

const TABLE = "rows_to_copy";

const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
const connection = await instance.connect();
let loaded: string | undefined;

async function copy(job: CopyJob): Promise<{ seconds: number; cpuSeconds: number }> {
  const from = await sourceOf(connection, job);
  const columns = job.columns.map(({ name, type }) => {
    const column = quoteIdentifier(name);
    // What the extents keep.
    return type.kind === "timestamp" ? `CAST(${column} AS TIMESTAMP_NS) AS ${column}` : column;
  });
  const options = `FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${job.rowGroupRows}`;
  await rm(job.target, { force: true });
  const cpuBefore = process.cpuUsage();
  const startedMs = systemClock.monotonicMs();
  await connection.run(
    `COPY (SELECT ${columns.join(", ")} FROM ${from} ORDER BY "at") TO ${quoteText(job.target)} (${options})`,
  );
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { seconds, cpuSeconds: (user + system) / 1e6 };
}

/** What to select from. The table is loaded before the time counts. */
async function sourceOf(duckdb: DuckDBConnection, { source, columns }: CopyJob): Promise<string> {
  switch (source.kind) {
    case "parquet":
      return `read_parquet([${source.paths.map(quoteText).join(", ")}])`;
    case "ndjson":
      return duckdbReadJson(source.path, columns);
    case "table":
      if (loaded !== source.path) {
        const from = duckdbReadJson(source.path, columns);
        const at = `CAST("at" AS TIMESTAMP_NS) AS "at"`;
        await duckdb.run(`CREATE OR REPLACE TABLE ${TABLE} AS SELECT * REPLACE (${at}) FROM ${from}`);
        loaded = source.path;
      }
      return TABLE;
  }
}

process.on("message", (job: CopyJob) => {
  copy(job)
    .then((run): CopyReply => ({ ok: true, ...run }))
    .catch((error: unknown): CopyReply => ({ ok: false, reason: messageOf(error) }))
    .then((reply) => process.send?.(reply))
    .catch((error: unknown) => console.error(error));
});
process.once("disconnect", () => {
  connection.closeSync();
  instance.closeSync();
});
