import { messageOf } from "../../../core/errors.ts";
import { checkName } from "../../../core/names.ts";
import { checkObjectKey, InvalidObjectKey } from "../../../io/objectstore/objectstore.ts";

export type DropFormat = "ndjson" | "csv" | "parquet";

/** What a key of a dropped file says. */
export type DropFile =
  | { kind: "file"; database: string; table: string; format: DropFormat }
  /** It ends as files of rows do, and cannot be one. */
  | { kind: "misplaced"; reason: string }
  /** Its writer has not given it its final name yet. */
  | { kind: "unfinished" }
  /** No file of rows: markers, notes, and the reports about rejected files. */
  | { kind: "other" };

export const REPORT_SUFFIX = ".rejected.json";

const FORMATS: readonly (readonly [RegExp, DropFormat])[] = [
  [/\.(ndjson|jsonl|json)(\.(gz|zst))?$/i, "ndjson"],
  [/\.csv(\.(gz|zst))?$/i, "csv"],
  [/\.parquet$/i, "parquet"],
];
const UNFINISHED = /\.(tmp|part)$/i;

/** Reads `<prefix>/<database>/<table>/…/name`. */
export function dropFileOf(key: string, prefix: string): DropFile {
  const segments = key.slice(prefix.length + 1).split("/");
  const name = segments.at(-1) ?? "";
  if (UNFINISHED.test(name)) return { kind: "unfinished" };
  const format = FORMATS.find(([pattern]) => pattern.test(name))?.[1];
  if (format === undefined || name.toLowerCase().endsWith(REPORT_SUFFIX)) return { kind: "other" };
  const problem = keyProblem(key);
  if (problem !== undefined) return { kind: "misplaced", reason: problem };
  const [database, table] = segments;
  if (database === undefined || table === undefined || segments.length < 3) {
    const reason = `the file is not in a folder of a table: put it under ${prefix}/<database>/<table>/`;
    return { kind: "misplaced", reason };
  }
  try {
    return { kind: "file", database: checkName("database", database), table: checkName("table", table), format };
  } catch (error) {
    return { kind: "misplaced", reason: messageOf(error) };
  }
}

/** Room for what comes before the key in the name of its source (`position.ts`), which has 1,024 bytes at most. */
const MAX_KEY_BYTES = 1_000;

/** Why an object of that key cannot be read, or its position not be kept. */
function keyProblem(key: string): string | undefined {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `the key has more than ${MAX_KEY_BYTES} bytes`;
  try {
    checkObjectKey(key);
    return undefined;
  } catch (error) {
    if (error instanceof InvalidObjectKey) return error.message;
    throw error;
  }
}
