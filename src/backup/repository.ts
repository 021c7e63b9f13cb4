import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { EngineError, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { linesOf } from "../core/lines.ts";
import { ObjectNotFound, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { readPieces } from "../io/objectstore/read-pieces.ts";
import {
  manifestText,
  parseManifest,
  parseObjectLine,
  parseObjectName,
  type BackupObject,
  type CatalogFile,
  type Manifest,
} from "./manifest.ts";

/** A backup that is there; `problem` instead of the manifest where that cannot be used. */
export type Listed = { id: string; manifest: Manifest } | { id: string; problem: string };

/** Something in a destination is not as a backup was made. `file` is its name there. */
export class DamagedBackup extends EngineError {
  readonly file: string;
  constructor(file: string, what: string) {
    super("conflict", `${file}: ${what}`);
    this.name = "DamagedBackup";
    this.file = file;
  }
}

/** Statistics of thousands of columns are in one line. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const MANIFEST_MAX_BYTES = 16 * 1024 * 1024;
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function isBackupId(text: string): boolean {
  return ID.test(text);
}

/** Backups in one destination. */
export class Repository {
  readonly store: ObjectStore;
  readonly #prefix: string;

  /** @param prefix "" or what all names start with, ending in a slash */
  constructor(store: ObjectStore, prefix: string) {
    this.store = store;
    this.#prefix = prefix;
  }

  /** The key in the store of a name in the destination. */
  keyOf(name: string): string {
    return this.#prefix + name;
  }

  /** All names below, and the size and time of each. */
  async *names(folder: string): AsyncGenerator<{ name: string; sizeBytes: number; modifiedAtMs: number }> {
    for await (const { key, sizeBytes, modifiedAtMs } of this.store.list(this.keyOf(`${folder}/`))) {
      yield { name: key.slice(this.#prefix.length), sizeBytes, modifiedAtMs };
    }
  }

  async put(name: string, text: string): Promise<void> {
    await this.store.put(this.keyOf(name), Buffer.from(text));
  }

  async delete(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.store.delete(names.map((name) => this.keyOf(name)));
  }

  /** The oldest first. */
  async list(): Promise<Listed[]> {
    const ids: string[] = [];
    for await (const { name } of this.names("backups")) {
      const [, id = ""] = /^backups\/([^/]+)\/manifest\.json$/.exec(name) ?? [];
      if (isBackupId(id)) ids.push(id);
    }
    return await Promise.all(ids.toSorted().map((id) => this.#listed(id)));
  }

  /** The backup of that id, or the newest. Throws `not_found` and `DamagedBackup`. */
  async find(id: string | undefined): Promise<Manifest> {
    if (id !== undefined && !isBackupId(id))
      throw new EngineError("not_found", `${JSON.stringify(id)} is no id of a backup`);
    const wanted = id ?? (await this.list()).at(-1)?.id;
    if (wanted === undefined) throw new EngineError("not_found", "there is no backup here");
    const found = await this.#listed(wanted);
    if ("problem" in found) throw new DamagedBackup(manifestName(wanted), found.problem);
    return found.manifest;
  }

  async #listed(id: string): Promise<Listed> {
    try {
      const bytes = await this.store.get(this.keyOf(manifestName(id)), { length: MANIFEST_MAX_BYTES });
      const parsed = parseManifest(Buffer.from(bytes).toString("utf8"), id);
      return typeof parsed === "string" ? { id, problem: parsed } : { id, manifest: parsed };
    } catch (error) {
      if (!(error instanceof ObjectNotFound)) throw error;
      throw new EngineError("not_found", `there is no backup ${id} here`);
    }
  }

  /** Makes the backup be there. */
  async publish(manifest: Manifest): Promise<void> {
    await this.put(manifestName(manifest.id), manifestText(manifest));
  }

  /** Writes a file of a catalog; resolves to what the manifest says of it. */
  async writeFile(id: string, table: string, { lines, tempDir, newId, signal }: WriteOptions): Promise<CatalogFile> {
    const path = join(tempDir, `${newId()}.zst`);
    let rows = -1;
    const sha = createHash("sha256");
    let sizeBytes = 0;
    const counted = async function* (): AsyncGenerator<string> {
      for await (const line of lines) {
        rows += line.length;
        yield line.map((value) => `${JSON.stringify(value)}\n`).join("");
      }
    };
    const tap = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        sha.update(chunk);
        sizeBytes += chunk.length;
        done(null, chunk);
      },
    });
    try {
      const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 1 } });
      await pipeline(Readable.from(counted()), compress, tap, createWriteStream(path, { mode: 0o600 }), {
        ...(signal !== undefined && { signal }),
      });
      await this.store.putFile(this.keyOf(fileName(id, table)), path, { ...(signal !== undefined && { signal }) });
      return { rows, size_bytes: sizeBytes, sha256: sha.digest("hex") };
    } finally {
      await rm(path, { force: true });
    }
  }

  /** The lines of a file of a catalog, as values. Throws `DamagedBackup`, at the end when only the hash tells. */
  async *readFile(id: string, table: string, file: CatalogFile): AsyncGenerator {
    const name = fileName(id, table);
    const info = await this.store.head(this.keyOf(name));
    if (info === undefined) throw new DamagedBackup(name, "it is missing");
    if (info.sizeBytes !== file.size_bytes) {
      throw new DamagedBackup(name, `it has ${info.sizeBytes} bytes, not ${file.size_bytes}`);
    }
    const sha = createHash("sha256");
    const pieces = async function* (store: ObjectStore): AsyncGenerator<Uint8Array> {
      for await (const piece of readPieces(store, info)) {
        sha.update(piece);
        yield piece;
      }
    };
    const expand = createZstdDecompress();
    const moving = pipeline(Readable.from(pieces(this.store)), expand);
    // The reader hears of it.
    moving.catch(() => undefined);
    let rows = -1;
    try {
      const tooLong = (): Error => new DamagedBackup(name, "a line is too long");
      for await (const line of linesOf(expand, { maxLineBytes: MAX_LINE_BYTES, tooLong })) {
        rows++;
        yield JSON.parse(line) as unknown;
      }
    } catch (error) {
      if (error instanceof EngineError || error instanceof ObjectNotFound) throw error;
      throw new DamagedBackup(name, `it cannot be read: ${messageOf(error)}`);
    } finally {
      expand.destroy();
    }
    if (sha.digest("hex") !== file.sha256) throw new DamagedBackup(name, "its SHA-256 is not that of the manifest");
    if (rows !== file.rows) throw new DamagedBackup(name, `it has ${rows} rows, not ${file.rows}`);
  }

  /** The objects that a backup needs. */
  async *objects({ id, objects }: Manifest): AsyncGenerator<BackupObject> {
    let isFirst = true;
    for await (const line of this.readFile(id, OBJECTS, objects)) {
      if (isFirst) {
        isFirst = false;
        continue;
      }
      const object = parseObjectLine(line);
      if (object === undefined) throw new DamagedBackup(fileName(id, OBJECTS), "a line names no object");
      yield object;
    }
  }

  /** Copies of objects that are here, whoever needs them: sizes by name. */
  async copies(): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for await (const { name, sizeBytes } of this.names("objects")) {
      if (parseObjectName(name) !== undefined) found.set(name, sizeBytes);
    }
    return found;
  }
}

type WriteOptions = {
  /** In batches; the first line says what the others are. */
  lines: AsyncIterable<readonly unknown[]>;
  /** A folder for this alone. */
  tempDir: string;
  newId: IdSource;
  signal?: AbortSignal;
};

/** The file of the objects; no table is called so. */
export const OBJECTS = "objects";

export function manifestName(id: string): string {
  return `backups/${id}/manifest.json`;
}

export function fileName(id: string, table: string): string {
  return `backups/${id}/${table}.ndjson.zst`;
}
