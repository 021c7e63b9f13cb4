import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { keysIn, openStoreIn, openWorld, type World } from "./backup.test-kit.ts";
import { objectName } from "./manifest.ts";
import { Repository } from "./repository.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

/** A store whose objects can only be had through this program. */
function apart(store: ObjectStore): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "localPath") return undefined;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Where the copy of an extent of the newest backup lies. */
async function copyOf(key: string): Promise<string> {
  const objects = await Array.fromAsync(world.repository.objects(await world.repository.find(undefined)));
  const name = objects.filter((object) => object.key === key).map(objectName);
  return join(world.folder, "backups", ...name);
}

async function flip(path: string): Promise<void> {
  const bytes = await readFile(path);
  bytes.writeUInt8(bytes.readUInt8(500) ^ 1, 500);
  await writeFile(path, bytes);
}

test.each([
  ["copied by the file system", (store: ObjectStore) => store],
  ["read by this program", apart],
])("an object that is damaged or missing leaves nothing behind: %s", async (_how, through) => {
  const keys = await Promise.all(Array.from({ length: 12 }, () => world.addExtent()));
  await world.create();
  const repository = new Repository(through(world.destination), "");
  const target = await openStoreIn(join(world.folder, "r/data"));
  const [lastKey = "", thereKey = ""] = [keys.at(-1), keys.at(0)];
  // Not one that this restore copied.
  await target.put(thereKey, await world.store.get(thereKey));
  const path = await copyOf(lastKey);
  await flip(path);
  const nothing = /Nothing was restored; `engine backup verify`/;
  await expect(world.restore("r", { repository })).rejects.toThrow(/its size or checksum is another one \(engine\//);
  await expect(world.restore("r", { repository })).rejects.toThrow(nothing);
  expect(await keysIn(target, "engine/")).toEqual([thereKey]);
  expect(existsSync(join(world.folder, "r/catalog.db.restoring"))).toBe(false);
  await rm(path);
  await expect(world.restore("r", { repository })).rejects.toThrow(/it is missing \(engine\//);
  expect(await keysIn(target, "engine/")).toEqual([thereKey]);
  await world.create();
  await world.restore("r", { repository });
  expect((await keysIn(target, "engine/")).toSorted()).toEqual(keys.toSorted());
});
