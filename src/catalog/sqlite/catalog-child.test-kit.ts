import { writeSync } from "node:fs";
import { systemClock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import { migrationTexts } from "../../db/migration.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { openSqliteCatalog } from "./sqlite.ts";

/**
 * A second process for the tests: `catalog-child.test-kit.ts TASK PATH [ARGUMENT]`. It says what it has done on standard output, a
 * line at a time and at once, so that what was said before a kill was true.
 */
const [, , task = "", path = "", argument = ""] = process.argv;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function open(mode: "server" | "admin") {
  return openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode });
}

/** Holds the catalog until standard input ends. */
async function hold(mode: "server" | "admin"): Promise<void> {
  const catalog = await open(mode);
  say("open");
  process.stdin.resume();
  await new Promise<void>((resolve) => process.stdin.once("end", () => resolve()));
  await catalog.close();
}

/** Commits for ever: three flushes of two extents and one key each, from key number ARGUMENT on. */
async function commitForEver(): Promise<void> {
  const catalog = await open("server");
  const columns = [column("at", "timestamp")];
  await catalog.createTable({ database: "d", name: "t", columns });
  for (let n = Number(argument); ; n += 3) {
    const table = await catalog.table("d", "t");
    if (table === undefined) throw new Error("the table is gone");
    const flushes = [n, n + 1, n + 2].map((key) =>
      aFlush(table, {
        newColumns: key % 20 === 0 ? [column(`c${key}`)] : [],
        extents: [anExtent({ id: `extent-${key}-a` }), anExtent({ id: `extent-${key}-b` })],
        ledger: [aLedgerEntry(`key-${key}`)],
      }),
    );
    const [outcome] = await catalog.commit(flushes);
    say(`${committed(outcome).snapshot.id} ${n}`);
  }
}

/** Makes 25 tables whose names start with ARGUMENT, and a column in each. */
async function makeTables(): Promise<void> {
  const catalog = await open("admin");
  for (let i = 0; i < 25; i++) {
    const name = `${argument}${i}`;
    const { table } = await catalog.createTable({ database: "d", name, columns: [column("at", "timestamp")] });
    await catalog.addColumns(table.id, [column("added")]);
    say(name);
  }
  await catalog.close();
}

/** A migration that makes a table and then counts for about a minute. */
async function migrateForEver(): Promise<void> {
  const { length } = migrationTexts("sqlite", MIGRATIONS);
  const counting = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 200000000)";
  const sql = `CREATE TABLE half (n INTEGER); ${counting} INSERT INTO half SELECT max(n) FROM c`;
  const migrations = [...MIGRATIONS, { name: "endless", sqlite: length + 1, sql }];
  say("migrating");
  await openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations, mode: "server" });
  say("failed: it ended");
}

const TASKS: Record<string, () => Promise<void>> = {
  server: () => hold("server"),
  admin: () => hold("admin"),
  commit: commitForEver,
  "migrate for ever": migrateForEver,
  tables: makeTables,
};

try {
  await TASKS[task]?.();
} catch (error) {
  say(`failed: ${messageOf(error)}`);
  process.exitCode = 1;
}
