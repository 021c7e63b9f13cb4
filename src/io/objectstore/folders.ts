import { constants } from "node:fs";
import { access, mkdir, open, rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";

/**
 * Folders whose entries survive a power cut.
 *
 * A new or renamed file is durable only once its folder is synced, and the folder only once its own entry is, up to
 * one that was durable before. A folder that exists already proves nothing: a run that was killed between `mkdir` and
 * `fsync` left one just like it, so every folder's entry is synced once per process, and its readiness then remembered.
 *
 * After a failed fsync the kernel calls the lost pages clean, and the next fsync succeeds without having written them
 * (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020). So a failure fails every change
 * that was under way at that moment, whichever fsync was going to cover it; nothing is ever acknowledged by a second
 * attempt, and a folder just made is removed again, so that the next attempt makes a new entry.
 */
export class DurableFolders {
  readonly #root: string;
  /** Folder → resolved once its entry and those of its ancestors are durable. */
  readonly #ready = new Map<string, Promise<void>>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();
  #failures = 0;

  /** `root` exists, is durable, and is never made here: when it is gone, its data is gone too. */
  constructor(root: string) {
    this.#root = root;
  }

  /** Makes a folder below the root, with its ancestors, durably. Callers that overlap share the work and its outcome. */
  ensure(folder: string): Promise<void> {
    if (folder === this.#root) return Promise.resolve();
    const known = this.#ready.get(folder);
    if (known !== undefined) return known;
    const made = this.#make(folder);
    this.#ready.set(folder, made);
    made.catch(() => this.#ready.delete(folder));
    if (this.#ready.size > REMEMBERED_FOLDERS) this.#forgetOldest();
    return made;
  }

  /** Forgets that a folder and its ancestors were ever made; for when they turn out to be gone. */
  forget(folder: string): void {
    for (let f = folder; f !== this.#root && f.startsWith(this.#root); f = dirname(f)) this.#ready.delete(f);
  }

  /** Applies `change` to the entries of an existing folder (a rename, an unlink) and makes it durable. */
  async change(folder: string, change: () => Promise<void>): Promise<void> {
    const failuresBefore = this.#failures;
    await change();
    await this.#sync(folder);
    if (this.#failures !== failuresBefore) throw new Error(`a sync that failed may have taken changes of ${folder}`);
  }

  async #make(folder: string): Promise<void> {
    const parent = dirname(folder);
    await this.ensure(parent);
    let made = false;
    try {
      await this.change(parent, async () => {
        made = await makeFolder(folder);
      });
    } catch (error) {
      // Nobody can have put anything into it: all who need it wait for this promise.
      if (made) await rmdir(folder).catch(() => undefined);
      throw error;
    }
  }

  /** Syncs a folder by an fsync that starts after this call; those that queue up behind a running one share the next. */
  #sync(folder: string): Promise<void> {
    const waiting = this.#waiting.get(folder);
    if (waiting !== undefined) return waiting;
    const running = this.#running.get(folder);
    if (running === undefined) return this.#start(folder);
    const start = () => {
      this.#waiting.delete(folder);
      return this.#start(folder);
    };
    const next = running.then(start, start);
    this.#waiting.set(folder, next);
    return next;
  }

  #start(folder: string): Promise<void> {
    const started = syncFolder(folder, () => this.#failures++).finally(() => this.#running.delete(folder));
    this.#running.set(folder, started);
    return started;
  }

  #forgetOldest(): void {
    const oldest = this.#ready.keys().next().value;
    if (oldest !== undefined) this.#ready.delete(oldest);
  }
}

/** A folder that fell out of memory costs one superfluous `mkdir` and `fsync` when it is used again. */
const REMEMBERED_FOLDERS = 10_000;

/** Makes a folder and its missing ancestors, wherever they are, durably. */
export async function makeFolderChain(folder: string): Promise<void> {
  const missing: string[] = [];
  for (let f = folder; !(await exists(f)); f = dirname(f)) missing.unshift(f);
  for (const f of missing) {
    await makeFolder(f);
    await syncFolder(dirname(f));
  }
  if (missing.length > 0) return;
  // A killed run may have made the folder and not synced it. A parent that may not be opened was not written by us.
  await syncFolder(dirname(folder)).catch((error: unknown) => {
    if (systemCodeOf(error) !== "EACCES" && systemCodeOf(error) !== "EPERM") throw error;
  });
}

export async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** For its owner alone, whatever the umask. Resolves to whether the folder was made; false when there is an entry of that name already. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** `onLoss` is called when the fsync itself fails: entries may be lost that a later fsync will not report. */
async function syncFolder(path: string, onLoss?: () => void): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } catch (error) {
    onLoss?.();
    throw error;
  } finally {
    await handle.close();
  }
}
