import { expect, it } from "vitest";
import { EARLIER_RECORDS, OWNED_AFTER } from "../earlier-owners.test-kit.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { migrate } from "../../db/sqlite/migrate.ts";
import { MIGRATIONS, migrationsBefore } from "../migrations.test-kit.ts";

it("records of an earlier version belong to whoever made them, and else to the admins", () => {
  const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
  const options = { path: ":memory:", nowMs: 0, mayUpgrade: true };
  migrate(connection, { ...options, migrations: migrationsBefore("owners", "sqlite") });
  for (const sql of EARLIER_RECORDS) connection.db.exec(sql);
  migrate(connection, { ...options, migrations: MIGRATIONS });
  for (const { sql, rows } of OWNED_AFTER) expect(connection.all(sql)).toEqual(rows);
  connection.close();
});
