import { clock } from "./clock.ts";
import { tabStorage } from "./storage.ts";

/** What is typed and not lost: kept in the browser's own database, and cleared when somebody signs out. */
export type Draft = { id: string; title: string; text: string; language: "sql" | "kql"; limit: number };
export type Drafts = { tabs: readonly Draft[]; active: string };

const NAME = "engine-drafts";
const STORE = "pages";
const QUERY = "query";

/** Whose drafts this page writes. */
let owner: string | undefined;

/** Says who is signed in: drafts are handed over to a page of the same caller only. Another tab may sign somebody else in. */
export function draftsBelongTo(caller: string | undefined): void {
  owner = caller;
}

/** Typing writes once in a while, not at every key. */
const WRITE_AFTER_MS = 300;

/** The tabs of the query page, as they were left. */
export async function readDrafts(): Promise<Drafts | undefined> {
  const kept = await readDraft(QUERY);
  return isDrafts(kept) ? kept : undefined;
}

export function keepDrafts(drafts: Drafts): void {
  watchLeaving();
  write(QUERY, drafts);
}

/** What was kept under the key, perhaps by an earlier release: the caller checks it. */
export async function readDraft(key: string): Promise<unknown> {
  takeOver();
  return await within("readonly", (store) => store.get(key));
}

/** Drafts that wait to be written, by their keys. */
const waiting = new Map<string, unknown>();
/** Those whose write has begun. */
const underWay = new Map<string, unknown>();
let cancelWrite: (() => void) | undefined;

/** Keeps the draft under the key: in a moment, or at once when the tab is hidden or closed. */
export function keepDraft(key: string, draft: unknown): void {
  waiting.set(key, draft);
  watchLeaving();
  cancelWrite ??= clock.after(WRITE_AFTER_MS, writeWaiting);
  // An open connection lets a write begin while the page is being left.
  void connection();
}

/** The same listener is only added once. */
function watchLeaving(): void {
  document.addEventListener("visibilitychange", writeWhenHidden);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", comeBack);
}

export async function dropDraft(key: string): Promise<void> {
  waiting.delete(key);
  underWay.delete(key);
  await within("readwrite", (store) => store.delete(key));
}

/** Drops all of them, of every page. */
export async function clearDrafts(): Promise<void> {
  waiting.clear();
  underWay.clear();
  tabStorage.set(HANDED_OVER, undefined);
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
  for (const [key, draft] of drafts) write(key, draft);
}

function write(key: string, draft: unknown): void {
  underWay.set(key, draft);
  void within("readwrite", (store) => store.put(draft, key)).then(() => {
    if (underWay.get(key) === draft) underWay.delete(key);
  });
}

type HandedOver = { owner: string; atMs: number; drafts: [string, unknown][] };

const HANDED_OVER = "drafts";

/** The last write has arrived by then, and another tab may have written since. */
const TAKEN_WITHIN_MS = 60_000;

/**
 * Hands the drafts that are not in the database yet to the next page of this tab: on a busy machine that page may read the
 * database before the last write of this one arrives. Where the browser does not keep them, the database has to do.
 */
function leave(): void {
  const drafts = [...new Map([...underWay, ...waiting])];
  const given: HandedOver = { owner: owner ?? "", atMs: clock.nowMs(), drafts };
  if (drafts.length > 0) tabStorage.set(HANDED_OVER, JSON.stringify(given));
  writeWaiting();
}

/** The page comes back from the browser's cache, and has its drafts still. */
function comeBack({ persisted }: PageTransitionEvent): void {
  if (persisted) tabStorage.set(HANDED_OVER, undefined);
}

/** Writes what the page before handed over; called before a page reads. */
function takeOver(): void {
  for (const [key, draft] of takeHandedOver()) write(key, draft);
}

function takeHandedOver(): HandedOver["drafts"] {
  const text = tabStorage.get(HANDED_OVER) ?? "{}";
  tabStorage.set(HANDED_OVER, undefined);
  try {
    const given = JSON.parse(text) as Partial<HandedOver>;
    const isLate = clock.nowMs() - (given.atMs ?? 0) > TAKEN_WITHIN_MS;
    return isLate || given.owner !== owner ? [] : (given.drafts ?? []);
  } catch {
    // Not written by this page: it has no draft.
    return [];
  }
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
