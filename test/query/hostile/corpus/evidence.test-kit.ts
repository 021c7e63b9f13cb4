import { type Dirent, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { systemCodeOf } from "../../../../src/core/errors.ts";
import { MARKER } from "./texts.test-kit.ts";

/** What only the rows of the other database hold. The number of its first character fits no other text. */
export const CANARY = "\u{1F7E3} zq-canary-6d1c9e2f5b";
const CANARY_TEXT = "zq-canary-6d1c9e2f5b";
const CANARY_NUMBER = 0x1f7e3;

/** Names that DuckDB's catalog, its settings, the environment and the system have, and nothing of a caller's. */
const INTERNAL = [
  "arrow_large_buffer_size", "attrelid", "database_oid", "ENGINE_QUERY_CHILD", "function_oid", "log_level", "nspname",
  "relnamespace", "root:x:0", "rootpage", "schema_oid", "seq,name,file", "tableowner", "typname",
]; // oxfmt-ignore

/** Finds in an answer what its query must not know. */
export class Evidence {
  readonly #needles: readonly (readonly [needle: string, what: string])[];

  /** `files` are the extents of the other database. */
  constructor(files: readonly string[]) {
    const canary = spellingsOf(Buffer.from(CANARY_TEXT)).map((one) => [one, "the canary"] as const);
    const names = files.map((file) => [basename(file).replace(/\.\w+$/, ""), "the name of an extent"] as const);
    const pieces = files.flatMap((file) => {
      const bytes = readFileSync(file);
      const middle = Math.floor(bytes.length / 2);
      return spellingsOf(bytes.subarray(middle, middle + 30)).map((one) => [one, "bytes of an extent"] as const);
    });
    const internal = INTERNAL.map((one) => [one, `DuckDB's or the system's own (${one})`] as const);
    this.#needles = [...canary, ...names, ...pieces, ...internal, [MARKER, "what a payload left behind"]];
  }

  /** What the answer has of it, apart from what the query had itself. */
  in(answer: string, query: string): string[] {
    const [where, known] = [answer.toLowerCase(), query.toLowerCase()];
    const found = this.#needles
      .filter(([needle]) => where.includes(needle.toLowerCase()) && !known.includes(needle.toLowerCase()))
      .map(([, what]) => what);
    const isNumber = NUMBERS.test(answer) && !NUMBERS.test(query);
    return [...new Set([...found, ...(isNumber ? ["the number of the canary's first character"] : [])])];
  }
}

const NUMBERS = new RegExp(`(?<![\\w.])(?:${CANARY_NUMBER}|${CANARY_NUMBER + 1000})(?!\\w)`);

/** As it is, in hexadecimal digits, and in base64 wherever it stands in a longer text. */
function spellingsOf(bytes: Buffer): string[] {
  const inner = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    return text.slice(4, -4);
  });
  return [bytes.toString("latin1"), bytes.toString("hex"), ...inner];
}

/** The files below some folders, to see afterwards what has become of them. */
export class FileWatch {
  readonly #folder: string;
  readonly #isWatched: (file: string) => boolean;
  readonly #before: ReadonlyMap<string, Buffer>;

  constructor(folder: string, isWatched: (file: string) => boolean = () => true) {
    this.#folder = folder;
    this.#isWatched = isWatched;
    this.#before = this.#read();
  }

  get files(): string[] {
    return [...this.#before.keys()];
  }

  /** Which files are new, gone, or not the same bytes. */
  changes(): string[] {
    const now = this.#read();
    const gone = [...this.#before.keys()].filter((file) => !now.has(file)).map((file) => `${file} is gone`);
    const others = [...now].flatMap(([file, bytes]) => {
      const before = this.#before.get(file);
      if (before === undefined) return [`${file} is new`];
      return before.equals(bytes) ? [] : [`${file} has changed`];
    });
    return [...gone, ...others].map((line) => line.slice(this.#folder.length + 1));
  }

  /** Makes everything as it was. */
  restore(): void {
    for (const file of this.#read().keys()) if (!this.#before.has(file)) rmSync(file);
    for (const [file, bytes] of this.#before) writeFileSync(file, bytes);
  }

  #read(): Map<string, Buffer> {
    const files = filesUnder(this.#folder).filter((file) => this.#isWatched(file));
    return new Map(files.map((file) => [file, readFileSync(file)]));
  }
}

/** All files below the folder; what goes away meanwhile is left out. */
export function filesUnder(folder: string): string[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesUnder(path);
    return entry.isFile() ? [path] : [];
  });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}
