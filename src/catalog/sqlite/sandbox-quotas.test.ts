import { expect, it } from "vitest";
import { EARLIER_LOGS, expectCounts } from "../sandbox-quotas.test-kit.ts";
import { Connection } from "./connection.ts";
import { migrate, MIGRATIONS } from "./migrations.ts";

it("logs and volumes of an earlier version are counted", async () => {
  const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
  const options = { path: ":memory:", nowMs: 0, mayUpgrade: true };
  const before = MIGRATIONS.findIndex(({ name }) => name === "addSandboxQuotas");
  expect(before).toBeGreaterThan(0);
  migrate(connection, { ...options, migrations: MIGRATIONS.slice(0, before) });
  connection.db.exec(EARLIER_LOGS);
  migrate(connection, options);
  await expectCounts((sql) => Promise.resolve(connection.all(sql)));
  connection.close();
});
