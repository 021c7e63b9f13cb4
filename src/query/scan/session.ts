import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { nextTurn } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { prepareOne, quoteText, runOne, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { cteName } from "../resolve/bound-names.ts";
import { checkQuery, type CheckedQuery } from "../resolve/check.ts";
import { asEngineError, isInQuery, readDuckDbError } from "../errors/duckdb-error.ts";
import { textsToRun, type TextToRun } from "./final-text.ts";
import { createListing } from "../resolve/listings.ts";
import { neededTables, type Need } from "../resolve/needs.ts";
import { bindParameters, NO_PARAMETERS, type QueryParameters } from "../parse/parameters.ts";
import type { PrintedTree } from "../parse/print-tree.ts";
import { inputFolder, outputFolder } from "./process-folders.ts";
import type { OutputColumn } from "../../io/duckdb/projection.ts";
import { foreignQuery } from "./foreign-rows.ts";
import type { ConvertRequest, DescribeRequest, Done, ParseRequest, RunRequest, TranslatedText } from "./protocol.ts";
import type { Needs } from "../resolve/needs.ts";
import type { TableShape } from "../contract/tables.ts";
import { QuerySpaces, type QuerySpace, type SpaceOptions } from "./query-space.ts";
import { quoteAt, type QuotedText } from "../parse/quote-at.ts";
import { resultOffset, writeResult, type ResultQuery } from "../stream/result-writer.ts";
import { parseTree, SqlParser, type SqlContext } from "../parse/sql-tree.ts";
import { openPivot, peel, type OpenPivot, type Statement } from "../parse/statement.ts";
import { conditionQuery, inWhere } from "../parse/row-condition.ts";
import { extentsTravel, isSystemUse, systemTablesOf } from "../resolve/system-mentions.ts";
import { resultType } from "../../io/duckdb/result-type.ts";
import {
  columnsOf,
  systemTableNamed,
  systemView,
  systemViews,
  type SystemTableFile,
  type SystemTableName,
} from "../system-tables/system-tables.ts";
import { typeHint } from "../errors/type-hint.ts";
import { QueryRefused, textOf, type JsonObject } from "../parse/tree.ts";
import { storedTimesOf, type StoredView } from "./stored-times.ts";
import { checkColumns, macrosNamed } from "./translated.ts";
import { viewQuery } from "./numbered-rows.ts";
import { tableQuery } from "./views.ts";

/**
 * The query engine inside a query process: one DuckDB, one query at a time. The gate that a query passes, whatever it
 * came in by, each part of it enough to keep a query to its own tables:
 *
 * 1. What is checked is what runs: `check.ts` lets through what it knows, and `print-tree.ts` prints the text that runs
 *    from that tree. It is prepared as exactly one SELECT.
 * 2. Names resolve in our code: `bound-names.ts` gives every relation a name of ours.
 * 3. DuckDB opens the files of this query and no others, and nothing of a query is left after it: `query-space.ts`.
 * 4. The system confines the process to its folders: `io/confinement/`.
 *
 * A query runs inside one transaction that is rolled back: `now()` is the same moment when bounds are computed and when
 * the query runs. Errors are placed in the user's text by following the printed tree back to the one that was parsed.
 */
export type SessionOptions = SpaceOptions & {
  /** Called when something of a query is left in the process, which takes no further ones then. */
  onSpent: (reason: unknown) => void;
};

/** What a query has answered with. */
type Answered = Pick<Done, "rows" | "isTruncated" | "columns" | "data">;

type OpenQuery = SqlContext & {
  space: QuerySpace;
  database: string;
  quoted: QuotedText;
  statement: Statement;
  /** With the values of its parameters; `written` has them as they were. */
  node: JsonObject;
  written: JsonObject;
  parameters: QueryParameters;
  pivot: OpenPivot | undefined;
  checked: CheckedQuery;
  needs: readonly Need[];
  translated: TranslatedText | undefined;
  /** Begun before the tables are known, where there are none. */
  texts?: Texts;
};

/** The texts to try; the first may be printed already. */
type Texts = { first: Promise<IteratorResult<TextToRun>> | undefined; rest: AsyncGenerator<TextToRun> };

export class QuerySession {
  readonly #options: SessionOptions;
  readonly #spaces: QuerySpaces;
  readonly #parser: SqlParser;
  /** The space of the next query. */
  #space: Promise<QuerySpace>;
  #memoryBytes: number;
  #results = 0;
  #query: OpenQuery | undefined;
  /** Where rows of another program are cast. */
  #converting: Connection | undefined;

  private constructor(options: SessionOptions, spaces: QuerySpaces, parser: SqlParser) {
    this.#options = options;
    this.#memoryBytes = options.memoryBytes;
    this.#spaces = spaces;
    this.#parser = parser;
    this.#space = spaces.create();
  }

  /** Opens the database. */
  static async open(options: SessionOptions): Promise<QuerySession> {
    const { duckdb, folder } = options;
    const spaces = await QuerySpaces.open(options);
    // The first use of each of these is slow, and should not be a client's.
    const parser = await SqlParser.open(duckdb, options.memoryBytes);
    await parser.treeOf("SELECT now() - INTERVAL 1 HOUR");
    const columns = [{ name: "a", type: duckdb.create_logical_type(duckdb.Type.INTEGER) }];
    const space = await spaces.create();
    const { connection } = space;
    const warm = join(outputFolder(folder), "warm");
    await writeResult(duckdb, connection, { columns, sql: "SELECT 1", format: "ndjson" }, warm);
    await spaces.remove(space);
    return new QuerySession(options, spaces, parser);
  }

  /** Parses and checks the text. The query stays open until `run` or `drop`. Throws `EngineError`. */
  async parse(request: ParseRequest): Promise<Needs> {
    const { duckdb } = this.#options;
    this.drop();
    const space = await this.#space;
    const { selection } = request;
    const own = quoteAt(request.text);
    const quoted = selection === undefined ? own : inWhere(own, selection);
    try {
      await this.#limitMemory(request.memoryBytes);
      const context = { duckdb, connection: space.connection, parser: this.#parser };
      refuseNul(quoted);
      const { macros = [] } = request.translated ?? {};
      if (macros.length > 0) {
        for (const macro of await macrosNamed(macros)) await duckdb.query(space.connection, macro);
      }
      const query = await openQuery(context, space, { parameters: NO_PARAMETERS, ...request, quoted });
      this.#query = query;
      const { checked } = query;
      if (checked.tables.length === 0) query.texts = printing(query, []);
      const tables = query.needs.map(({ table }) => table);
      return {
        tables,
        listings: checked.listings,
        system: systemTablesOf(checked.tables, quoted),
        extentsTravel: await extentsTravel(query, checked.tables),
      };
    } catch (error) {
      this.#query = undefined;
      this.#renew(space);
      throw await this.#clientError(error, { quoted });
    }
  }

  /** Runs the open query over the tables given, which closes it. Throws `EngineError`. */
  async run(request: RunRequest): Promise<Answered> {
    const query = this.#query;
    if (query === undefined) throw new Error("run without parse");
    const { folder, duckdb } = this.#options;
    const file = join(outputFolder(folder), `${this.#results++}.${request.format}`);
    try {
      const texts = query.texts ?? printing(query, shapesOf(request), storedViewsOf(request));
      if (hasProgress(request)) await this.#spaces.countProgress(query.space);
      await Promise.all([this.#createViews(query, request), texts.first]);
      const { result, printed } = await this.#bind(query, request, texts);
      const written = await writeResult(duckdb, query.connection, result, file).catch((error: unknown) => {
        const offset = resultOffset(duckdb, result);
        throw new Misplaced(error, (position) => printed?.placeOf(position - offset));
      });
      return { ...written, columns: result.columns.map(({ name }) => name) };
    } catch (error) {
      // A writer that was stopped leaves what it had written.
      rmSync(file, { force: true });
      throw missingExtent(request) ?? (await this.#clientError(error, query, shapesOf(request)));
    } finally {
      this.drop();
    }
  }

  /** Binds the open query over tables without rows, which closes it: the columns of its answer. Throws `EngineError`. */
  async describe(request: DescribeRequest): Promise<{ name: string; type: string }[] | undefined> {
    const query = this.#query;
    if (query === undefined) throw new Error("describe without parse");
    const shapes = shapesOf(request);
    try {
      await this.#createViews(query, request);
      // Its columns are values that it finds.
      if (query.pivot !== undefined) return undefined;
      const { duckdb } = this.#options;
      const { result } = await this.#bound(query, request, query.texts ?? printing(query, shapes));
      const columns = query.statement.explain === undefined ? result : explainColumns(duckdb);
      return columns.map(({ name, type }) => ({ name, type: resultType(duckdb, type) }));
    } catch (error) {
      throw await this.#clientError(error, query, shapes);
    } finally {
      this.drop();
    }
  }

  /** Casts rows of another program to the types of their columns. Throws `EngineError`. */
  async convert({ rows, format, memoryBytes, maxRows }: ConvertRequest): Promise<Answered> {
    const { folder, duckdb } = this.#options;
    this.drop();
    const space = await this.#space;
    const file = join(outputFolder(folder), `${this.#results++}.${format}`);
    const { connection } = space;
    this.#converting = connection;
    try {
      await this.#limitMemory(memoryBytes);
      const sql = foreignQuery(rows, this.#spaces.scans);
      const columns = await this.#describe({ connection }, sql);
      const written = await writeResult(duckdb, connection, { columns, sql, format, maxRows }, file);
      return { ...written, columns: columns.map(({ name }) => name) };
    } catch (error) {
      rmSync(file, { force: true });
      throw await this.#clientError(error, { quoted: quoteAt("") });
    } finally {
      this.#converting = undefined;
      this.#renew(space);
    }
  }

  /** Has what is going on end early, with an error; a query stays open. False when there is nothing. */
  interrupt(): boolean {
    const connection = this.#query?.connection ?? this.#converting;
    if (connection === undefined) return false;
    this.#options.duckdb.interrupt(connection);
    return true;
  }

  /** How much of the scan is done, 0 to 100; undefined where DuckDB does not know, or nothing runs. */
  percent(): number | undefined {
    const connection = this.#query?.connection;
    if (connection === undefined) return undefined;
    const { percentage } = this.#options.duckdb.query_progress(connection);
    return percentage < 0 ? undefined : Math.min(100, Math.round(percentage));
  }

  /** Closes the open query, if one is. */
  drop(): void {
    const query = this.#query;
    this.#query = undefined;
    if (query !== undefined) this.#renew(query.space);
  }

  /** The next query waits for it; the answer of this one is sent first. */
  #renew(space: QuerySpace): void {
    const renewed = nextTurn().then(() => this.#spaces.remove(space));
    this.#space = renewed.then(() => {
      this.#memoryBytes = this.#options.memoryBytes;
      return this.#spaces.create();
    });
    this.#space.catch((error: unknown) => this.#options.onSpent(error));
  }

  async #limitMemory(memoryBytes: number): Promise<void> {
    if (memoryBytes === this.#memoryBytes) return;
    this.#memoryBytes = memoryBytes;
    await this.#spaces.limitMemory(memoryBytes);
  }

  async #createViews(
    { connection, checked, needs }: OpenQuery,
    request: Pick<RunRequest, "tables" | "listed"> & { system: readonly (SystemTableFile | SystemTableName)[] },
  ): Promise<void> {
    const { duckdb } = this.#options;
    for (const i of needs.keys()) {
      const table = request.tables[i];
      if (table === undefined) throw new Error("fewer tables than the query needs");
      await duckdb.query(connection, `CREATE TEMP VIEW ${tableView(i)} AS ${viewQuery(table, this.#spaces.scans)}`);
    }
    for (const [i, listing] of checked.listings.entries()) {
      await duckdb.query(connection, createListing(i, listing, request.listed[i] ?? []));
    }
    // A table of the user's may have a column of that name, which stays the only one.
    const named = needs.length === 0 ? checked.names : new Set<string>();
    for (const statement of systemViews(request.system, named)) await duckdb.query(connection, statement);
  }

  /** Those that the text reads. */
  async #createStoredViews(
    { connection }: OpenQuery,
    { tables }: Pick<RunRequest, "tables">,
    sql: string,
  ): Promise<void> {
    for (const [i, table] of tables.entries()) {
      if (!sql.includes(storedView(i))) continue;
      const stored = storedTimesOf(table);
      const rows = tableQuery({ ...table, stored }, this.#spaces.scans);
      await this.#options.duckdb.query(connection, `CREATE OR REPLACE TEMP VIEW ${storedView(i)} AS ${rows}`);
    }
  }

  /** The statement that will run, with the columns of its rows. */
  async #bind(
    query: OpenQuery,
    request: RunRequest,
    texts: Texts,
  ): Promise<{ result: ResultQuery; printed?: PrintedTree }> {
    const { format, maxRows, pruning } = request;
    const { result: columns, printed } = await this.#bound(query, request, texts);
    const { explain } = query.statement;
    if (explain === undefined) return { result: { columns, sql: printed.sql, format, maxRows }, printed };
    try {
      return { result: { ...(await this.#explain(query, `${explain} ${printed.sql}`, pruning)), format } };
    } catch (error) {
      throw new Misplaced(error, printed.placeOf);
    }
  }

  /** The first candidate that DuckDB can bind to the tables, with its columns. */
  async #bound(
    query: OpenQuery,
    request: Pick<RunRequest, "tables">,
    { first, rest }: Texts,
  ): Promise<{ result: OutputColumn[]; printed: PrintedTree }> {
    let failure: { error: Misplaced; isGuess: boolean } | undefined;
    for (let next = await (first ?? rest.next()); next.done !== true; next = await rest.next()) {
      const { printed, isGuess } = next.value;
      try {
        await this.#createStoredViews(query, request, printed.sql);
        const columns = await this.#describe(query, printed.sql);
        checkColumns(this.#options.duckdb, columns, query.translated?.columns);
        return { result: columns, printed };
      } catch (error) {
        // What is wrong with the first text that rests on no guess is what is wrong with the user's.
        if (failure?.isGuess !== false) failure = { error: new Misplaced(error, printed.placeOf), isGuess };
      }
    }
    throw failure?.error ?? new Error("a query has no text");
  }

  async #describe({ connection }: Pick<OpenQuery, "connection">, sql: string): Promise<OutputColumn[]> {
    const { duckdb } = this.#options;
    const statement = await prepareOne(duckdb, connection, sql, "SELECT");
    try {
      return Array.from({ length: duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
        name: duckdb.prepared_statement_column_name(statement, i),
        type: duckdb.prepared_statement_column_logical_type(statement, i),
      }));
    } finally {
      duckdb.destroy_prepare_sync(statement);
    }
  }

  /** The plan, as a query that gives its rows. */
  async #explain(
    query: OpenQuery,
    sql: string,
    pruning: readonly string[],
  ): Promise<{ sql: string; columns: OutputColumn[] }> {
    const { duckdb, folder } = this.#options;
    const rows = await runOne(duckdb, query.connection, sql, "EXPLAIN");
    rows.push(...pruning.map((text) => ["extents", text]));
    if (query.translated !== undefined) rows.unshift(["sql", query.statement.text.trim()]);
    const nameOf = userNames(query);
    // Names that no column of a table can have: times as they are stored.
    const shown = (text: string): string =>
      nameOf(text)
        .replaceAll(`${inputFolder(folder)}/`, "")
        .replaceAll("\u001f", ".");
    const values = rows.map(([key, value]) => `(${quoteText(key ?? "")}, ${quoteText(shown(value ?? ""))})`);
    return { sql: `VALUES ${values.join(", ")}`, columns: explainColumns(duckdb) };
  }

  async #clientError(
    thrown: unknown,
    query: Pick<OpenQuery, "quoted"> & Partial<OpenQuery>,
    tables: readonly TableShape[] = [],
  ): Promise<unknown> {
    const { quoted, checked, written } = query;
    if (thrown instanceof EngineError) return thrown;
    if (thrown instanceof RangeError) return new EngineError("invalid_query", "the query is nested too deeply");
    if (thrown instanceof QueryRefused) {
      const { message, position, suggestion } = thrown;
      return new EngineError("invalid_query", message, {
        refused: true,
        ...(position === undefined ? {} : quoted.place(position)),
        ...(suggestion === undefined ? {} : { suggestion }),
      });
    }
    const error = readDuckDbError(thrown instanceof Misplaced ? thrown.cause : thrown);
    if (checked !== undefined) error.message = userNames({ checked })(error.message);
    const found = isInQuery(error) ? error.position : undefined;
    const position = thrown instanceof Misplaced && found !== undefined ? thrown.placeOf(found) : found;
    const { folder, spillBytes: tempBytes } = this.#options;
    const context = { parser: this.#parser, position, tables };
    return asEngineError(error, {
      place: position === undefined ? undefined : quoted.place(position),
      columns: tables.flatMap(({ columns }) => columns.map(({ name }) => name)),
      hint: written === undefined ? undefined : await typeHint(error, { ...context, tree: written }),
      folder,
      memoryBytes: this.#memoryBytes,
      tempBytes,
    });
  }
}

function explainColumns(duckdb: DuckDb): OutputColumn[] {
  const type = duckdb.create_logical_type(duckdb.Type.VARCHAR);
  return ["explain_key", "explain_value"].map((name) => ({ name, type }));
}

/** An error of DuckDB's about a text that was printed: positions in it are positions in that. */
class Misplaced extends Error {
  readonly placeOf: PrintedTree["placeOf"];
  constructor(cause: unknown, placeOf: PrintedTree["placeOf"]) {
    super("a printed query fails", { cause });
    this.placeOf = placeOf;
  }
}

/** Prints the first text while other work goes on; but the values of a PIVOT are looked up in the views. */
function printing(
  query: OpenQuery,
  shapes: readonly TableShape[],
  storedViews: ReadonlyMap<string, StoredView> = new Map(),
): Texts {
  const rest = textsToRun(query, { ...query, viewOf: viewsOf(query), storedViews }, shapes);
  const first = query.pivot === undefined ? rest.next() : undefined;
  // Whoever asks for it hears of a failure; a query that is dropped has nobody who does.
  first?.catch(() => {});
  return { first, rest };
}

/** The view of a table that the query needs, by its place among them. */
const tableView = (need: number): string => `engine_table_${need}`;

/** The view of the same table that has stored times, too. */
const storedView = (need: number): string => `engine_stored_${need}_`;

function storedViewsOf({ tables }: RunRequest): ReadonlyMap<string, StoredView> {
  const views = tables.map(
    (table, i) => [tableView(i), { view: storedView(i), stored: storedTimesOf(table) }] as const,
  );
  return new Map(views.filter(([, { stored }]) => stored.length > 0));
}

/** The view for each mention of a table. */
function viewsOf({ checked, needs }: Pick<OpenQuery, "checked" | "needs">): (use: number) => string {
  const views = new Map(needs.flatMap(({ uses }, i) => uses.map((use) => [use, tableView(i)] as const)));
  return (index) => {
    const use = checked.tables[index];
    const view = use === undefined ? undefined : views.get(use);
    if (view !== undefined) return view;
    const system = use === undefined ? undefined : systemTableNamed(use.schema, use.name);
    if (system === undefined) throw new Error("a mention of a table has no view");
    return systemView(system);
  };
}

/** Puts the user's names into a text of DuckDB's that has ours. */
function userNames({ checked, needs = [] }: Pick<OpenQuery, "checked"> & Partial<OpenQuery>): (text: string) => string {
  const ctes = new Map<string, string>();
  for (const [node, binding] of checked.bindings) {
    if (binding.kind === "cte" && "key" in node) ctes.set(cteName(binding.cte), textOf(node["key"]));
  }
  return (text) =>
    text
      .replaceAll(/engine_cte_\d+/g, (name) => ctes.get(name) ?? name)
      .replaceAll(
        /engine_table_(\d+)|engine_stored_(\d+)_/g,
        (name, i, j) => needs[Number(i ?? j)]?.table.name ?? name,
      );
}

async function openQuery(
  context: SqlContext,
  space: QuerySpace,
  {
    quoted,
    database,
    parameters,
    selection,
    translated,
    maxRows,
  }: Pick<OpenQuery, "quoted" | "database" | "parameters"> & Pick<ParseRequest, "selection" | "translated" | "maxRows">,
): Promise<OpenQuery> {
  const statement = peel(quoted.text);
  if (statement.text.trim() === "") throw new EngineError("parse_error", "the query text is empty");
  const parsed = await begunMeanwhile(context, async () => {
    const { written, pivot } = await parseStatement(context, statement.text);
    if (selection === undefined) return { written, pivot };
    return { written: await conditionQuery(context.parser, written, selection), pivot: undefined };
  });
  const node = bindParameters(parsed.written, parameters);
  const checked = checkQuery(node, new Set(translated?.macros), wantedRows(statement, maxRows));
  // Refuses what is no system table.
  systemTablesOf(checked.tables, quoted);
  const tables = checked.tables.filter((use) => !isSystemUse(use));
  const needs = await neededTables(context, { ...checked, tables }, database);
  for (const { table, uses } of needs) {
    const { position, cte } = uses[0] ?? {};
    if (position !== undefined) Object.assign(table, quoted.place(position));
    if (cte !== undefined) table.cte = cte;
  }
  return { ...context, ...parsed, space, database, quoted, statement, node, parameters, checked, needs, translated };
}

/** One row more than the answer may have tells whether there are more; a plan is of the query as it is. */
function wantedRows({ explain }: Statement, maxRows: number | undefined): number | undefined {
  return maxRows === undefined || explain !== undefined ? undefined : maxRows + 1;
}

/** The transaction has begun when the task is done: also when it fails, since nobody may close a connection in use. */
async function begunMeanwhile<T>({ duckdb, connection }: SqlContext, task: () => Promise<T>): Promise<T> {
  const begun = duckdb.query(connection, "BEGIN TRANSACTION");
  try {
    return await task();
  } finally {
    await begun;
  }
}

function refuseNul(quoted: QuotedText): void {
  const nul = quoted.text.indexOf("\0");
  if (nul === -1) return;
  const place = quoted.place(Buffer.byteLength(quoted.text.slice(0, nul)));
  throw new EngineError("parse_error", "the query text has a NUL character", place);
}

async function parseStatement(
  context: SqlContext,
  text: string,
): Promise<{ written: JsonObject; pivot: OpenPivot | undefined }> {
  const parsed = await parseTree(context.parser, text);
  if (parsed.tree !== undefined) return { written: parsed.tree, pivot: undefined };
  const pivot = openPivot(text);
  if (pivot === undefined) throw new QueryRefused(parsed.refused);
  // With some value in the place of each unknown list it is a plain SELECT, and can be checked like one.
  const listed = await parseTree(context.parser, pivot.withValues([["?"], ["?"], ["?"], ["?"]]));
  if (listed.tree === undefined) throw new QueryRefused(listed.refused);
  return { written: listed.tree, pivot };
}

function shapesOf({ tables, system }: RunRequest | DescribeRequest): TableShape[] {
  const names = system.map((one) => (typeof one === "string" ? one : one.name));
  return [...tables, ...names.map((name) => ({ name, columns: columnsOf(name) }))];
}

/** DuckDB knows how far it is in files of Parquet; with fewer rows a query is over before anybody is told. */
const PROGRESS_ROWS = 20_000;

function hasProgress({ tables }: RunRequest): boolean {
  const files = tables.flatMap(({ extents }) => extents.filter(({ format }) => format === "parquet"));
  return files.reduce((sum, { rows }) => sum + rows, 0) >= PROGRESS_ROWS;
}

function missingExtent(request: RunRequest): EngineError | undefined {
  const extents = request.tables.flatMap((table) => table.extents);
  const missing = extents.find(({ path }) => !existsSync(path));
  if (missing === undefined) return undefined;
  return new EngineError("query_failed", `the data of extent ${missing.id} is missing`);
}
