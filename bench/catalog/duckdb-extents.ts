import { DuckDBInstance, type DuckDBAppender } from "@duckdb/node-api";
import type { NewExtent } from "../../src/catalog/catalog.ts";

/** Records of extents in a table of DuckDB's own, with the statistics of one column: what planning is compared with. */
export type DuckDbExtents = {
  append: (extents: readonly NewExtent[]) => Promise<void>;
  /** Keys of extents with rows from that time on in which `c3` may be so large. */
  plan: (minNs: bigint, atLeast: bigint) => Promise<string[]>;
  /** How many there are, each made an object. */
  list: () => Promise<number>;
  close: () => void;
};

const CREATE = `CREATE TABLE IF NOT EXISTS extents (
  id VARCHAR, key VARCHAR, format VARCHAR, rows BIGINT, size_bytes BIGINT, checksum VARCHAR,
  min_at_ns BIGINT, max_at_ns BIGINT, c3_max BIGINT)`;
const PLAN = "SELECT key FROM extents WHERE max_at_ns >= $1 AND c3_max >= $2";

/** Opens the file, and makes the table where there is none. */
export async function openDuckDbExtents(path: string): Promise<DuckDbExtents> {
  const instance = await DuckDBInstance.create(path);
  const connection = await instance.connect();
  await connection.run(CREATE);
  const planning = await connection.prepare(PLAN);
  return {
    append: async (extents) => {
      const appender = await connection.createAppender("extents");
      for (const extent of extents) appendRecord(appender, extent);
      appender.closeSync();
    },
    plan: async (minNs, atLeast) => {
      planning.bindBigInt(1, minNs);
      planning.bindBigInt(2, atLeast);
      return (await planning.runAndReadAll()).getRows().map(([key]) => String(key));
    },
    list: async () => (await connection.runAndReadAll("SELECT * FROM extents")).getRowObjects().length,
    close: () => {
      planning.destroySync();
      connection.closeSync();
      instance.closeSync();
    },
  };
}

function appendRecord(appender: DuckDBAppender, extent: NewExtent): void {
  for (const text of [extent.id, extent.key, extent.format]) appender.appendVarchar(text);
  for (const count of [extent.rows, extent.sizeBytes]) appender.appendBigInt(BigInt(count));
  appender.appendVarchar(extent.checksum);
  for (const ns of [extent.minAtNs, extent.maxAtNs]) appender.appendBigInt(ns);
  const c3 = extent.stats.find(({ name }) => name === "c3");
  appender.appendBigInt(BigInt(c3?.max ?? 0));
  appender.endRow();
}
