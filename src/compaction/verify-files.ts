import { messageOf } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import { TIME_COLUMN, type ColumnStats, type ColumnType } from "../format/types.ts";
import { quoteIdentifier, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { registerTlmScan, type TlmScans } from "../io/duckdb/tlm-scan.ts";
import { boundsOf, boundsSql, COLUMNS_AT_ONCE } from "./merge-describe.ts";
import { settingsFor } from "./merge-files.ts";
import { checksumOfFile, openInputs, type MergeSource } from "./merge-input.ts";
import { problemOf, PROBLEMS_PER_EXTENT, type ExtentProblem, type LocalVerified, type VerifyTask } from "./verify.ts";

/** Verifies extents in this process: see `verify.ts`. Throws only for what says nothing about an extent. */
export async function verifyFiles(duckdb: DuckDb, task: VerifyTask): Promise<ExtentProblem[]> {
  const database = await duckdb.open(":memory:");
  const connection = await duckdb.connect(database);
  try {
    for (const setting of settingsFor(task)) await duckdb.query(connection, `SET GLOBAL ${setting}`);
    const reader = { duckdb, connection, scans: registerTlmScan(duckdb, connection), columns: task.columns };
    const problems: ExtentProblem[] = [];
    for (const extent of task.extents) {
      const found = await problemsOf(reader, extent);
      problems.push(...found.slice(0, PROBLEMS_PER_EXTENT).map((problem) => problemOf(extent, problem)));
    }
    return problems;
  } finally {
    duckdb.disconnect_sync(connection);
    duckdb.close_sync(database);
  }
}

type Reader = { duckdb: DuckDb; connection: Connection; scans: TlmScans; columns: VerifyTask["columns"] };

async function problemsOf(reader: Reader, extent: LocalVerified): Promise<string[]> {
  const { checksum, sizeBytes } = checksumOfFile(extent.path);
  if (sizeBytes !== extent.sizeBytes) return [differs("size", `${sizeBytes} bytes`, `${extent.sizeBytes} bytes`)];
  if (checksum !== extent.checksum) return [differs("checksum", checksum, extent.checksum)];
  try {
    return await contentProblems(reader, extent);
  } catch (error) {
    if (isOfTheMachine(error)) throw error;
    return [`its bytes are those that were committed, and cannot be read: ${messageOf(error)}`];
  } finally {
    reader.scans.clear();
  }
}

function differs(what: string, found: string, known: string): string {
  return `${what}: the object has ${found}, the catalog says ${known}`;
}

/** Whether it is memory or the disk that failed, of which an extent is not to blame. */
function isOfTheMachine(error: unknown): boolean {
  return /^(?:Out of Memory|IO) Error/.test(messageOf(error));
}

async function contentProblems(reader: Reader, extent: LocalVerified): Promise<string[]> {
  const source = await openInputs({ columns: reader.columns, inputs: [extent] }, reader);
  const ask = async (select: string): Promise<(string | null)[]> => {
    const [row = []] = await runSql(reader.duckdb, reader.connection, `SELECT ${select} FROM (${source.sql})`);
    return row;
  };
  const rows = Number((await ask("count(*)"))[0]);
  const problems = rows === extent.rows ? [] : [differs("rows", String(rows), String(extent.rows))];
  const found = await statsOf(ask, source.columns, rows);
  problems.push(...timeProblems(found, extent));
  const known = new Map(extent.stats.map((stats) => [foldName(stats.name), stats]));
  for (const { name, type } of source.columns) {
    const [own, said] = [found.get(foldName(name)), known.get(foldName(name))];
    known.delete(foldName(name));
    if (own !== undefined) problems.push(...columnProblems(type, own, said, rows));
  }
  for (const said of known.values()) problems.push(...columnProblems(undefined, absent(said, rows), said, rows));
  return problems;
}

/** A column that the file does not have is NULL in every row. */
function absent({ name }: ColumnStats, rows: number): ColumnStats {
  return { name, nullCount: rows };
}

const ITEMS = 3;

/** What the rows say, by folded name. */
async function statsOf(
  ask: (select: string) => Promise<(string | null)[]>,
  columns: MergeSource["columns"],
  rows: number,
): Promise<Map<string, ColumnStats>> {
  const stats = new Map<string, ColumnStats>();
  for (let i = 0; i < columns.length; i += COLUMNS_AT_ONCE) {
    const part = columns.slice(i, i + COLUMNS_AT_ONCE);
    // The source gives nanoseconds, whatever the file has.
    const items = part.map(({ name, type }) => {
      const column = quoteIdentifier(name);
      return `count(${column}), ${boundsSql(column, type, "nanoseconds")}`;
    });
    const answers = await ask(items.join(", "));
    for (const [n, { name, type }] of part.entries()) {
      const [count, min, max] = answers.slice(n * ITEMS, (n + 1) * ITEMS);
      const bounds = boundsOf(type.kind, min ?? undefined, max ?? undefined);
      stats.set(foldName(name), { name, nullCount: rows - Number(count), ...bounds });
    }
  }
  return stats;
}

function timeProblems(found: ReadonlyMap<string, ColumnStats>, { minAtNs, maxAtNs }: LocalVerified): string[] {
  const { min, max } = found.get(TIME_COLUMN) ?? {};
  const problems: string[] = [];
  if (min !== String(minAtNs)) problems.push(differs("smallest at", min ?? "none", String(minAtNs)));
  if (max !== String(maxAtNs)) problems.push(differs("largest at", max ?? "none", String(maxAtNs)));
  return problems;
}

/** A bound that the catalog does not have says nothing that could be wrong; a count is always there. */
function columnProblems(
  type: ColumnType | undefined,
  found: ColumnStats,
  said: ColumnStats | undefined,
  rows: number,
): string[] {
  const { nullCount, min, max } = said ?? absent(found, rows);
  const about = `column ${JSON.stringify(found.name)}`;
  const problems: string[] = [];
  if (nullCount !== found.nullCount) {
    problems.push(differs(`NULLs of ${about}`, String(found.nullCount), String(nullCount)));
  }
  if (min !== undefined && !isSame(type, found.min, min)) {
    problems.push(differs(`minimum of ${about}`, found.min ?? "none", min));
  }
  if (max !== undefined && !isSame(type, found.max, max)) {
    problems.push(differs(`maximum of ${about}`, found.max ?? "none", max));
  }
  return problems;
}

/** Numbers of one value may be written in several ways. */
function isSame(type: ColumnType | undefined, found: string | undefined, said: string): boolean {
  return found === said || (type?.kind === "real" && found !== undefined && Number(found) === Number(said));
}
