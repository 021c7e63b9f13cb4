import { expect, it } from "vitest";
import type { CatalogDatabase } from "./catalog-database.ts";
import type { RecordStore, Statement } from "../db/records.ts";
import { NOW } from "../db/records.ts";
import type { Subject } from "./contract-fixtures.test-kit.ts";

const ADD = "INSERT INTO api_tokens (id, hash, name, preview, owner, role, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)";

function add(id: string, extra: Partial<{ hash: string; name: string }> = {}): Statement {
  const { hash = `hash of ${id}`, name = id } = extra;
  return { sql: `${ADD} ON CONFLICT DO NOTHING RETURNING id`, values: [id, hash, name, "", "me", "read", NOW] };
}

async function idsOf(records: RecordStore): Promise<unknown[]> {
  return (await records.rows("SELECT id FROM api_tokens ORDER BY id")).map(({ id }) => id);
}

/** Records beside a catalog: `tokens` stand for all of them. */
export function recordsContract({
  catalog,
  clock,
}: Omit<Subject, "catalog"> & { catalog: () => CatalogDatabase }): void {
  it("keeps what a transaction stored, with the time of the database", async () => {
    const { records } = catalog();
    const odd = 'it\'s a "name" with ? and $1, ünï — 😀';
    const outcome = await records.transact([add("a", { name: odd })]);
    expect(outcome).toEqual({ done: true, rows: [[{ id: "a" }]] });
    const [row] = await records.rows("SELECT * FROM api_tokens WHERE id = ?", ["a"]);
    expect(row).toMatchObject({ name: odd, databases: null, expires_at_ms: null });
    expect(Number(row?.["created_at_ms"])).toBe(clock().nowMs());
  });

  it("compares with times before and after now", async () => {
    const { records } = catalog();
    await records.transact([add("a")]);
    const newer = "SELECT id FROM api_tokens WHERE created_at_ms > ?";
    expect(await records.rows(newer, [{ nowPlusMs: -1_000 }])).toHaveLength(1);
    expect(await records.rows(newer, [{ nowPlusMs: 1_000 }])).toHaveLength(0);
    clock().advance(2_000);
    expect(await records.rows(newer, [{ nowPlusMs: -1_000 }])).toHaveLength(0);
  });

  it("undoes a transaction whose statement did not return what it must, and says which", async () => {
    const { records } = catalog();
    await records.transact([add("a")]);
    const outcome = await records.transact([
      add("b"),
      { sql: "DELETE FROM api_tokens WHERE id = ? RETURNING id", values: ["a"], mustReturn: 1 },
      { ...add("c", { hash: "hash of b" }), mustReturn: 1 },
      add("d"),
    ]);
    expect(outcome).toEqual({ done: false, failed: 2 });
    expect(await idsOf(records)).toEqual(["a"]);
    const absent = { sql: "SELECT id FROM api_tokens WHERE id = ?", values: ["x"], mustReturn: 0 };
    expect(await records.transact([absent, add("x")])).toMatchObject({ done: true });
    expect(await records.transact([absent, add("y")])).toEqual({ done: false, failed: 0 });
  });

  it("says which guard was unmet, though what came behind it could not be done for that reason", async () => {
    const { records } = catalog();
    const gone = { sql: "DELETE FROM api_tokens WHERE id = ? RETURNING id", values: ["x"], mustReturn: 1 };
    const without = {
      sql: "INSERT INTO refresh_tokens (hash, session_id, expires_at_ms) VALUES (?, (SELECT id FROM sessions WHERE id = ?), ?)",
      values: ["h", "x", NOW],
    };
    expect(await records.transact([gone, without, add("a")])).toEqual({ done: false, failed: 0 });
    await expect(records.transact([without, gone])).rejects.toThrow(/session_id/);
    expect(await idsOf(records)).toEqual([]);
  });

  it("does early what others then see, all or nothing", async () => {
    const { records } = catalog();
    const found = { sql: "SELECT id FROM api_tokens WHERE id = ? FOR SHARE", values: ["a"], mustReturn: 1 };
    expect(await records.transact([add("a"), found], { early: true })).toMatchObject({ done: true });
    expect(await idsOf(records)).toEqual(["a"]);
    const absent = { ...found, values: ["x"] };
    expect(await records.transact([add("b"), absent], { early: true })).toEqual({ done: false, failed: 1 });
    const broken = { sql: "SELECT no_such_column FROM api_tokens" };
    await expect(records.transact([add("c"), broken], { early: true })).rejects.toThrow("no_such_column");
    await Promise.all(["d", "e", "f"].map((id, i) => records.transact([add(id)], i === 1 ? {} : { early: true })));
    expect(await idsOf(records)).toEqual(["a", "d", "e", "f"]);
  });

  it("undoes a transaction in which a statement fails", async () => {
    const { records } = catalog();
    await expect(records.transact([add("a"), { sql: "SELECT no_such_column FROM api_tokens" }])).rejects.toThrow(
      /no_such_column/,
    );
    await expect(records.rows("SELECT 1 FROM no_such_table")).rejects.toThrow(/no_such_table/);
    expect(await idsOf(records)).toEqual([]);
    expect(await records.transact([add("a")])).toMatchObject({ done: true });
  });

  it("deletes what hangs on a record with it", async () => {
    const { records } = catalog();
    const user = "INSERT INTO users (id, name, folded_name, role, source, created_at_ms, updated_at_ms) VALUES ";
    const owned = "INSERT INTO sessions (id, user_id, address, created_at_ms, expires_at_ms) VALUES (?, ?, '', ?, ?)";
    await records.transact([
      { sql: `${user} (?, ?, ?, 'read', 'local', ?, ?)`, values: ["u", "Ann", "ann", NOW, NOW] },
      { sql: owned, values: ["s", "u", NOW, NOW] },
    ]);
    await records.transact([{ sql: "DELETE FROM users WHERE id = ?", values: ["u"] }]);
    expect(await records.rows("SELECT id FROM sessions")).toEqual([]);
  });

  it("lets one of many transactions that check the same and then change it go first, and the others see it", async () => {
    const { records } = catalog();
    await records.transact([add("a"), add("b"), add("c")]);
    // Each would leave two, had it been alone with what it saw.
    const removeUnlessFew = (id: string) =>
      records.transact([
        {
          sql: "SELECT id FROM api_tokens GROUP BY id HAVING (SELECT count(*) FROM api_tokens) > 2 LIMIT 1",
          mustReturn: 1,
        },
        { sql: "DELETE FROM api_tokens WHERE id = ? RETURNING id", values: [id], mustReturn: 1 },
      ]);
    const outcomes = await Promise.all(["a", "b", "c"].map(removeUnlessFew));
    expect(outcomes.filter(({ done }) => done)).toHaveLength(1);
    expect(await idsOf(records)).toHaveLength(2);
  });
}
