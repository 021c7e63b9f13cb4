import { hash } from "node:crypto";
import { z } from "zod";
import { CHECKSUM } from "../format/checksum.ts";

/**
 * What lies in a destination.
 *
 *     backups/<id>/<table>.ndjson.zst     the catalog: the columns in the first line, then a row a line
 *     backups/<id>/objects.ndjson.zst     the objects that it needs: key, size, checksum, when it reached the store
 *     backups/<id>/manifest.json          written last; without it there is no backup
 *     objects/<2>/<key hash>-<checksum>   objects of the store, shared by all backups
 *     running/<id>, pruning/<id>          who works here now (`marks.ts`)
 *
 * No name in a destination is ever read from it: names follow from ids and hashes, so a manifest that somebody changed
 * cannot name another file.
 */
const SHA256 = /^[0-9a-f]{64}$/;
const count = z.int().min(0);
const file = { rows: count, size_bytes: count, sha256: z.string().regex(SHA256) };

export const MANIFEST_FORMAT = 1;

const manifestSchema = z.strictObject({
  format: z.literal(MANIFEST_FORMAT),
  id: z.uuid(),
  created_at: z.iso.datetime(),
  engine_version: z.string().max(100),
  /** How many migrations the catalog had seen, and would have seen in the other database. */
  schema: z.strictObject({ sqlite: count, postgres: count }),
  snapshot: count,
  /** What the keys of all objects start with. */
  key_prefix: z.string().min(1).max(256),
  tables: z.array(z.strictObject({ name: z.string().regex(/^[a-z][a-z0-9_]{0,62}$/), ...file })).max(1_000),
  objects: z.strictObject({ ...file, total_bytes: count }),
});

export type Manifest = z.output<typeof manifestSchema>;
export type CatalogFile = Pick<Manifest["objects"], "rows" | "size_bytes" | "sha256">;

/** The text of a manifest: with its own hash, by which a changed one is found. */
export function manifestText(manifest: Manifest): string {
  const body = JSON.stringify(manifest);
  return `{"manifest":${body},"sha256":"${hash("sha256", body)}"}\n`;
}

/** What is wrong with the text, as a sentence; or the manifest. */
export function parseManifest(text: string, id: string): Manifest | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "it is not JSON";
  }
  if (typeof value !== "object" || value === null || !("manifest" in value) || !("sha256" in value)) {
    return "it has no manifest with a hash";
  }
  if (hash("sha256", JSON.stringify(value.manifest)) !== value.sha256) return "its hash is another one";
  const format: unknown = Reflect.get(Object(value.manifest), "format");
  if (typeof format === "number" && format > MANIFEST_FORMAT) {
    return `it has format ${format}; this program knows ${MANIFEST_FORMAT}: use a newer version`;
  }
  const parsed = manifestSchema.safeParse(value.manifest);
  if (!parsed.success) return parsed.error.issues[0]?.message ?? "it is not accepted";
  return parsed.data.id === id ? parsed.data : `it is that of ${parsed.data.id}`;
}

/** An object that a backup needs. */
export type BackupObject = {
  key: string;
  sizeBytes: number;
  /** As `src/format/checksum.ts` has it. */
  checksum: string;
  /** When a staged write reached the store. */
  reachedAtMs?: number;
};

export function objectLine({ key, sizeBytes, checksum, reachedAtMs = 0 }: BackupObject): unknown[] {
  return [key, sizeBytes, checksum, reachedAtMs];
}

const lineSchema = z.tuple([
  z.string().min(1).max(1_024),
  count,
  z.string().regex(CHECKSUM),
  count.max(9_999_999_999_999),
]);

/** Undefined for a line that `objectLine` never makes. */
export function parseObjectLine(line: unknown): BackupObject | undefined {
  const parsed = lineSchema.safeParse(line);
  if (!parsed.success) return undefined;
  const [key, sizeBytes, checksum, reachedAtMs] = parsed.data;
  return { key, sizeBytes, checksum, ...(reachedAtMs > 0 && { reachedAtMs }) };
}

/** What the names of all copies of an object of that key start with, below `objects/`. */
export function keyHashOf(key: string): string {
  return hash("sha256", key);
}

/** The name of the copy of an object in a destination. */
export function objectName({ key, checksum }: Pick<BackupObject, "key" | "checksum">): string {
  const keyHash = keyHashOf(key);
  return `objects/${keyHash.slice(0, 2)}/${keyHash}-${checksum.replace(":", "-")}`;
}

const OBJECT_NAME = /^objects\/[0-9a-f]{2}\/([0-9a-f]{64})-(crc32)-([0-9a-f]{8})$/;

/** The hash of the key and the checksum that the name of a copy tells; undefined for another file. */
export function parseObjectName(name: string): { keyHash: string; checksum: string } | undefined {
  const [, keyHash, kind, digits] = OBJECT_NAME.exec(name) ?? [];
  return keyHash === undefined ? undefined : { keyHash, checksum: `${kind}:${digits}` };
}
