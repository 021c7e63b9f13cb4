import { linkSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { nextTurn } from "../../core/clock.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { LocalExtent, ResolvedTable } from "../contract/tables.ts";

/**
 * Gives a query process the extents of its query and no others: as links in its input folder, which is the only place
 * where it may read. A hard link costs 10 µs, and keeps the bytes until the query is done with them, whoever deletes
 * the extent meanwhile; on another file system it is a symbolic one, which the process may follow where its confinement
 * was told of the folder (`QueryProcess`).
 */
export type LentFiles = {
  /** The tables, with the paths that the process opens. */
  tables: ResolvedTable[];
  /** Takes the files away. */
  release(): Promise<void>;
};

/** The links cannot be hard: another file system, one without them, or as many as a file may have. */
const NEEDS_SYMLINK = new Set(["EXDEV", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EACCES"]);

/** The folder may only be read, so a link in it cannot be tried. */
const READ_ONLY = new Set(["EROFS", "EACCES", "EPERM"]);

/**
 * Whether files of one folder can be given to processes whose folders are in the other: tried with a file. Where they
 * cannot, links are symbolic, and the processes must be let into the folder.
 */
export function canLend(from: string, to: string): boolean {
  const folders: string[] = [];
  const make = (prefix: string): string => {
    const folder = mkdtempSync(prefix);
    folders.push(folder);
    return folder;
  };
  try {
    const own = join(make(join(from, ".lend-")), "file");
    writeFileSync(own, "");
    linkSync(own, join(make(join(to, "lend-")), "file"));
    return true;
  } catch (error) {
    const code = systemCodeOf(error) ?? "";
    if (NEEDS_SYMLINK.has(code) || READ_ONLY.has(code)) return false;
    throw error;
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}

/** Links that are made, or taken away, before the event loop has its turn. */
const LINKS_AT_ONCE = 64;

/** An extent that is not there has no link: the process says so. */
export async function lendFiles(folder: string, tables: readonly ResolvedTable[]): Promise<LentFiles> {
  const paths = tables.flatMap(({ extents }) => extents.map(({ path }) => path));
  const { links, release } = await lendPaths(folder, paths);
  const lent = (extent: LocalExtent): LocalExtent => ({ ...extent, path: links.get(extent.path) ?? extent.path });
  return { tables: tables.map((table) => ({ ...table, extents: table.extents.map(lent) })), release };
}

/** The same for any files: `links` has the path that the process opens by the file's own. */
export async function lendPaths(
  folder: string,
  paths: readonly string[],
): Promise<{ links: ReadonlyMap<string, string>; release: () => Promise<void> }> {
  const links = new Map<string, string>();
  const taken = new Set<string>();
  for (const path of paths) {
    if (links.has(path)) continue;
    const name = freeName(basename(path), taken);
    taken.add(name);
    links.set(path, join(folder, name));
  }
  const release = (): Promise<void> => inTurns([...links.values()], remove);
  try {
    await inTurns([...links], ([path, own]) => place(path, own));
  } catch (error) {
    await release();
    throw error;
  }
  return { links, release };
}

/** The names of extents are their ids; a table read at two snapshots may have one extent in two files. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let i = 1; taken.has(free); i++) free = `${i}-${name}`;
  return free;
}

function place(path: string, own: string): void {
  try {
    linkSync(path, own);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "ENOENT") return;
    if (code === undefined || !NEEDS_SYMLINK.has(code)) throw error;
    symlinkSync(path, own);
  }
}

function remove(own: string): void {
  try {
    unlinkSync(own);
  } catch (error) {
    // The extent was missing, or the process ended and its folder with it.
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
}

/** A call takes 10 µs; by way of the thread pool it would take four times as much of the processor. */
async function inTurns<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  for (let at = 0; at < items.length; at += LINKS_AT_ONCE) {
    if (at > 0) await nextTurn();
    for (const item of items.slice(at, at + LINKS_AT_ONCE)) work(item);
  }
}
