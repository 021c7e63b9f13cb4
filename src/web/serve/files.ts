import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

/** A built file with its smaller forms, all in memory: requests touch no disk, and no path of a request names a file. */
export type WebFile = {
  type: string;
  /** Of the content; each encoding has a tag of its own, as RFC 9110 §8.8.3 asks. */
  hash: string;
  bodies: { identity: Uint8Array; br?: Uint8Array; gzip?: Uint8Array };
};

/** What `scripts/web/build.ts` has made. */
export type WebFiles = {
  /** The text of the one page, with `NONCE_MARK` where the nonce of a response goes. */
  page: string;
  /** By their paths below `/ui/`. */
  assets: ReadonlyMap<string, WebFile>;
};

/** Stands for the nonce in the built page. */
export const NONCE_MARK = "__NONCE__";

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  wasm: "application/wasm",
  woff2: "font/woff2",
};

const gunzipAll = promisify(gunzip);

/** Resolves to undefined where nothing was built. */
export async function readWebFiles(folder: string): Promise<WebFiles | undefined> {
  const names = await namesIn(folder);
  if (!names.includes("index.html")) return undefined;
  const page = await readFile(join(folder, "index.html"), "utf8");
  // Of large files only the smaller forms are there.
  const whole = new Set(names.filter((name) => name !== "index.html").map((name) => name.replace(/\.(br|gz)$/, "")));
  const assets = [...whole].map(async (name) => [name, await readAsset(folder, name, names)] as const);
  return { page, assets: new Map(await Promise.all(assets)) };
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function readAsset(folder: string, name: string, names: readonly string[]): Promise<WebFile> {
  const read = async (form: string) => (names.includes(form) ? await readFile(join(folder, form)) : undefined);
  const [br, gzip] = await Promise.all([read(`${name}.br`), read(`${name}.gz`)]);
  const identity = (await read(name)) ?? (await gunzipAll(gzip ?? new Uint8Array()));
  return {
    type: TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    hash: createHash("sha256").update(identity).digest("base64url").slice(0, 22),
    bodies: { identity, ...(br && { br }), ...(gzip && { gzip }) },
  };
}
