import { existsSync } from "node:fs";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { hash } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import { load } from "../config/option-samples.test-kit.ts";
import { lacks } from "../core/gates.test-kit.ts";
import { EngineError } from "../core/errors.ts";
import { createMetrics } from "../core/metrics.ts";
import { systemRandom } from "../core/random.ts";
import { standInJob, type StandInJob } from "../fabric/running-job.test-kit.ts";
import type { FeatureDeps } from "../feature/feature.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { mountTmpfs, unmount } from "../io/objectstore/tmpfs.test-kit.ts";
import { keysIn, newId, openStoreIn, openWorld, PORTS, type World } from "./backup.test-kit.ts";
import { checkAllowed, parseDestination } from "./destination.ts";
import { BACKUP, backupHandler } from "./job.ts";
import { manifestText, objectName } from "./manifest.ts";
import { Mark } from "./marks.ts";
import { withRepository, type Access } from "./open-destination.ts";
import { pruneBackups } from "./prune.ts";
import { Repository } from "./repository.ts";
import { verifyBackups } from "./verify.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const STAGED = `engine/_staged/node-1/${newId()}`;

/** A store whose calls are changed. */
function changed(store: ObjectStore, changes: Partial<ObjectStore>): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

async function restoredExtents(into: string): Promise<string[]> {
  const catalog = await world.open(into);
  const [table] = await catalog.allTables();
  const extents = await catalog.extents(table?.id ?? 0, (await catalog.head()).id);
  await catalog.verify();
  await catalog.close();
  return extents.map(({ key }) => key);
}

describe("create and restore", () => {
  test("brings back extents, staged writes and what was set aside; a second backup copies what is new", async () => {
    const keys = [await world.addExtent(), await world.addExtent()];
    await world.store.put(STAGED, Buffer.from("staged"));
    await world.store.put("engine/_damaged/node-1/x", Buffer.from("damaged"));
    await world.store.put("engine/_exports/default/j/1.parquet", Buffer.from("an export"));
    expect(await world.create()).toMatchObject({ objects: 4, objects_copied: 4 });
    keys.push(await world.addExtent());
    expect(await world.create()).toMatchObject({ objects: 5, objects_copied: 1, bytes_copied: 1_000 });
    expect(await world.create()).toMatchObject({ objects: 5, objects_copied: 0 });
    expect(await world.restore("r")).toMatchObject({ objects: 5 });
    expect((await restoredExtents("r")).toSorted()).toEqual(keys.toSorted());
    const there = await openStoreIn(join(world.folder, "r/data"));
    for (const key of keys) expect(await there.get(key)).toEqual(await world.store.get(key));
    // It says when it first reached a store, which is not when it was restored.
    const [staged = ""] = await keysIn(there, "engine/_staged/");
    const reachedAtMs = (await world.store.head(STAGED))?.modifiedAtMs;
    expect(staged).toBe(STAGED.replace("node-1", `node-1@${Math.floor(reachedAtMs ?? 0)}`));
    expect(await keysIn(there, "engine/_exports/")).toEqual([]);
    expect(existsSync(join(world.folder, "tmp"))).toBe(true);
    expect(await keysIn(world.destination, "running/")).toEqual([]);
  });

  test("a staged write that is committed while the backup is made is in it once", async () => {
    const id = STAGED.split("/").at(-1) ?? "";
    await world.store.put(STAGED, Buffer.from("staged"));
    const list = world.store.list.bind(world.store);
    const store = changed(world.store, {
      list: async function* (prefix) {
        yield* list(prefix);
        if (!prefix.includes("_staged")) return;
        // The committer, after the listing and before the copy.
        const { aFlush } = await import("../catalog/contract-fixtures.test-kit.ts");
        await world.catalog.commit([aFlush(world.table, { staged: id, extents: [] })]);
      },
    });
    expect(await world.create({ store })).toMatchObject({ objects: 0, objects_copied: 1 });
    await world.restore("r");
    const catalog = await world.open("r");
    expect(await catalog.committedStaged([id])).toEqual([id]);
    await catalog.close();
    // One that went before its copy could be made.
    await world.store.put(`${STAGED.slice(0, -1)}0`, Buffer.from("gone"));
    const gone = changed(world.store, {
      list: async function* (prefix) {
        for await (const info of list(prefix)) {
          await world.store.delete([info.key]);
          yield info;
        }
      },
    });
    expect(await world.create({ store: gone })).toMatchObject({ objects: 0 });
  });

  test("nothing that the backup needs is deleted while it is made", async () => {
    await world.addExtent();
    let isHeld: boolean | undefined;
    const copyFrom = world.destination.copyFrom?.bind(world.destination);
    const watched = changed(world.destination, {
      copyFrom: async (...args) => {
        const { id } = await world.catalog.head();
        await world.addExtent();
        isHeld = (await world.catalog.expireSnapshots(id + 1)).id === 0;
        return (await copyFrom?.(...args)) ?? false;
      },
    });
    await world.create({ repository: new Repository(watched, "") });
    expect(isHeld).toBe(true);
    const { id } = await world.catalog.head();
    expect((await world.catalog.expireSnapshots(id)).id).toBe(id);
  });

  test("a snapshot that goes before it is held is not needed", async () => {
    await world.addExtent();
    const { catalog } = world;
    let gone = 0;
    const reads = {
      oldestSnapshot: async () => {
        const oldest = await catalog.oldestSnapshot();
        if (gone++ > 2) return oldest;
        await world.addExtent();
        await catalog.expireSnapshots((await catalog.head()).id);
        return oldest;
      },
      holdSnapshots: catalog.holdSnapshots.bind(catalog),
      releaseSnapshots: catalog.releaseSnapshots.bind(catalog),
      openReader: catalog.openReader.bind(catalog),
    };
    await world.create({ reads });
    expect(gone).toBeGreaterThan(3);
    expect(await world.restore("r")).toMatchObject({ objects: 4 });
  });

  test("objects that are missing in the store fail the backup, which names a table and says how to go on", async () => {
    const bytes = await (async (key) => [key, await world.store.get(key)] as const)(await world.addExtent());
    const keys = [bytes[0], await world.addExtent(), await world.addExtent()];
    await world.store.delete(keys.slice(0, 2));
    const failed = world.create();
    await expect(failed).rejects.toMatchObject({ code: "conflict" });
    await expect(failed).rejects.toThrow(
      /^the table default\.t needs the object \S+\.tlm, which is missing in the object store; 1 more objects .* missing/,
    );
    expect(await world.repository.list()).toEqual([]);
    expect(await keysIn(world.destination, "objects/")).toHaveLength(1);
    // One is put back, and with the table the other is not needed any more.
    await world.store.put(...bytes);
    await expect(world.create()).rejects.toThrow(
      new RegExp(`needs the object ${keys[1]}, which is missing in the object store\\. Put the object back`),
    );
    await world.catalog.dropTable(world.table.id);
    expect(await world.create()).toMatchObject({ objects: 0 });
  });

  test("a backup that fails on the way is none; the next one takes what was copied", async () => {
    for (let i = 0; i < 5; i++) await world.addExtent();
    let left = 3;
    const copyFrom = world.destination.copyFrom?.bind(world.destination);
    const full = changed(world.destination, {
      copyFrom: (...args) => {
        if (left-- <= 0) throw new EngineError("insufficient_storage", "no space left on the device");
        return copyFrom?.(...args) ?? Promise.resolve(false);
      },
    });
    await expect(world.create({ repository: new Repository(full, "") })).rejects.toThrow("no space left");
    expect(await world.repository.list()).toEqual([]);
    await expect(world.repository.find(undefined)).rejects.toThrow("there is no backup here");
    expect(await world.create()).toMatchObject({ objects: 5, objects_copied: 2 });
    // What it left is swept with the next prune.
    expect((await keysIn(world.destination, "backups/")).length).toBeGreaterThan(38);
    await pruneBackups(world.repository, 1, PORTS);
    const ids = new Set((await keysIn(world.destination, "backups/")).map((key) => key.split("/")[1]));
    expect(ids.size).toBe(1);
  });

  test.skipIf(lacks("mounts", "mount"))("a full disk is told, and nothing is half there", async () => {
    const small = join(world.folder, "small");
    await mkdir(small);
    mountTmpfs(small, "size=1m");
    try {
      await world.addExtent(900_000);
      await world.addExtent(900_000);
      const repository = new Repository(await openStoreIn(small), "");
      await expect(world.create({ repository })).rejects.toMatchObject({ code: "insufficient_storage" });
      expect(await repository.list()).toEqual([]);
    } finally {
      unmount(small);
    }
  });

  test.skipIf(lacks("mounts", "mount"))("comes back from where nothing can be written", async () => {
    const there = join(world.folder, "read-only");
    await mkdir(there);
    mountTmpfs(there, "size=4m");
    const { config } = load();
    const on = <T>(access: Access, work: (repository: Repository) => Promise<T>): Promise<T> =>
      withRepository(
        { kind: "folder", path: there },
        access,
        { ...PORTS, config, random: systemRandom, metrics: createMetrics() },
        work,
      );
    try {
      const key = await world.addExtent();
      const { backup_id: id } = await on("write", (repository) => world.create({ repository }));
      mountTmpfs(there, "remount,ro");
      await on("read", async (repository) => {
        expect((await repository.list()).map((listed) => listed.id)).toEqual([id]);
        expect((await verifyBackups(repository, [await repository.find(id)])).problems).toEqual([]);
        expect(await world.restore("r", { repository })).toMatchObject({ objects: 1 });
      });
      expect(await restoredExtents("r")).toEqual([key]);
      await expect(on("write", (repository) => world.create({ repository }))).rejects.toThrow(/read-only/);
    } finally {
      unmount(there);
    }
  });

  test("an interrupted restore is repeated, and one onto data is refused", async () => {
    const key = await world.addExtent();
    await world.create();
    // What a kill leaves: objects, some of them cut or changed, and a catalog that was not renamed.
    const there = await openStoreIn(join(world.folder, "r/data"));
    await there.put(key, Buffer.alloc(1_000));
    await writeFile(join(world.folder, "r/catalog.db.restoring"), "half a catalog");
    await world.restore("r");
    expect(await there.get(key)).toEqual(await world.store.get(key));
    expect(await restoredExtents("r")).toEqual([key]);
    await expect(world.restore("r")).rejects.toThrow(/is not empty: its table \w+ has rows/);
  });
});

describe("the job", () => {
  test("is refused to those who may not see all databases, before it looks at anything", async () => {
    const deps = new Proxy({} as FeatureDeps, {
      get: (_deps, name) => {
        throw new Error(`it looked at ${String(name)}`);
      },
    });
    const run = (job: Partial<StandInJob>): Promise<unknown> =>
      backupHandler(deps).run(standInJob({ kind: BACKUP.name, payload: { destination: "/backups" }, ...job }));
    const admin = { ...ANONYMOUS, role: "admin" as const };
    for (const job of [{ owner: { ...admin, databases: ["logs"] } }, { owner: { ...admin, databases: [] } }]) {
      await expect(run(job)).rejects.toMatchObject({ code: "forbidden" });
    }
    await expect(run({ owner: admin, database: "logs" })).rejects.toMatchObject({ code: "forbidden" });
    await expect(run({ owner: admin })).rejects.toThrow("it looked at config");
  });
});

describe("verify", () => {
  test("names what changed, what is missing, and what cannot be read", async () => {
    const [changedKey, missingKey] = [await world.addExtent(), await world.addExtent()];
    await world.addExtent();
    await world.create();
    const manifest = await world.repository.find(undefined);
    expect((await verifyBackups(world.repository, [manifest])).problems).toEqual([]);
    const copies = await Array.fromAsync(world.repository.objects(manifest));
    const nameOf = (key: string): string =>
      copies
        .filter((copy) => copy.key === key)
        .map(objectName)
        .join();
    const path = (name: string): string => join(world.folder, "backups", name);
    const bytes = await readFile(path(nameOf(changedKey)));
    bytes.writeUInt8(bytes.readUInt8(500) ^ 1, 500);
    await writeFile(path(nameOf(changedKey)), bytes);
    await rm(path(nameOf(missingKey)));
    const table = `backups/${manifest.id}/jobs.ndjson.zst`;
    await writeFile(path(table), "not what was written");
    const { problems } = await verifyBackups(world.repository, [manifest]);
    expect(Object.fromEntries(problems.map(({ file, object_key: key }) => [file, key]))).toEqual({
      [table]: undefined,
      [nameOf(changedKey)]: changedKey,
      [nameOf(missingKey)]: missingKey,
    });
    expect(problems).toHaveLength(3);
    await expect(world.restore("r")).rejects.toThrow(/jobs\.ndjson\.zst: it has \d+ bytes.*Nothing was restored/);
    expect(existsSync(join(world.folder, "r/data/engine"))).toBe(false);
    const place = path(`backups/${manifest.id}/manifest.json`);
    await writeFile(place, (await readFile(place, "utf8")).replace(`"snapshot":`, `"snapshot":1`));
    await expect(world.repository.find(undefined)).rejects.toThrow("its hash is another one");
  });

  test("a catalog with an extent of somebody else's object is refused, and so are keys outside the prefix", async () => {
    await world.addExtent();
    await world.create();
    const manifest = await world.repository.find(undefined);
    const write = async (key: string): Promise<void> => {
      const lines = async function* (): AsyncGenerator<unknown[]> {
        yield [{}, [key, 0, "crc32:00000000", 0]];
      };
      const bytes = Buffer.alloc(0);
      await world.destination.put(objectName({ key, checksum: "crc32:00000000" }), bytes);
      const tempDir = join(world.folder, "tmp");
      await mkdir(tempDir, { recursive: true });
      const file = await world.repository.writeFile(manifest.id, "objects", { lines: lines(), tempDir, newId });
      await world.repository.publish({ ...manifest, objects: { ...file, total_bytes: 0 } });
    };
    for (const key of ["../../etc/passwd", "/etc/passwd", "engine/../../x", "other/default/t/x", "engine/.tmp/x"]) {
      await write(key);
      await expect(world.restore("r")).rejects.toThrow(/object key|is outside engine/);
      expect(existsSync(join(world.folder, "r/catalog.db.restoring"))).toBe(false);
      expect(existsSync(join(world.folder, "r/data/engine"))).toBe(false);
    }
    await write("engine/default/t/x");
    await expect(world.restore("r")).rejects.toThrow(
      /an extent names engine\/default\/t\/.*is no object of the backup/,
    );
    expect(existsSync(join(world.folder, "r/catalog.db.restoring"))).toBe(false);
    // Names in a manifest are those of tables, and no paths.
    const tables = manifest.tables
      .slice(0, 1)
      .map((table) => Object.assign({}, table, { name: "../../../etc/passwd" }));
    const text = manifestText({ ...manifest, tables });
    await world.repository.put(`backups/${manifest.id}/manifest.json`, text);
    await expect(world.repository.find(undefined)).rejects.toThrow(/pattern/);
    const newer = JSON.stringify({ ...manifest, format: 2 });
    const signed = `{"manifest":${newer},"sha256":"${hash("sha256", newer)}"}`;
    await world.repository.put(`backups/${manifest.id}/manifest.json`, signed);
    await expect(world.repository.find(undefined)).rejects.toThrow("format 2; this program knows 1");
  });
});

describe("prune", () => {
  test("deletes old backups, and the objects that only they need", async () => {
    const first = await world.addExtent();
    await world.create();
    await world.catalog.endExtents(world.table.id, [first.split("/").at(-1)?.replace(".tlm", "") ?? ""]);
    await world.addExtent();
    await world.catalog.expireSnapshots((await world.catalog.head()).id);
    await world.create();
    const pruned = await pruneBackups(world.repository, 1, PORTS);
    expect(pruned).toMatchObject({ backups_kept: 1, objects_deleted: 1, objects_left: false });
    expect((await verifyBackups(world.repository, [await world.repository.find(undefined)])).problems).toEqual([]);
    expect((await world.repository.list()).length).toBe(1);
  });

  test("leaves objects alone while a backup is made, which waits for a prune in its turn", async () => {
    await world.addExtent();
    await world.create();
    await world.destination.put(
      objectName({ key: "engine/nobody/needs", checksum: "crc32:00000000" }),
      Buffer.alloc(1),
    );
    const running = await Mark.set(world.repository, "running", PORTS);
    expect(await pruneBackups(world.repository, 1, PORTS)).toMatchObject({ objects_left: true, objects_deleted: 0 });
    await running.end();
    const pruning = await Mark.set(world.repository, "pruning", PORTS);
    let isMade = false;
    const made = world.create().then(() => (isMade = true));
    await expect.poll(() => keysIn(world.destination, "running/")).toHaveLength(1);
    expect(isMade).toBe(false);
    await pruning.end();
    await made;
    expect(await pruneBackups(world.repository, 1, PORTS)).toMatchObject({ objects_left: false, objects_deleted: 1 });
  });

  test("a backup whose mark was taken away meanwhile is not published", async () => {
    await world.addExtent();
    const copyFrom = world.destination.copyFrom?.bind(world.destination);
    const slept = changed(world.destination, {
      copyFrom: async (...args) => {
        await world.destination.delete(await keysIn(world.destination, "running/"));
        return (await copyFrom?.(...args)) ?? false;
      },
    });
    await expect(world.create({ repository: new Repository(slept, "") })).rejects.toThrow("stood still for too long");
    expect(await world.repository.list()).toEqual([]);
  });
});

describe("destinations", () => {
  test("are absolute folders and buckets", () => {
    expect(parseDestination("/a/../b/")).toEqual({ kind: "folder", path: "/b" });
    expect(parseDestination("s3://bucket/a/b")).toEqual({ kind: "s3", bucket: "bucket", prefix: "a/b" });
    const refused = [
      "",
      "a",
      "../a",
      "s3://",
      "s3://b",
      "s3://bucket/../x",
      "s3://bucket/a//b",
      "s3://bucket/a/.b",
      "/a\0b",
    ];
    for (const text of [...refused, "file:///etc", "https://bucket/a", `/${"a".repeat(2_000)}`]) {
      expect({ [text.slice(0, 40)]: parseDestination(text) }).toEqual({ [text.slice(0, 40)]: undefined });
    }
  });

  test("of jobs lie within those that the operator allows", async () => {
    const inside = join(world.folder, "allowed");
    await mkdir(join(inside, "deep"), { recursive: true });
    await mkdir(join(world.folder, "elsewhere"));
    await symlink(join(world.folder, "elsewhere"), join(inside, "way-out"));
    const allowed = [inside, "s3://bucket/backups"];
    const may = async (text: string): Promise<boolean> => {
      const destination = parseDestination(text);
      if (destination === undefined) return false;
      return await checkAllowed(destination, allowed).then(
        () => true,
        () => false,
      );
    };
    for (const text of [
      inside,
      `${inside}/new/one`,
      `${inside}/deep`,
      "s3://bucket/backups",
      "s3://bucket/backups/a",
    ]) {
      expect({ [text]: await may(text) }).toEqual({ [text]: true });
    }
    const outside = [
      `${inside}/../elsewhere`,
      `${inside}/way-out`,
      `${inside}/way-out/new`,
      `${inside}-too`,
      "/",
      "/etc",
    ];
    for (const text of [...outside, "s3://bucket", "s3://bucket/backups-too", "s3://other/backups"]) {
      expect({ [text]: await may(text) }).toEqual({ [text]: false });
    }
  });
});
