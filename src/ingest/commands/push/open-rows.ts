import { createReadStream } from "node:fs";
import { messageOf } from "../../../core/errors.ts";
import type { ColumnSpec } from "../../../format/types.ts";
import type { CliInput } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { Batcher, type Batch, type Origin } from "../../../io/rows/batcher.ts";
import { csvRows } from "../../../io/rows/csv-rows.ts";
import { decodeInput } from "../../../io/rows/decode-input.ts";
import { FileError } from "./file-error.ts";
import { identityOf, readChunks, STDIN, watchedFile, type InputFile } from "./input-files.ts";
import { parquetRows, parquetStreamRows } from "../../../io/rows/parquet-rows.ts";
import { PeekedInput } from "../../../io/rows/peeked.ts";
import { readBatches, type ReadOptions } from "./read-batches.ts";
import { RowCutter } from "../../../io/rows/row-cutter.ts";
import { BOM, foreignContent, isParquet, PARQUET_MAGIC, SNIFFED_BYTES, startsWithBom } from "../../../io/rows/sniff.ts";
import { UnreadableRows } from "../../../io/rows/unreadable-rows.ts";

export const INPUT_FORMATS = ["ndjson", "csv", "parquet"] as const;
export type InputFormat = (typeof INPUT_FORMATS)[number];

export type RowOptions = {
  stdin: CliInput;
  /** What the user says; by content and name unless given. */
  format?: InputFormat;
  delimiter?: string;
  /** Of the table as it is; asked for where the format needs them. */
  columns: () => Promise<readonly ColumnSpec[]>;
  read: ReadOptions;
};

/** One input, opened. */
export type Rows = {
  origin: Origin;
  format: InputFormat;
  /** The path of a regular file: read again it gives the same. */
  realPath: string | undefined;
  batches: AsyncGenerator<Batch>;
};

/** Opens an input and finds out what it is. @throws FileError when that is nothing with rows. */
export async function openRows(file: InputFile, options: RowOptions): Promise<Rows> {
  const { path, shown } = file;
  const identity = path === undefined ? undefined : await identityOf(path);
  const realPath = identity?.isRegular === true ? identity.realPath : undefined;
  const chunks = path === undefined ? stdinChunks(options.stdin) : readChunks(path);
  const input = new PeekedInput(decodeInput(chunks, shown));
  try {
    const head = await input.head(SNIFFED_BYTES);
    const format = formatOf(head, file, options);
    if (format !== "parquet" && startsWithBom(head)) input.skip(BOM.length);
    // The cuts of what may be read again must not depend on time.
    const { maxAgeMs, ...repeatable } = options.read;
    const read = realPath === undefined && maxAgeMs !== undefined ? options.read : repeatable;
    const opened = { file, input, realPath, format };
    const rows = await ROWS_OF[format](opened, { ...options, read });
    return { ...rows, batches: failingAsFile(rows.batches) };
  } catch (error) {
    await input.return();
    throw asFileError(error);
  }
}

async function* failingAsFile(batches: AsyncGenerator<Batch>): AsyncGenerator<Batch> {
  try {
    yield* batches;
  } catch (error) {
    throw asFileError(error);
  }
}

/** What the readers say is wrong with an input, as a failure of that file. */
function asFileError(error: unknown): unknown {
  return error instanceof UnreadableRows ? new FileError(error.message, error) : error;
}

type Opened = { file: InputFile; input: PeekedInput; realPath: string | undefined; format: InputFormat };

const ROWS_OF: Readonly<Record<InputFormat, (opened: Opened, options: RowOptions) => Promise<Rows> | Rows>> = {
  ndjson: ({ file, input, realPath, format }, { read }) => {
    const origin: Origin = { shown: shownInput(file), unit: "line" };
    return { origin, format, realPath, batches: readBatches(input, new Batcher(origin), read) };
  },
  csv: async ({ file, input, realPath, format }, { read, delimiter, columns }) => {
    const origin: Origin = { shown: shownInput(file), unit: "line" };
    const isTsv = /\.tsv(\.\w+)?$/i.test(file.path ?? "");
    const rows = csvRows(input, { origin, delimiter: delimiter ?? (isTsv ? "\t" : ","), columns: await columns() });
    return { origin, format, realPath, batches: readBatches(rows, new RowCutter(origin), read) };
  },
  parquet: async ({ file, input, realPath, format }, { read }) => {
    const origin: Origin = { shown: shownInput(file), unit: "row" };
    let rows = parquetStreamRows(input, file.shown);
    if (realPath !== undefined && (await startsWith(realPath, PARQUET_MAGIC))) {
      await input.return();
      rows = watchedFile(realPath, () => parquetRows(realPath, file.shown));
    }
    return { origin, format, realPath, batches: readBatches(rows, new Batcher(origin), read) };
  },
};

/** In messages about lines standard input is just the input. */
function shownInput({ path, shown }: InputFile): string {
  return path === undefined ? "the input" : shown;
}

async function* stdinChunks(stdin: CliInput): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stdin as AsyncIterable<Uint8Array | string>) {
      yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    }
  } catch (error) {
    throw new CliError(`cannot read ${STDIN.shown}: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
}

/**
 * By content where that is clear: `PAR1` is Parquet, and what begins with `{` is NDJSON. Text that is neither is CSV where
 * the name says so or a delimiter is given, and NDJSON otherwise, of which the engine says what is wrong with it.
 */
function formatOf(head: Buffer, { path = "", shown }: InputFile, { format, delimiter }: RowOptions): InputFormat {
  if (isParquet(head) && format === undefined) return "parquet";
  const foreign = foreignContent(head);
  if (foreign !== undefined) throw new FileError(`${shown} is ${foreign}`);
  if (format !== "parquet" && head.includes(0)) {
    throw new FileError(`${shown} is no text: neither NDJSON nor CSV, nor Parquet`);
  }
  if (format !== undefined) return format;
  const text = head.toString("latin1", startsWithBom(head) ? BOM.length : 0).trimStart();
  if (text.startsWith("{")) return "ndjson";
  if (delimiter !== undefined || /\.(csv|tsv)(\.\w+)?$/i.test(path)) return "csv";
  if (text.startsWith("[")) {
    throw new FileError(`${shown} is a JSON array, not NDJSON; make a line of each item, as by \`jq -c '.[]'\``);
  }
  if (/\.parquet(\.\w+)?$/i.test(path)) throw new FileError(`${shown} is no Parquet file, whatever its name says`);
  return "ndjson";
}

async function startsWith(path: string, magic: Buffer): Promise<boolean> {
  for await (const chunk of createReadStream(path, { end: magic.length - 1 }) as AsyncIterable<Buffer>) {
    return chunk.equals(magic);
  }
  return false;
}
