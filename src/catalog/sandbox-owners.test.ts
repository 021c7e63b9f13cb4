import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { sqliteText } from "./migrations.test-kit.ts";
import { EARLIER_SANDBOXES, expectOwners, USER_CALLED_ANONYMOUS } from "./sandbox-owners.test-kit.ts";

it.each([
  ["", "local"],
  [USER_CALLED_ANONYMOUS, "admins:"],
])("sandboxes of an earlier catalog belong to whoever made them", async (users, ofNobody) => {
  const db = new DatabaseSync(":memory:");
  for (const name of ["access", "jobs", "sandboxes", "agents"]) db.exec(sqliteText(name));
  db.exec(EARLIER_SANDBOXES + users);
  db.exec(sqliteText("owners"));
  await expectOwners((sql) => Promise.resolve(db.prepare(sql).all()), ofNobody);
  expect(db.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
  db.close();
});
