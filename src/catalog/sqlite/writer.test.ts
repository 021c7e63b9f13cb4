import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { aFlush, anExtent, column, committed } from "../contract-fixtures.ts";
import type { FlushOutcome, TableRecord } from "../catalog.ts";
import type { Connection } from "./connection.ts";
import { toCatalogError } from "./errors.ts";
import { openConnection } from "./open.ts";
import { readHead } from "./snapshots.ts";
import { encodeStats } from "./stats.ts";
import { verifyCatalog } from "./verify.ts";
import { Writer } from "./writer.ts";

describe("a disk that is full", () => {
  let folder: string;
  let connection: Connection;
  let writer: Writer;
  let table: TableRecord;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
    const path = join(folder, "catalog.db");
    connection = openConnection({ path, part: "writer", busyTimeoutMs: 100, nowMs: 1_000, mayUpgrade: true });
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

  const failure = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return toCatalogError(error, "catalog.db");
    }
    throw new Error("it did not fail");
  };

  it("refuses a commit whole, and takes the next when there is space", () => {
    commit();
    connection.db.exec(`PRAGMA max_page_count = ${connection.pragma("page_count") + 1}`);
    const error = failure(() => {
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

  it("is told from a disk that turned read-only by nothing but the message", () => {
    connection.db.exec("PRAGMA query_only = ON");
    const error = failure(() => commit());
    expect(error).toMatchObject({ code: "insufficient_storage", message: expect.stringContaining("readonly") });
    connection.db.exec("PRAGMA query_only = OFF");
    expect(committed(commit()[0]).snapshot.id).toBe(1);
  });

  it("has nothing to do with other errors, whose outcome stays open", () => {
    const failed = Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 1034 });
    expect(toCatalogError(failed, "/a/catalog.db")).not.toBeInstanceOf(EngineError);
    expect(String(toCatalogError(failed, "/a/catalog.db"))).toMatch(/\/a\/catalog\.db failed: disk I\/O error .*1034/);
    const mistake = new TypeError("x");
    expect(toCatalogError(mistake, "/a/catalog.db")).toBe(mistake);
  });
});
