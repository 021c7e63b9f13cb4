import { clock } from "./clock.ts";

/** What is typed and not lost: kept in the browser's own database, and cleared when somebody signs out. */
export type Draft = { id: string; title: string; text: string; language: "sql" | "kql"; limit: number };
export type Drafts = { tabs: readonly Draft[]; active: string };

const NAME = "engine-drafts";
const STORE = "pages";
const QUERY = "query";

/** Typing writes once in a while, not at every key. */
const WRITE_AFTER_MS = 300;

/** The tabs of the query page, as they were left. */
export async function readDrafts(): Promise<Drafts | undefined> {
  const kept = await readDraft(QUERY);
  return isDrafts(kept) ? kept : undefined;
}

export async function keepDrafts(drafts: Drafts): Promise<void> {
  await within("readwrite", (store) => store.put(drafts, QUERY));
}

/** What was kept under the key, perhaps by an earlier release: the caller checks it. */
export async function readDraft(key: string): Promise<unknown> {
  return await within("readonly", (store) => store.get(key));
}

/** Drafts that are not written yet, by their keys. */
const waiting = new Map<string, unknown>();
let cancelWrite: (() => void) | undefined;

/** Keeps the draft under the key: in a moment, or at once when the tab is hidden or closed. */
export function keepDraft(key: string, draft: unknown): void {
  waiting.set(key, draft);
  // The same listener is only added once.
  document.addEventListener("visibilitychange", writeWhenHidden);
  addEventListener("pagehide", writeWaiting);
  cancelWrite ??= clock.after(WRITE_AFTER_MS, writeWaiting);
  // An open connection lets a write begin while the page is being left.
  void connection();
}

export async function dropDraft(key: string): Promise<void> {
  waiting.delete(key);
  await within("readwrite", (store) => store.delete(key));
}

/** Drops all of them, of every page. */
export async function clearDrafts(): Promise<void> {
  waiting.clear();
  await within("readwrite", (store) => store.clear());
}

function writeWhenHidden(): void {
  if (document.visibilityState === "hidden") writeWaiting();
}

function writeWaiting(): void {
  cancelWrite?.();
  cancelWrite = undefined;
  const drafts = [...waiting];
  waiting.clear();
  for (const [key, draft] of drafts) void within("readwrite", (store) => store.put(draft, key));
}

let open: IDBDatabase | undefined;
let opening: Promise<IDBDatabase | undefined> | undefined;

/** One connection for all drafts; undefined where the browser keeps nothing: then drafts last as long as the page. */
async function connection(): Promise<IDBDatabase | undefined> {
  return open ?? (await (opening ??= connect()));
}

async function connect(): Promise<IDBDatabase | undefined> {
  const made = await new Promise<IDBDatabase | undefined>((resolve) => {
    if (typeof indexedDB === "undefined") return resolve(undefined);
    const request = indexedDB.open(NAME, 1);
    request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => resolve(undefined));
  });
  const forget = (): void => {
    open = undefined;
    opening = undefined;
  };
  made?.addEventListener("close", forget);
  made?.addEventListener("versionchange", () => {
    made.close();
    forget();
  });
  open = made;
  return made;
}

type Act<T> = (store: IDBObjectStore) => IDBRequest<T>;

/** Transactions run in the order of these calls. Begins before it returns where the connection is open. */
function within<T>(mode: IDBTransactionMode, act: Act<T>): Promise<T | undefined> {
  if (open !== undefined) return transact(open, mode, act);
  return connection().then((made) => (made === undefined ? undefined : transact(made, mode, act)));
}

function transact<T>(database: IDBDatabase, mode: IDBTransactionMode, act: Act<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const transaction = database.transaction(STORE, mode);
    const request = act(transaction.objectStore(STORE));
    transaction.addEventListener("complete", () => resolve(request.result));
    transaction.addEventListener("abort", () => resolve(undefined));
    // Else it would be committed once the request is answered: too late for a page that is being left.
    transaction.commit();
  });
}

function isDrafts(value: unknown): value is Drafts {
  const { tabs, active } = (value ?? {}) as Partial<Drafts>;
  return typeof active === "string" && Array.isArray(tabs) && tabs.length > 0 && tabs.every(isDraft);
}

function isDraft(value: unknown): value is Draft {
  const { id, title, text, language, limit } = (value ?? {}) as Partial<Draft>;
  const texts = [id, title, text].every((one) => typeof one === "string");
  return texts && (language === "sql" || language === "kql") && typeof limit === "number";
}
