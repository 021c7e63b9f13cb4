import { LIMITS } from "../core/limits.ts";
import { foldName } from "../core/names.ts";
import { lowerBound, upperBound } from "../format/columns/text-bounds.ts";
import { TIME_COLUMN, type ColumnSpec, type ColumnStats } from "../format/types.ts";
import { quoteIdentifier, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { buildFilters, type TextProfile } from "./merge-filters.ts";
import { checksumOfFile } from "./merge-input.ts";
import type { MergedFile } from "./merge.ts";

/** Statistics and filters of a finished file: what sealing makes of a fresh extent, by reading the file again. */
export async function describeFile(
  duckdb: DuckDb,
  connection: Connection,
  path: string,
  columns: readonly ColumnSpec[],
): Promise<MergedFile> {
  const { checksum, sizeBytes } = checksumOfFile(path);
  const from = `read_parquet(${quoteText(path)})`;
  const ask = (sql: string): Promise<(string | null)[]> => firstRow(duckdb, connection, `SELECT ${sql} FROM ${from}`);
  const rows = Number((await ask("count(*)"))[0]);
  const facts: ColumnFacts[] = [];
  for (let i = 0; i < columns.length; i += COLUMNS_AT_ONCE) {
    facts.push(...(await factsOf(ask, columns.slice(i, i + COLUMNS_AT_ONCE), rows)));
  }
  const time = facts.find(({ stats }) => foldName(stats.name) === TIME_COLUMN)?.stats;
  if (time?.min === undefined || time.max === undefined) throw new Error("a merged file has no times");
  const profiles = facts.flatMap(({ text }) => (text === undefined ? [] : [text]));
  const filters = await buildFilters({ duckdb, connection, from, sizeBytes }, profiles);
  const stats = facts.map((fact) => fact.stats);
  return { path, rows, sizeBytes, checksum, minAtNs: BigInt(time.min), maxAtNs: BigInt(time.max), stats, filters };
}

/** Bounds how much text the aggregates of one query hold. */
const COLUMNS_AT_ONCE = 64;
/** Where the estimate says that there are no more, they are counted: it may be off by a fifth. */
const COUNTED_DISTINCT = 1_000;

type Ask = (select: string) => Promise<(string | null)[]>;
type ColumnFacts = { stats: ColumnStats; text: TextProfile | undefined };

async function factsOf(ask: Ask, columns: readonly ColumnSpec[], rows: number): Promise<ColumnFacts[]> {
  const answers = await ask(columns.map(aggregatesOf).join(", "));
  const facts = columns.map((column, i) => readFacts(column, answers.slice(i * ITEMS, (i + 1) * ITEMS), rows));
  const few = facts.filter(({ stats: { distinct } }) => distinct !== undefined && distinct <= COUNTED_DISTINCT);
  if (few.length === 0) return facts;
  const counts = await ask(few.map(({ stats }) => `count(DISTINCT ${quoteIdentifier(stats.name)})`).join(", "));
  for (const [i, { stats, text }] of few.entries()) {
    stats.distinct = Number(counts[i]);
    if (text !== undefined) text.distinct = stats.distinct;
  }
  return facts;
}

/** Aggregates of each column, in the order in which `readFacts` reads them. */
const ITEMS = 6;

function aggregatesOf({ name, type }: ColumnSpec): string {
  const column = quoteIdentifier(name);
  const counts = `count(${column}), approx_count_distinct(${column})`;
  switch (type.kind) {
    case "bool":
    case "int":
    case "long":
    case "real":
      return `${counts}, CAST(min(${column}) AS VARCHAR), CAST(max(${column}) AS VARCHAR), NULL::BIGINT, NULL::BIGINT`;
    case "timestamp":
      return `${counts}, epoch_ns(min(${column})), epoch_ns(max(${column})), NULL::BIGINT, NULL::BIGINT`;
    case "string": {
      const spaced = `count(*) FILTER (contains(${column}, ' '))`;
      return `${counts}, min(${column}), max(${column}), CAST(sum(strlen(${column})) AS BIGINT), ${spaced}`;
    }
    case "dynamic":
    case "vector":
      return `${counts}, NULL::BIGINT, NULL::BIGINT, NULL::BIGINT, NULL::BIGINT`;
  }
}

function readFacts({ name, type }: ColumnSpec, answers: readonly (string | null)[], rows: number): ColumnFacts {
  const [count, approximate, min, max, textBytes, spaced] = answers;
  const values = Number(count);
  const stats: ColumnStats = { name, nullCount: rows - values };
  if (values === 0) return { stats, text: undefined };
  const distinct = Math.min(Math.max(Number(approximate), 1), values);
  stats.distinct = distinct;
  const bounds = [min, max].map((bound) => (typeof bound === "string" ? bound : undefined));
  Object.assign(stats, boundsOf(type.kind, bounds[0], bounds[1]));
  if (type.kind !== "string") return { stats, text: undefined };
  return { stats, text: { name, values, distinct, textBytes: Number(textBytes), spaced: Number(spaced) } };
}

function boundsOf(
  kind: ColumnSpec["type"]["kind"],
  min: string | undefined,
  max: string | undefined,
): Pick<ColumnStats, "min" | "max"> {
  if (min === undefined || max === undefined) return {};
  if (kind === "real") return { ...realBound("min", Number(min)), ...realBound("max", Number(max)) };
  if (kind !== "string") return { min, max };
  const upper = upperBound(Buffer.from(max), LIMITS.stringStatBytes);
  return { min: lowerBound(Buffer.from(min), LIMITS.stringStatBytes), ...(upper === undefined ? {} : { max: upper }) };
}

/** What is no finite number bounds nothing that JSON can write; DuckDB orders NaN last, so a minimum that is one is alone. */
function realBound(end: "min" | "max", value: number): Partial<Pick<ColumnStats, "min" | "max">> {
  return Number.isFinite(value) ? { [end]: JSON.stringify(value) } : {};
}

async function firstRow(duckdb: DuckDb, connection: Connection, sql: string): Promise<(string | null)[]> {
  const [row] = await runSql(duckdb, connection, sql);
  if (row === undefined) throw new Error("an aggregate gave no row");
  return row;
}
