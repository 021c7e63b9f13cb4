import { expect, it } from "vitest";
import { EARLIER_LOGS, expectCounts } from "../sandbox-quotas.test-kit.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { migrate } from "../../db/sqlite/migrate.ts";
import { MIGRATIONS, migrationsBefore } from "../migrations.test-kit.ts";

it("logs and volumes of an earlier version are counted", async () => {
  const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
  const options = { path: ":memory:", nowMs: 0, mayUpgrade: true };
  const before = migrationsBefore("sandbox quotas", "sqlite");
  expect(before.length).toBeGreaterThan(0);
  migrate(connection, { ...options, migrations: before });
  connection.db.exec(EARLIER_LOGS);
  migrate(connection, { ...options, migrations: MIGRATIONS });
  await expectCounts((sql) => Promise.resolve(connection.all(sql)));
  connection.close();
});
