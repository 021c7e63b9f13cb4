import { createWriteStream } from "node:fs";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ParquetTask } from "./parquet-task.ts";
import { ReaderProcess, type ReaderOptions } from "./reader-process.ts";

const MEMORY_MIB = 1_000;

/** The rows of a Parquet file as NDJSON, in the pieces in which they come. */
export async function* parquetRows(path: string, shown: string): AsyncGenerator<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "engine-push-"));
  try {
    // Under a name of ours: in one of somebody else's, `*` and `?` would mean other files.
    const link = join(folder, "input.parquet");
    await symlink(await realpath(path), link);
    yield* rowsOf(link, shown);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same of Parquet that comes as a stream, which is first kept in a file: its directory stands at the end. */
export async function* parquetStreamRows(chunks: AsyncIterable<Uint8Array>, shown: string): AsyncGenerator<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "engine-push-"));
  try {
    const file = join(folder, "input.parquet");
    await pipeline(Readable.from(chunks), createWriteStream(file, { mode: 0o600 }));
    yield* rowsOf(file, shown);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function rowsOf(file: string, shown: string): AsyncGenerator<Uint8Array> {
  return parquetReader({ file, memoryMib: MEMORY_MIB, isDescribed: false, isWatched: false }, shown).output();
}

/** A process that writes the rows of the file. Its name holds nothing that DuckDB would take for a pattern. */
export function parquetReader(
  task: ParquetTask,
  shown: string,
  limits: Pick<ReaderOptions, "dataBytes" | "confinement" | "signal" | "silence"> = {},
): ReaderProcess {
  return new ReaderProcess({
    ...limits,
    source: new URL("./parquet-child.ts", import.meta.url),
    isolate: "parquet",
    task: JSON.stringify(task),
    problem: `${shown} cannot be read as Parquet`,
    hiddenPath: task.file,
    readable: [dirname(task.file)],
    hasInput: task.isWatched,
  });
}
