import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { aFlush, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import type { FlushOutcome, TableRecord } from "../catalog.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { toDatabaseError } from "../../db/sqlite/errors.ts";
import { openConnection, prepareSchema } from "../../db/sqlite/open.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { makeFirstSnapshot, readHead } from "./snapshots.ts";
import { encodeStats } from "../stats-encoding.ts";
import { verifyCatalog } from "./verify.ts";
import { Writer } from "./writer.ts";

/** What a caller of the catalog would see of the error that `work` throws. */
function failureOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return toDatabaseError(error, "catalog.db");
  }
  throw new Error("it did not fail");
}

describe("the catalog's file", () => {
  let folder: string;
  let connection: Connection;
  let writer: Writer;
  let table: TableRecord;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
    const path = join(folder, "catalog.db");
    connection = openConnection({ path, part: "writer", busyTimeoutMs: 100 });
    const [nowMs, migrations, seed] = [1_000, MIGRATIONS, makeFirstSnapshot];
    prepareSchema(connection, { path, nowMs, mayUpgrade: true, migrations, seed });
    writer = new Writer(connection);
    table = writer.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] }).table;
  });
  afterEach(() => {
    connection.close();
    rmSync(folder, { recursive: true });
  });

  const commit = (found: string[] = []): FlushOutcome[] => {
    const flush = aFlush(table, { newColumns: found.map((name) => column(name)) });
    const extents = Array.from({ length: 20 }, () => Object.assign(anExtent(), { stats: encodeStats([]) }));
    return writer.commit(2_000, [{ ...flush, extents }]);
  };

  it("is written by a connection that syncs every commit", () => {
    expect(connection.get("PRAGMA journal_mode")).toEqual({ journal_mode: "wal" });
    expect(connection.get("PRAGMA synchronous")).toEqual({ synchronous: 2 });
    expect(connection.get("PRAGMA foreign_keys")).toEqual({ foreign_keys: 1 });
  });

  it("refuses a commit whole when it is full, and takes the next when there is space", () => {
    commit();
    connection.db.exec(`PRAGMA max_page_count = ${connection.pragma("page_count") + 1}`);
    const error = failureOf(() => {
      for (let i = 0; i < 100; i++) commit([`found${i}`]);
    });
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: "insufficient_storage", status: 507 });
    const head = readHead(connection);
    verifyCatalog(connection);
    connection.db.exec("PRAGMA max_page_count = 1000000");
    const [outcome] = commit(["found"]);
    expect(committed(outcome).snapshot.id).toBe(head.id + 1);
    verifyCatalog(connection);
  });

  it("refuses a commit when it has turned read-only", () => {
    connection.db.exec("PRAGMA query_only = ON");
    const error = failureOf(() => commit());
    expect(error).toMatchObject({ code: "insufficient_storage", message: expect.stringContaining("readonly") });
    connection.db.exec("PRAGMA query_only = OFF");
    expect(committed(commit()[0]).snapshot.id).toBe(1);
  });

  it("leaves the outcome of other errors open", () => {
    const failed = Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 1034 });
    expect(toDatabaseError(failed, "/a/catalog.db")).not.toBeInstanceOf(EngineError);
    expect(String(toDatabaseError(failed, "/a/catalog.db"))).toMatch(/\/a\/catalog\.db failed: disk I\/O error .*1034/);
    const mistake = new TypeError("x");
    expect(toDatabaseError(mistake, "/a/catalog.db")).toBe(mistake);
  });
});
