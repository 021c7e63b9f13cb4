import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, basename, normalize, relative } from "node:path";
import { bucketName, keyPrefix } from "../config/kinds.ts";
import { EngineError, systemCodeOf } from "../core/errors.ts";

/** Where backups lie. */
export type Destination = { kind: "folder"; path: string } | { kind: "s3"; bucket: string; prefix: string };

const MAX_CHARS = 1_024;
const ANYWHERE = { userHome: "/", baseDir: "/" };

/** Undefined for what names neither an absolute folder nor `s3://bucket[/prefix]`. */
export function parseDestination(text: string): Destination | undefined {
  if (text.length > MAX_CHARS || text.includes("\0")) return undefined;
  const s3 = /^s3:\/\/([^/]*)\/?(.*?)\/?$/.exec(text);
  if (s3 === null) return isAbsolute(text) ? { kind: "folder", path: withoutSlash(normalize(text)) } : undefined;
  const [, bucket = "", prefix = ""] = s3;
  if (bucketName.parse(bucket, ANYWHERE) === undefined) return undefined;
  // The alphabet leaves no room for `..`, empty segments and whatever else a server may understand.
  if (prefix !== "" && keyPrefix.parse(prefix, ANYWHERE) === undefined) return undefined;
  return { kind: "s3", bucket, prefix };
}

export function showDestination(destination: Destination): string {
  if (destination.kind === "folder") return destination.path;
  return `s3://${destination.bucket}${destination.prefix === "" ? "" : `/${destination.prefix}`}`;
}

/**
 * Throws `forbidden` for a destination that is none of the allowed ones and lies below none. Folders are compared as they
 * really are, so that neither `..` nor a symbolic link leads out.
 */
export async function checkAllowed(destination: Destination, allowed: readonly string[]): Promise<void> {
  for (const text of allowed) {
    const place = parseDestination(text);
    if (place !== undefined && (await liesWithin(destination, place))) return;
  }
  // Paths of the server's machine are not for those who see its jobs.
  const what = "the server may not write backups to that destination";
  throw new EngineError("forbidden", `${what}: it must be at or below one that ENGINE_BACKUP_DESTINATIONS names there`);
}

async function liesWithin(destination: Destination, place: Destination): Promise<boolean> {
  if (destination.kind === "s3") {
    if (place.kind !== "s3" || destination.bucket !== place.bucket) return false;
    const { prefix } = place;
    return prefix === "" || destination.prefix === prefix || destination.prefix.startsWith(`${prefix}/`);
  }
  if (place.kind !== "folder") return false;
  const way = relative(await realFolder(place.path), await realFolder(destination.path));
  return way === "" || (!isAbsolute(way) && way.split("/")[0] !== "..");
}

/** Where the folder is, or would be made, with all links followed. */
async function realFolder(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
    return join(await realFolder(dirname(path)), basename(path));
  }
}

function withoutSlash(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, "") : path;
}
