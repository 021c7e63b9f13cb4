import { chmod, chown, mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asNobody, nobody } from "../../../core/as-nobody.test-kit.ts";
import { DropWorld } from "./drop-world.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";

/** What only a disk has: folders that may not be read, and links. */

let world: DropWorld;
let root: string;

beforeEach(async () => {
  world = await DropWorld.open(await openSqlite(), await openDisk());
  root = dirname(world.store.localPath?.("drop") ?? "");
});
afterEach(async () => {
  expect(await world.orphans()).toEqual([]);
  await world.close();
});

/** The folder and all in it are of whom `asNobody` runs as. */
async function giveAway(folder: string): Promise<void> {
  await chown(folder, nobody(), -1);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await giveAway(path);
    else await chown(path, nobody(), -1);
  }
}

const gauge = async () => {
  const text = await world.metrics.registry.metrics();
  return /^engine_filedrop_unreadable_folders\{prefix="drop"\} (\d+)$/m.exec(text)?.[1];
};

test.each([0o000, 0o444])("a folder of mode %o keeps no other file back, and its own are not gone", async (mode) => {
  const locked = join(root, "drop/shop/orders/locked");
  await world.drop("shop/orders/locked/in.json", '{"n":"in"}\n');
  await world.drop("shop/orders/a.json", '{"n":"a"}\n');
  const node = world.node();
  await node.look();
  await world.drop("shop/orders/locked/new.json", '{"n":"new"}\n');
  await world.drop("shop/orders/z.json", '{"n":"z"}\n');
  await giveAway(root);
  await chmod(locked, mode);
  await asNobody(async () => {
    await node.look();
    await node.look();
  });
  expect(await world.files()).toEqual({
    "shop/orders/a.json": "ingested",
    "shop/orders/locked/": "failed",
    "shop/orders/locked/in.json": "ingested",
    "shop/orders/z.json": "ingested",
  });
  const [told] = await world.catalog.records.rows("SELECT * FROM filedrop_files WHERE key LIKE '%/locked/'");
  expect(told).toMatchObject({ database_name: "shop", table_name: "orders", reason: expect.stringMatching(/EACCES/) });
  expect(await gauge()).toBe("1");
  await chmod(locked, 0o755);
  await asNobody(() => node.look());
  expect(Object.keys(await world.files())).not.toContain("shop/orders/locked/");
  // What was in the folder before was not taken for another file.
  expect(await world.values("n")).toEqual(["a", "in", "new", "z"]);
  expect(await gauge()).toBe("0");
});

test("no report is written or deleted behind a link", async () => {
  const folder = join(root, "drop/shop/orders");
  const elsewhere = join(root, "elsewhere");
  await world.drop("shop/orders/bad.json", "{\n");
  const node = world.node();
  await node.look();
  expect(await readdir(folder)).toEqual(["bad.json", "bad.json.rejected.json"]);
  await rename(folder, elsewhere);
  await symlink(elsewhere, folder);
  await node.look();
  // For the engine the file is gone, and so would its report be.
  expect(await world.files()).toEqual({});
  expect(await readdir(elsewhere)).toEqual(["bad.json", "bad.json.rejected.json"]);
  await rm(folder);
  await mkdir(folder);
  await writeFile(join(folder, "worse.json"), "[\n");
  await node.look();
  expect(await readdir(folder)).toEqual(["worse.json", "worse.json.rejected.json"]);
});
