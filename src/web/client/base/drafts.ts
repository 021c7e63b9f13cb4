/** What is typed and not lost: kept in the browser's own database, and cleared when somebody signs out. */
export type Draft = { id: string; title: string; text: string; language: "sql" | "kql"; limit: number };
export type Drafts = { tabs: readonly Draft[]; active: string };

const NAME = "engine-drafts";
const STORE = "pages";
const KEY = "query";

function opened(): Promise<IDBDatabase | undefined> {
  return new Promise((resolve) => {
    // Without it (a private window) drafts last as long as the page.
    const request = typeof indexedDB === "undefined" ? undefined : indexedDB.open(NAME, 1);
    if (request === undefined) {
      resolve(undefined);
      return;
    }
    request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => resolve(undefined));
  });
}

async function within<T>(
  mode: IDBTransactionMode,
  act: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T | undefined> {
  const database = await opened();
  if (database === undefined) return undefined;
  try {
    return await new Promise<T | undefined>((resolve) => {
      const request = act(database.transaction(STORE, mode).objectStore(STORE));
      request.addEventListener("success", () => resolve(request.result));
      request.addEventListener("error", () => resolve(undefined));
    });
  } finally {
    database.close();
  }
}

export async function readDrafts(): Promise<Drafts | undefined> {
  const kept: unknown = await within("readonly", (store) => store.get(KEY));
  return isDrafts(kept) ? kept : undefined;
}

export async function keepDrafts(drafts: Drafts): Promise<void> {
  await within("readwrite", (store) => store.put(drafts, KEY));
}

export async function clearDrafts(): Promise<void> {
  await within("readwrite", (store) => store.clear());
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
