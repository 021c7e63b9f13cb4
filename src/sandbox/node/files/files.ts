import type { Readable } from "node:stream";
import { releaseShared } from "../../../core/buffer-pool.ts";
import { Semaphore } from "../../../core/concurrency.ts";
import { EngineError } from "../../../core/errors.ts";
import type { FileEntry } from "../../contract/link/calls.ts";
import { MAX_FILE_BYTES, MAX_LIST_ENTRIES } from "../../contract/files/limits.ts";
import { parseEtags } from "../../../core/etags.ts";
import { FileBody } from "./file-body.ts";
import type { HelperProcess } from "./helper-process.ts";
import { HelperPool, type HelperPoolOptions } from "./helper-pool.ts";
import { bytesOfPath, bytesOfText, textOfBytes } from "../../contract/files/paths.ts";
import { engineErrorOf, HelperRefusal } from "./refusals.ts";

/**
 * The files of one sandbox, as a command of its agent sees them, while it runs, stands still, or is stopped.
 *
 * - Everything is done by `helper.pl` as the agent (1000:1000, no capability), so what belongs to root of the sandbox can
 *   be read as far as its mode lets others, and is `forbidden` beyond that; what is read-only is `forbidden` too.
 * - Symbolic links are followed inside the sandbox's root, also by `put` and also where they lead to nothing yet;
 *   `delete` removes the link. Only regular files are read and written; those that the kernel makes up (`/proc`, `/sys`)
 *   are listed, but not read.
 * - `put` makes the directories that are missing (0755, the agent's), writes to a file of its own, and puts that in the
 *   place of the old one in one step: readers see the old bytes or the new. The permission bits of the old one stay
 *   (setuid and setgid go, as with every write), a new one has 0644 unless the mode is said. Its other names, if it has
 *   any (hard links), keep the old bytes. A file that the agent may not write is not replaced.
 *   One that is cut off, refused or fails leaves nothing. In memory (`/dev/shm`) nothing is put: it would be the node's.
 * - `isDurable`: success is said when file and directory are on the disk; otherwise when they are in the file system,
 *   which is as long as an ephemeral sandbox lasts.
 * - An entity tag changes with every change of a file: inode, size, and times of change in nanoseconds.
 */
export interface SandboxFiles {
  list(request: FilesListRequest, signal: AbortSignal): Promise<FilesListing>;
  stat(path: string, signal: AbortSignal): Promise<TaggedEntry>;
  get(request: FilesGetRequest, signal: AbortSignal): Promise<FilesGot>;
  put(request: FilesPutRequest, body: Readable, signal: AbortSignal): Promise<TaggedEntry & { created: boolean }>;
  delete(request: FilesDeleteRequest, signal: AbortSignal): Promise<void>;
  /**
   * Ends all that goes on. Resolves when no helper and no hold on the machine or its root is left: it must be called
   * before a machine's disk is unmounted, and when the machine starts or has ended. What is asked later begins anew.
   */
  end(): Promise<void>;
}

export type TaggedEntry = FileEntry & { etag: string };
/** `after`: only names above this one, by their bytes. */
export type FilesListRequest = { path: string; after?: string | undefined };
/** By name; `more` says that there are names above the last one. */
export type FilesListing = { entries: FileEntry[]; more: boolean };
/** Bytes from 0 on, `end` inclusive; a `start` below 0 means the last so many. */
export type FilesGetRequest = { path: string; start?: number | undefined; end?: number | undefined };
/** `size` is the whole file's; `end` is inclusive, and -1 for an empty one. The body errs where the file is cut short. */
export type FilesGot = TaggedEntry & { start: number; end: number; body: Readable };
export type FilesPutRequest = {
  path: string;
  /** Permission bits. */
  mode?: number | undefined;
  /** As the header; `*` asks that the file is there. */
  if_match?: string | undefined;
  /** Asks that there is no such file. */
  if_none_match?: "*" | undefined;
  /** Of the body, where it is known: a disk without room is noticed before it is sent. */
  size?: number | undefined;
};
export type FilesDeleteRequest = { path: string; recursive: boolean; if_match?: string | undefined };

export type SandboxFilesOptions = HelperPoolOptions & { isDurable: boolean };

const MAX_LIST_BYTES = 4 * 1024 * 1024;

/** How long one step of an operation may take. */
const QUICK_MS = 30_000;
const SLOW_MS = 310_000;

export function createSandboxFiles(options: SandboxFilesOptions): SandboxFiles {
  return new HelpedFiles(options);
}

type Lease = { helper: HelperProcess; end: () => void };

class HelpedFiles implements SandboxFiles {
  readonly #options: SandboxFilesOptions;
  readonly #pool: HelperPool;
  /** Conditions are looked at and changes made by one at a time, so that of two with the same one only one succeeds. */
  readonly #changes = new Semaphore(1);

  constructor(options: SandboxFilesOptions) {
    this.#options = options;
    this.#pool = new HelperPool(options);
  }

  async list({ path, after = "" }: FilesListRequest, signal: AbortSignal): Promise<FilesListing> {
    const fields = [bytesOfPath(path), bytesOfText(after), String(MAX_LIST_ENTRIES), String(MAX_LIST_BYTES)];
    return await this.#use(path, await this.#lease(signal), async (helper) => {
      const [more, ...listed] = await this.#within(QUICK_MS, helper, () => helper.ask("list", fields));
      const base = path.replace(/\/+$/, "");
      const entries: FileEntry[] = [];
      for (let at = 0; at < listed.length; at += 1 + ENTRY_FIELDS) {
        const name = textOfBytes(listed[at] ?? Buffer.alloc(0));
        const { etag: _etag, ...entry } = entryOf(`${base}/${name}`, listed.slice(at + 1, at + 1 + ENTRY_FIELDS));
        entries.push(entry);
      }
      return { entries, more: String(more) === "1" };
    });
  }

  async stat(path: string, signal: AbortSignal): Promise<TaggedEntry> {
    const fields = [bytesOfPath(path)];
    return await this.#use(path, await this.#lease(signal), async (helper) => {
      return entryOf(path, await this.#within(QUICK_MS, helper, () => helper.ask("stat", fields)));
    });
  }

  async get({ path, start, end }: FilesGetRequest, signal: AbortSignal): Promise<FilesGot> {
    const fields = [bytesOfPath(path), textOf(start), textOf(end)];
    const lease = await this.#lease(signal);
    const { helper } = lease;
    try {
      const answer = await this.#within(QUICK_MS, helper, () => helper.ask("get", fields));
      const [from = 0, to = 0] = answer.slice(ENTRY_FIELDS).map(Number);
      const body = new FileBody(helper, to - from, (isWhole) => {
        if (!isWhole) helper.kill(new Error("the file was not read to its end"));
        lease.end();
      });
      return { ...entryOf(path, answer), start: from, end: to - 1, body };
    } catch (error) {
      if (!(error instanceof HelperRefusal)) helper.kill(new Error("what it does is not known"));
      lease.end();
      throw publicError(error, path);
    }
  }

  async put(
    request: FilesPutRequest,
    body: Readable,
    signal: AbortSignal,
  ): Promise<TaggedEntry & { created: boolean }> {
    const { path, mode, if_match, if_none_match, size } = request;
    const fields = [
      bytesOfPath(path),
      textOf(mode),
      tagsField(if_match),
      if_none_match === undefined ? "0" : "1",
      textOf(size),
      String(MAX_FILE_BYTES),
      this.#options.isDurable ? "1" : "0",
    ];
    // One that is given up is put away in order, and one that is nearly done is done.
    const giveUp = (): void => void body.destroy(signal.reason as Error);
    const lease = await this.#lease(signal, giveUp);
    return await this.#use(path, lease, async (helper) => {
      await this.#within(QUICK_MS, helper, () => helper.ask("put", fields));
      const taken = helper.answer();
      taken.catch((error: unknown) => body.destroy(error instanceof Error ? error : undefined));
      await sendBody(helper, { body, size, taken });
      await helper.send("F");
      await this.#within(SLOW_MS, helper, () => taken);
      const answer = await this.#changes.run(async () => {
        await helper.send("C");
        return await this.#within(SLOW_MS, helper, () => helper.answer());
      });
      return { ...entryOf(path, answer), created: String(answer[ENTRY_FIELDS]) === "1" };
    });
  }

  async delete({ path, recursive, if_match }: FilesDeleteRequest, signal: AbortSignal): Promise<void> {
    const isDurable = this.#options.isDurable ? "1" : "0";
    const fields = [bytesOfPath(path), recursive ? "1" : "0", tagsField(if_match), isDurable];
    const remove = (helper: HelperProcess): Promise<Buffer[]> =>
      this.#within(SLOW_MS, helper, () => helper.ask("delete", fields));
    await this.#use(path, await this.#lease(signal), async (helper) => {
      await (if_match === undefined ? remove(helper) : this.#changes.run(() => remove(helper)));
    });
  }

  async end(): Promise<void> {
    await this.#pool.end(new EngineError("unavailable", "the sandbox has changed its state; ask again"));
  }

  /** A helper that is ended when the signal is aborted (unless `onAbort` does something else), until `end` gives it back. */
  async #lease(signal: AbortSignal, onAbort?: () => void): Promise<Lease> {
    const helper = await this.#pool.take(signal);
    const stop = onAbort ?? ((): void => helper.kill(signal.reason as Error));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const end = (): void => {
      signal.removeEventListener("abort", stop);
      this.#pool.give(helper);
    };
    return { helper, end };
  }

  /** One that fails otherwise than by a refusal is in the middle of something, and is not used again. */
  async #use<T>(path: string, { helper, end }: Lease, task: (helper: HelperProcess) => Promise<T>): Promise<T> {
    try {
      return await task(helper);
    } catch (error) {
      if (!(error instanceof HelperRefusal) && !(error instanceof CutOff))
        helper.kill(new Error("it is of no more use"));
      throw publicError(error instanceof CutOff ? error.cause : error, path);
    } finally {
      end();
    }
  }

  async #within<T>(timeoutMs: number, helper: HelperProcess, task: () => Promise<T>): Promise<T> {
    const late = new EngineError(
      "sandbox_timeout",
      `the sandbox's file system did not answer in ${timeoutMs / 1_000} s`,
    );
    const timer = this.#options.clock.after(timeoutMs, () => helper.kill(late));
    try {
      return await task();
    } finally {
      timer.cancel();
    }
  }
}

/** A body failed; the helper has put away what it had of it, and is in order. `cause` is why. */
class CutOff extends Error {}

/**
 * Sends the whole body. When the helper refuses it on the way (a full disk) the rest is not waited for.
 * `taken` is the helper's answer, which comes early only when it refuses.
 */
async function sendBody(
  helper: HelperProcess,
  { body, size, taken }: { body: Readable; size: number | undefined; taken: Promise<unknown> },
): Promise<void> {
  let sentBytes = 0;
  try {
    for await (const piece of body) {
      const bytes: unknown = piece;
      if (!(bytes instanceof Uint8Array)) throw new TypeError("the body of a file is not made of bytes");
      sentBytes += bytes.length;
      await helper.sendData(bytes);
      releaseShared(bytes);
    }
    if (size === undefined || size === sentBytes) return;
    throw new EngineError("bad_request", `${size} bytes were announced, and ${sentBytes} came`);
  } catch (error) {
    await helper.send("X");
    const answer: unknown = await taken.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const isGivenUp = answer instanceof HelperRefusal && answer.word === "given_up";
    throw isGivenUp ? new CutOff("the body was cut off", { cause: error }) : answer;
  }
}

/** Type, size, mode, seconds and nanoseconds of the last change, entity tag. */
const ENTRY_FIELDS = 6;

function entryOf(path: string, fields: readonly Buffer[]): TaggedEntry {
  const [type = "", size = "", mode = "", seconds = "", nanoseconds = "", etag = ""] = fields.map(String);
  return {
    path: `/${path
      .split("/")
      .filter((part) => part !== "" && part !== ".")
      .join("/")}`,
    size: Math.min(Number(size), Number.MAX_SAFE_INTEGER),
    is_dir: type === "d",
    mode: Number(mode),
    modified_at: timeOf(Number(seconds) * 1_000 + Math.floor(Number(nanoseconds) / 1e6)),
    etag,
  };
}

/** A file may have any time at all; `Date` ends 275,760 years from here. */
const MAX_DATE_MS = 8.64e15;

function timeOf(ms: number): string {
  return new Date(Math.max(-MAX_DATE_MS, Math.min(ms, MAX_DATE_MS))).toISOString();
}

function textOf(value: number | undefined): string {
  return value === undefined ? "" : String(value);
}

/** For the helper: tags by spaces. One that no file has stands for a list without a tag that could be meant. */
function tagsField(header: string | undefined): string {
  if (header === undefined) return "";
  const tags = parseEtags(header);
  if (tags === "*") return "*";
  return tags.filter((tag) => !tag.includes(" ")).join(" ") || '""';
}

function publicError(error: unknown, path: string): unknown {
  return error instanceof HelperRefusal ? engineErrorOf(error, path) : error;
}
