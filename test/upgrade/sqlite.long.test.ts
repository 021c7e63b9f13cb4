import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { EARLIER } from "./earlier.ts";
import { checkOpened, unpack } from "./opened.test-kit.ts";

/** Catalogs on SQLite that earlier commits of this repository wrote, opened by today's engine. */

test.each(EARLIER)("a catalog of $commit opens with all that it held", async (earlier) => {
  const { home, remove, facts } = await unpack(earlier, "sqlite");
  const versionOf = () => {
    const database = new DatabaseSync(join(home, "catalog.db"));
    const version = database.prepare("PRAGMA user_version").get()?.["user_version"];
    database.close();
    return Number(version);
  };
  expect(versionOf()).toBe(earlier.schema.sqlite);
  await checkOpened(earlier, facts, home, {});
  expect(versionOf()).toBeGreaterThanOrEqual(14);
  await remove();
});
