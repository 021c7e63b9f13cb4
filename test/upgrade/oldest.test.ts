import { expect, test } from "vitest";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { makeFirstSnapshot } from "../../src/catalog/sqlite/snapshots.ts";
import { migrationSteps, OLDEST_OPENED } from "../../src/db/migration.ts";
import { Connection } from "../../src/db/sqlite/connection.ts";
import { migrate } from "../../src/db/sqlite/migrate.ts";
import { EARLIER } from "./earlier.ts";

/** What `release.json` says with `reads_from`. */

test("the oldest schemas that a release reads are those of the oldest catalogs that tests open", () => {
  const oldest = (schemas: readonly (number | undefined)[]): number => Math.min(...schemas.map((n) => n ?? Infinity));
  expect({
    sqlite: oldest(EARLIER.map(({ schema }) => schema.sqlite)),
    postgres: oldest(EARLIER.map(({ schema }) => schema.postgres)),
  }).toEqual(OLDEST_OPENED);
});

test("an SQLite catalog of that schema, and of every one since, is brought to the newest", () => {
  const newest = migrationSteps("sqlite", MIGRATIONS).length;
  for (let schema = OLDEST_OPENED.sqlite; schema < newest; schema++) {
    const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
    const options = { path: ":memory:", nowMs: 0, mayUpgrade: true, seed: makeFirstSnapshot };
    const known = MIGRATIONS.filter(({ sqlite }) => sqlite !== undefined && sqlite <= schema);
    expect(migrate(connection, { ...options, migrations: known })).toBe(schema);
    expect(migrate(connection, { ...options, migrations: MIGRATIONS })).toBe(newest);
    connection.close();
  }
});
