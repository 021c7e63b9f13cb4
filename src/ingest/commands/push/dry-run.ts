import { sleep, type Clock } from "../../../core/clock.ts";
import { LIMITS } from "../../../core/limits.ts";
import { foldName, isColumnName } from "../../../core/names.ts";
import { hasFixedType } from "../../../format/ndjson/infer-types.ts";
import {
  CATCH_ALL_COLUMN,
  DEFAULT_SHAPE,
  formatColumnType,
  TIME_COLUMN,
  TIME_STAND_INS,
  type ColumnSpec,
} from "../../../format/types.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError } from "../../../client/failure.ts";
import { createRowWriter } from "../../../client/row-writers.ts";
import { splitRow } from "../../../client/row.ts";
import { renderTable, textCell } from "../../../client/table.ts";
import { visible } from "../../../client/text.ts";
import type { Batch } from "../../../io/rows/batcher.ts";
import type { FoundInputs } from "./input-files.ts";
import { openRows, type InputFormat, type RowOptions } from "./open-rows.ts";
import { SeenFields } from "./seen-fields.ts";

export type DryRunOptions = {
  inputs: FoundInputs;
  rows: RowOptions;
  database: string;
  table: string;
  /** Undefined: there is no such table. */
  existing: readonly ColumnSpec[] | undefined;
  /** Whether new columns get types by their values, else they are strings. */
  inferTypes: boolean;
  json: boolean;
};

type ReadInput = { shown: string; format: InputFormat; rows: number; isWhole: boolean };

/**
 * Shows what a push would do, from the first request of each input, and sends nothing. What JSON allows the engine
 * allows, but for a few things that it refuses (`docs/ingest.md`).
 * @throws CliError when an input cannot be read.
 */
export async function dryRun(context: CliContext, options: DryRunOptions): Promise<void> {
  const { inputs, json } = options;
  const seen = new SeenFields();
  const read: ReadInput[] = [];
  const failures: CliError[] = [...inputs.failures];
  for (const file of inputs.files) {
    try {
      const { batches, origin, format } = await openRows(file, options.rows);
      const { batch, isWhole } = await firstOf(batches, options.rows.read.clock);
      const rows = batch === undefined ? 0 : seen.add(batch, origin);
      read.push({ shown: file.shown, format, rows, isWhole });
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      failures.push(error);
      if (file.path === undefined) options.rows.stdin.destroy();
    }
  }
  const schema = schemaOf(seen, options);
  if (json)
    await context.writeJson({ ...schemaJson(schema, options), rows: seen.rows.map(rawRow), files: read.map(readJson) });
  else {
    await printSchema(context, schema, options);
    await printRows(context, seen.rows);
    for (const { shown, format, rows, isWhole } of read) {
      const counted = `${rows.toLocaleString("en-US")} ${rows === 1 ? "row" : "rows"}`;
      await context.writeLine(`${shown}: ${format}, ${counted}${isWhole ? "" : " read, and there are more"}`);
    }
    await context.writeLine("nothing was sent");
  }
  const [first] = failures;
  if (first !== undefined && inputs.files.length + inputs.failures.length === 1) throw first;
  for (const { message } of failures) context.error(message);
  if (first !== undefined) throw new CliError(`${failures.length} inputs cannot be read`);
}

/** How long the next request is waited for, to know whether there is one. */
const NEXT_MS = 50;

async function firstOf(batches: AsyncGenerator<Batch>, clock: Clock): Promise<{ batch?: Batch; isWhole: boolean }> {
  const first = await batches.next();
  if (first.done === true) return { isWhole: true };
  // A producer that is still writing is not waited for.
  const reading = batches.next();
  reading.catch(() => undefined);
  const isWhole = await Promise.race([reading.then(({ done }) => done === true), sleep(clock, NEXT_MS)]);
  batches.return(undefined).catch(() => undefined);
  return { batch: first.value, isWhole: isWhole === true };
}

type Schema = {
  columns: readonly { name: string; type: string; isNew: boolean }[];
  /** Fields without a column: they are kept in `props`. */
  others: readonly string[];
};

/** The columns that the table would have: those that it has, or every table's, and one for each new field. */
function schemaOf(seen: SeenFields, { existing, inferTypes }: DryRunOptions): Schema {
  const fields = seen.names;
  const columns = (existing ?? DEFAULT_SHAPE).map(({ name, type }) => ({
    name,
    type: formatColumnType(type),
    isNew: existing === undefined,
  }));
  const known = new Set(columns.map(({ name }) => foldName(name)));
  const times = [TIME_COLUMN, ...TIME_STAND_INS];
  // The first of them that the rows have is their time, and no column.
  const time = times.find((name) => fields.some((field) => foldName(field) === name));
  const others: string[] = [];
  let added = 0;
  for (const name of fields) {
    const folded = foldName(name);
    const type = inferTypes && !hasFixedType(folded) ? seen.typeOf(name) : "string";
    // A field of nulls alone gets no column yet where its values are to say of which type.
    if (known.has(folded) || folded === time || type === undefined) continue;
    const fits = added < LIMITS.newColumnsPerRequest && columns.length < LIMITS.columnsPerTable;
    if (!isColumnName(name) || !fits) {
      others.push(name);
      continue;
    }
    columns.push({ name, type, isNew: true });
    added++;
  }
  return { columns, others };
}

async function printSchema(context: CliContext, schema: Schema, { database, table, existing }: DryRunOptions) {
  const added = schema.columns.filter(({ isNew }) => isNew).length;
  const is = existing === undefined ? "does not exist; it would be made" : `exists; ${added} columns would be added`;
  await context.writeLine(`table ${database}.${table} ${is}`);
  // Of a table that does not exist all columns are new.
  const marked = existing === undefined ? [] : ["NEW"];
  const rows = schema.columns.map(({ name, type, isNew }) =>
    [name, type, ...marked.map(() => (isNew ? "new" : ""))].map(textCell),
  );
  await context.writeLine(renderTable(["COLUMN", "TYPE", ...marked], rows, context.style));
  const { others } = schema;
  if (others.length > 0) {
    const names = others.slice(0, 10).map(visible).join(", ");
    const more = others.length > 10 ? `, and ${others.length - 10} more` : "";
    await context.writeLine(
      `kept in ${CATCH_ALL_COLUMN} (a request adds at most ${LIMITS.newColumnsPerRequest} columns): ${names}${more}`,
    );
  }
  await context.writeLine();
}

async function printRows(context: CliContext, rows: readonly string[]): Promise<void> {
  const writer = createRowWriter("table", context);
  // A table needs the same columns in every row.
  const names = new Set(rows.flatMap((row) => splitRow(row).map(({ name }) => name)));
  for (const row of rows) {
    const raws = new Map(splitRow(row).map(({ name, raw }) => [name, raw]));
    const fields = [...names].map((name) => `${JSON.stringify(name)}:${raws.get(name) ?? "null"}`);
    await writer.row(`{${fields.join(",")}}`);
  }
  await writer.end();
  await context.writeLine();
}

function schemaJson({ columns, others }: Schema, { database, table, existing }: DryRunOptions) {
  return {
    database,
    table,
    exists: existing !== undefined,
    columns: columns.map(({ name, type, isNew }) => ({ name, type, new: isNew })),
    kept_in_props: others,
  };
}

function readJson({ shown, format, rows, isWhole }: ReadInput) {
  return { file: shown, format, rows_read: rows, complete: isWhole };
}

/** As it would be sent: `JSON.stringify` writes its numbers digit for digit. */
function rawRow(row: string): unknown {
  // TypeScript's library does not know these two yet.
  const json = JSON as unknown as {
    rawJSON(text: string): unknown;
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown;
  };
  return json.parse(row, (_, value, { source }) => (typeof value === "number" ? json.rawJSON(source) : value));
}
