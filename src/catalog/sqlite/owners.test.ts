import { expect, it } from "vitest";
import { EARLIER_RECORDS, OWNED_AFTER } from "../earlier-owners.test-kit.ts";
import { Connection } from "./connection.ts";
import { migrate, MIGRATIONS } from "./migrations.ts";

it("records of an earlier version belong to whoever made them, and else to the admins", () => {
  const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
  const options = { path: ":memory:", nowMs: 0, mayUpgrade: true };
  const before = MIGRATIONS.findIndex(({ name }) => name === "addOwners");
  migrate(connection, { ...options, migrations: MIGRATIONS.slice(0, before) });
  for (const sql of EARLIER_RECORDS) connection.db.exec(sql);
  migrate(connection, options);
  for (const { sql, rows } of OWNED_AFTER) expect(connection.all(sql)).toEqual(rows);
  connection.close();
});
