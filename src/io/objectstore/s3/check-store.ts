import { untilAborted } from "../../../core/concurrency.ts";
import { StartupError, messageOf } from "../../../core/errors.ts";
import type { ObjectStore } from "../objectstore.ts";
import { ObjectStoreError } from "./requests.ts";

export type CheckOptions = {
  /** `ENGINE_PATH_PREFIX`: everything that the engine writes is below it. */
  prefix: string;
  /** Makes the name of the object that is tried, so that two servers that start together do not meet. */
  newId: () => string;
  /** Ends the check; its reason is thrown. */
  signal?: AbortSignal;
};

/**
 * Tries a store before anything relies on it: writes a small object below `<prefix>/_check/`, reads it, finds it in a
 * listing and deletes it. Throws `StartupError` with one sentence that says which of these failed and why: exit code 2
 * where the settings are wrong, 1 where the store is.
 */
export async function checkStore(store: ObjectStore, options: CheckOptions): Promise<void> {
  const { signal = new AbortController().signal } = options;
  signal.throwIfAborted();
  await untilAborted(tryStore(store, options), signal);
}

async function tryStore(store: ObjectStore, { prefix, newId }: CheckOptions): Promise<void> {
  const folder = `${prefix}/_check/`;
  const key = folder + newId();
  const content = Buffer.from(`written by the start-up check of the engine as ${key}\n`);
  await step(`write ${key}`, () => store.put(key, content));
  try {
    await step(`read back ${key}`, () => expectContent(store, key, content));
    await step(`list ${folder}`, () => expectListed(store, key, content.length));
  } catch (error) {
    // The first failure is the one to tell; that this fails as well would add nothing.
    await Promise.allSettled([store.delete([key])]);
    throw error;
  }
  await step(`delete ${key}`, () => store.delete([key]));
  await step(`see that ${key} is deleted`, () => expectDeleted(store, key));
}

/** Runs a step; `what` completes "cannot …". */
async function step(what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const [problem, exitCode] =
      error instanceof ObjectStoreError
        ? ([error.failure.problem, error.failure.misconfigured ? 2 : 1] as const)
        : ([messageOf(error), 1] as const);
    throw new StartupError(`object store: cannot ${what}: ${problem}`, exitCode, error);
  }
}

async function expectContent(store: ObjectStore, key: string, content: Buffer): Promise<void> {
  const found = await store.get(key);
  if (Buffer.compare(found, content) !== 0) throw new Error("it holds other bytes than were written");
}

async function expectListed(store: ObjectStore, key: string, sizeBytes: number): Promise<void> {
  for await (const info of store.list(key)) {
    if (info.key !== key) continue;
    if (info.sizeBytes === sizeBytes) return;
    throw new Error(`it is listed with ${info.sizeBytes} bytes, and ${sizeBytes} were written`);
  }
  throw new Error("what was just written is not listed");
}

async function expectDeleted(store: ObjectStore, key: string): Promise<void> {
  if ((await store.head(key)) !== undefined) throw new Error("it is still there");
}
