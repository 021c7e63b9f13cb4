import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { AGENT_RECORDS } from "./agent-schema.ts";
import { JOB_RECORDS } from "./jobs-schema.ts";
import { OWNER_RECORDS } from "./owner-schema.ts";
import { ACCESS_RECORDS } from "./records-schema.ts";
import { SANDBOX_RECORDS } from "./sandbox-schema.ts";
import { EARLIER_SANDBOXES, expectOwners, USER_CALLED_ANONYMOUS } from "./sandbox-owners.test-kit.ts";

it.each([
  ["", "local"],
  [USER_CALLED_ANONYMOUS, "admins:"],
])("sandboxes of an earlier catalog belong to whoever made them", async (users, ofNobody) => {
  const db = new DatabaseSync(":memory:");
  db.exec(ACCESS_RECORDS + JOB_RECORDS + SANDBOX_RECORDS + AGENT_RECORDS + EARLIER_SANDBOXES + users);
  db.exec(OWNER_RECORDS);
  await expectOwners((sql) => Promise.resolve(db.prepare(sql).all()), ofNobody);
  expect(db.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
  db.close();
});
