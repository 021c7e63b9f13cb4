import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isolateEnv, isolateFile } from "../../core/isolate.ts";
import { visible } from "../text.ts";
import { FileError } from "./file-error.ts";

const PARQUET_ISOLATE = "parquet";
/** Of what the process says, the most that is shown. */
const REASON_CHARS = 500;

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

async function* rowsOf(file: string, shown: string): AsyncGenerator<Uint8Array> {
  const source = isolateFile(new URL("./parquet-child.ts", import.meta.url));
  const child = spawn(process.execPath, [source, "--isolate", PARQUET_ISOLATE, file], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...isolateEnv(), NODE_OPTIONS: "" },
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (said.length < REASON_CHARS) said += text;
  });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  closed.catch(() => undefined);
  try {
    yield* child.stdout as AsyncIterable<Uint8Array>;
    const [code, signal] = await closed;
    if (code === 0) return;
    const reason = signal === null ? reasonOf(said, file) : `its reader was ended by ${signal}`;
    throw new FileError(`${shown} cannot be read as Parquet: ${reason}`);
  } finally {
    child.kill("SIGKILL");
  }
}

/** What DuckDB says, in one line and without our name for the file. */
function reasonOf(said: string, file: string): string {
  const [first = ""] = said.replaceAll(`'${file}'`, "it").replaceAll(file, "it").trim().split("\n");
  return visible(first.slice(0, REASON_CHARS)) || "its reader failed";
}
