import { LIMITS } from "../core/limits.ts";
import { foldName } from "../core/names.ts";
import { lowerBound, upperBound } from "../format/columns/text-bounds.ts";
import { nanosecondName } from "../format/parquet-times.ts";
import { TIME_COLUMN, type ColumnSpec, type ColumnStats } from "../format/types.ts";
import { quoteIdentifier, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import type { ParquetLayout } from "../io/duckdb/parquet.ts";
import { buildFilters, type TextProfile } from "./merge-filters.ts";
import { checksumOfFile } from "./merge-input.ts";
import { readFooter, type FooterColumn } from "./merge-footer.ts";
import type { ColumnProfile } from "./merge-profile.ts";
import type { MergedFile } from "./merge.ts";

/**
 * Statistics and filters of a finished file: what sealing makes of a fresh extent. What the rows held is taken from the
 * profile of those who saw them go by, where there is one, and what the file says of itself from its footer; the rest is
 * read from the file again.
 */
export async function describeFile(
  duckdb: DuckDb,
  connection: Connection,
  path: string,
  { layout, profile }: { layout: ParquetLayout; profile?: readonly ColumnProfile[] },
): Promise<MergedFile> {
  const columns = layout.columns.map((column) => ({ ...column, isFiner: layout.finer.has(column.name) }));
  const { checksum, sizeBytes } = checksumOfFile(path);
  const from = `read_parquet(${quoteText(path)})`;
  const ask = (sql: string): Promise<(string | null)[]> => firstRow(duckdb, connection, `SELECT ${sql} FROM ${from}`);
  const rows = Number((await ask("count(*)"))[0]);
  const facts: ColumnFacts[] = [];
  if (profile === undefined) {
    for (let i = 0; i < columns.length; i += COLUMNS_AT_ONCE) {
      facts.push(...(await factsOf(ask, columns.slice(i, i + COLUMNS_AT_ONCE), rows)));
    }
  } else {
    const footer = await readFooter(duckdb, connection, path, columns);
    facts.push(...(await knownFacts(ask, { rows, footer, profile })));
  }
  const time = facts.find(({ stats }) => foldName(stats.name) === TIME_COLUMN)?.stats;
  if (time?.min === undefined || time.max === undefined) throw new Error("a merged file has no times");
  const profiles = facts.flatMap(({ text }) => (text === undefined ? [] : [text]));
  const filters = await buildFilters({ duckdb, connection, from, sizeBytes }, profiles);
  const stats = facts.map((fact) => fact.stats);
  const times = { minAtNs: BigInt(time.min), maxAtNs: BigInt(time.max) };
  const finer = columns.filter(({ isFiner }) => isFiner).map(({ name }) => name);
  const nanosecondColumns = finer.length === 0 ? {} : { nanosecondColumns: finer };
  return { path, rows, sizeBytes, checksum, ...times, stats, ...nanosecondColumns, filters };
}

/** A column of the file; of times that are finer than microseconds it has nanoseconds as well. */
type FileColumn = ColumnSpec & { isFiner: boolean };

/** The column of the file that has the values of one of the table's. */
function columnInFile({ name, isFiner }: FileColumn): string {
  return quoteIdentifier(isFiner ? nanosecondName(name) : name);
}

/** Bounds how much text the aggregates of one query hold. */
export const COLUMNS_AT_ONCE = 64;
/** Where the estimate says that there are no more, they are counted: it may be off by a fifth. */
const COUNTED_DISTINCT = 1_000;

type Ask = (select: string) => Promise<(string | null)[]>;
type ColumnFacts = { stats: ColumnStats; text: TextProfile | undefined };

async function factsOf(ask: Ask, columns: readonly FileColumn[], rows: number): Promise<ColumnFacts[]> {
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

function aggregatesOf(spec: FileColumn): string {
  const { type } = spec;
  const column = columnInFile(spec);
  const counts = `count(${column}), approx_count_distinct(${column})`;
  const spaced = `count(*) FILTER (contains(${column}, ' '))`;
  const texts = `CAST(sum(strlen(${column})) AS BIGINT), ${spaced}`;
  return `${counts}, ${boundsInFile(spec)}, ${type.kind === "string" ? texts : "NULL::BIGINT, NULL::BIGINT"}`;
}

function boundsInFile(spec: FileColumn): string {
  return boundsSql(columnInFile(spec), spec.type, spec.isFiner ? "nanoseconds" : "microseconds");
}

/** Minimum and maximum of a column, as SQL of two texts or numbers; those of times are nanoseconds, whatever it has. */
export function boundsSql(column: string, type: ColumnSpec["type"], times: "nanoseconds" | "microseconds"): string {
  switch (type.kind) {
    case "bool":
    case "int":
    case "long":
    case "real":
      return `CAST(min(${column}) AS VARCHAR), CAST(max(${column}) AS VARCHAR)`;
    case "timestamp":
      // The footer knows both, as long as nothing is asked of the column itself.
      return times === "nanoseconds"
        ? `epoch_ns(min(${column})), epoch_ns(max(${column}))`
        : `epoch_us(min(${column})) * 1000, epoch_us(max(${column})) * 1000`;
    case "string":
      return `min(${column}), max(${column})`;
    case "dynamic":
    case "vector":
      return "NULL::BIGINT, NULL::BIGINT";
  }
}

type Known = { rows: number; footer: readonly FooterColumn<FileColumn>[]; profile: readonly ColumnProfile[] };

/** The facts of all columns, of which only those are asked for that the footer leaves out. */
async function knownFacts(ask: Ask, { rows, footer, profile }: Known): Promise<ColumnFacts[]> {
  const facts: ColumnFacts[] = [];
  for (const [i, { spec, nullCount, bounds }] of footer.entries()) {
    const { name, type } = spec;
    const nulls = nullCount ?? rows - Number((await ask(`count(${quoteIdentifier(name)})`))[0]);
    const stats: ColumnStats = { name, nullCount: nulls };
    const values = rows - nulls;
    const seen = profile[i];
    if (values > 0) {
      stats.distinct = Math.min(Math.max(seen?.distinct ?? 1, 1), values);
      const isOrdered = type.kind !== "dynamic" && type.kind !== "vector";
      const [min, max] = bounds ?? (isOrdered ? await ask(boundsInFile(spec)) : []);
      Object.assign(stats, boundsOf(type.kind, min ?? undefined, max ?? undefined));
    }
    facts.push({ stats, text: values > 0 && seen?.text !== undefined ? shareOf(seen.text, values) : undefined });
  }
  return facts;
}

/** The profile of as many values as the file has, if extents had rows in other files too. */
function shareOf(text: TextProfile, values: number): TextProfile {
  const share = values / Math.max(text.values, 1);
  const [textBytes, spaced] = [text.textBytes * share, text.spaced * share];
  return { ...text, values, distinct: Math.min(text.distinct, values), textBytes, spaced };
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

/** The statistics that an extent's record has of such a minimum and maximum. */
export function boundsOf(
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
