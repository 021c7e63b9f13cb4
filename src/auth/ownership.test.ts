import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ADMIN, by, openAccess, type Access } from "./access.test-kit.ts";
import { OWNED_TABLES } from "./owned-tables.ts";
import { Ownership } from "./ownership.ts";
import { ManualClock } from "../core/clock.ts";

let access: Access;
let ownership: Ownership;
beforeEach(async () => {
  access = await openAccess();
  ownership = new Ownership(access);
});
afterEach(() => access.close());

async function addSchedule(id: string, name: string, owner: string): Promise<void> {
  const sql =
    "INSERT INTO schedules (id, name, kind, payload, timing, catch_up, jitter_ms, enabled, subject, caller_kind, role, " +
    "created_at_ms, updated_at_ms, owner) VALUES (?, ?, 'x.k', '{}', '{}', 'once', 0, 1, 's', 'session', 'write', 0, 0, ?)";
  await access.records.transact([{ sql, values: [id, name, owner] }]);
}

async function ownersOf(table: string): Promise<string[]> {
  const rows = await access.records.rows(`SELECT owner FROM ${table} ORDER BY id`);
  return rows.map(({ owner }) => String(owner));
}

describe("a transfer of ownership", () => {
  test("hands over every record of one owner, and no other, and is on record", async () => {
    await addSchedule("1", "a", "ann");
    await addSchedule("2", "b", "ann");
    await addSchedule("3", "c", "carl");
    const counts = await ownership.transfer("ann", "bob", by(ADMIN));
    expect(counts.filter(({ count }) => count > 0)).toEqual([{ table: "schedules", count: 2 }]);
    expect(counts.map(({ table }) => table)).toEqual(OWNED_TABLES.map(({ name }) => name));
    expect(await ownersOf("schedules")).toEqual(["bob", "bob", "carl"]);
    const [entry] = await access.audit.list({ limit: 1 });
    expect(entry).toMatchObject({ action: "ownership.transfer", target: "ann", details: { from: "ann", to: "bob" } });
  });

  test("does nothing at all where both have what an owner has once", async () => {
    await addSchedule("1", "same", "ann");
    await addSchedule("2", "other", "ann");
    await addSchedule("3", "same", "bob");
    const refusal = { code: "conflict", message: expect.stringContaining("schedules") as string };
    await expect(ownership.transfer("ann", "bob", by(ADMIN))).rejects.toMatchObject(refusal);
    expect(await ownersOf("schedules")).toEqual(["ann", "ann", "bob"]);
  });

  test.each([
    ["ann", "ann"],
    ["", "bob"],
    ["ann", "a\u0000b"],
    ["ann", " "],
    ["ann", "x".repeat(2_000)],
  ])("from %j to %j is refused", async (from, to) => {
    await expect(ownership.transfer(from, to, by(ADMIN))).rejects.toMatchObject({ code: "bad_request_body" });
  });
});

test("every table that has an owner is known to transfers, and has the column and an index by it", async () => {
  const { catalog } = openMemoryCatalog(new ManualClock());
  const found = await catalog.records.rows(
    "SELECT m.name AS name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' " +
      "AND c.name = 'owner' AND m.name <> 'api_tokens' ORDER BY m.name",
  );
  const known = OWNED_TABLES.filter(({ column }) => column === "owner").map(({ name }) => name);
  expect(found.map(({ name }) => String(name))).toEqual(known.toSorted());
  for (const { name, column } of OWNED_TABLES) {
    await catalog.records.rows(`SELECT ${column} FROM ${name} LIMIT 1`);
  }
  await catalog.close();
});
