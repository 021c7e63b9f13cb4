import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ManualClock } from "../core/clock.ts";
import type { CatalogDatabase } from "./catalog-database.ts";
import { additionsContract } from "./contract-additions.test-kit.ts";
import { pendingDeletionContract } from "./contract-pending-deletion.test-kit.ts";
import { commitContract, schemaConflictContract } from "./contract-commits.test-kit.ts";
import { deletionContract, extentsContract, statisticsContract } from "./contract-extents.test-kit.ts";
import { dropsContract, rowDeletionsContract } from "./contract-drops.test-kit.ts";
import { filtersContract } from "./contract-filters.test-kit.ts";
import { aFlush, column, committed, type Subject } from "./contract-fixtures.test-kit.ts";
import { ledgerContract } from "./contract-ledger.test-kit.ts";
import { inferenceContract } from "./contract-inference.test-kit.ts";
import { leasesContract } from "./contract-leases.test-kit.ts";
import { inputPositionsContract } from "./contract-input-positions.test-kit.ts";
import { crowdedDaysContract, mergesContract } from "./contract-merges.test-kit.ts";
import { fileChangesContract } from "./contract-file-changes.test-kit.ts";
import { unpublishedDaysContract } from "./contract-unpublished-days.test-kit.ts";
import { misfitsContract } from "./contract-misfits.test-kit.ts";
import { readersContract, tableFloorContract } from "./contract-readers.test-kit.ts";
import { retentionContract } from "./contract-retention.test-kit.ts";
import { scanContract, timeTravelContract } from "./contract-scan.test-kit.ts";
import { stagedContract } from "./contract-staged.test-kit.ts";
import { clusterColumnsContract, columnsContract, namesContract } from "./contract-names.test-kit.ts";
import { recordsContract } from "./contract-records.test-kit.ts";
import { vectorColumnsContract } from "./contract-vectors.test-kit.ts";
import { wideningContract } from "./contract-widening.test-kit.ts";

/** What every driver of the catalog must do. `open` gives an empty catalog that takes its time from `clock`. */
export type OpenedCatalog = {
  catalog: CatalogDatabase;
  close: () => Promise<void>;
  clock: ManualClock;
  /** A quicker way to do what the catalog's own `verify` does, where there is one: it runs after each test. */
  verify?: () => Promise<void>;
};

export function catalogContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`${name}: the catalog's contract`, () => {
    let opened: OpenedCatalog;
    const subject: Subject = {
      catalog: () => opened.catalog,
      clock: () => opened.clock,
      async table(columns = [column("at", "timestamp"), column("body")]) {
        return (await opened.catalog.createTable({ database: "default", name: "events", columns })).table;
      },
    };
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(async () => {
      // Whatever a test did, the catalog is sound after it.
      await (opened.verify?.() ?? opened.catalog.verify());
      await opened.close();
    });

    describe("databases and tables", () => {
      namesContract(subject);
    });
    describe("columns", () => {
      columnsContract(subject);
    });
    describe("a vector column", () => {
      vectorColumnsContract(subject);
    });
    describe("cluster columns", () => {
      clusterColumnsContract(subject);
    });
    describe("inferred types", () => {
      inferenceContract(subject);
    });
    describe("widened columns", () => {
      wideningContract(subject);
    });
    describe("changes of files", () => {
      fileChangesContract(subject);
    });
    describe("misfits", () => {
      misfitsContract(subject);
    });
    describe("additions", () => {
      additionsContract(subject);
    });
    describe("commits", () => {
      commitContract(subject);
    });
    describe("conflicts of schema", () => {
      schemaConflictContract(subject);
    });
    describe("the ledger", () => {
      ledgerContract(subject);
    });
    describe("extents", () => {
      extentsContract(subject);
    });
    describe("statistics", () => {
      statisticsContract(subject);
    });
    describe("filters", () => {
      filtersContract(subject);
    });
    describe("scans", () => {
      scanContract(subject);
    });
    describe("time travel", () => {
      timeTravelContract(subject);
    });
    describe("deletion", () => {
      deletionContract(subject);
    });
    describe("leases", () => {
      leasesContract(subject);
    });
    describe("readers", () => {
      readersContract(subject);
    });
    describe("the oldest readable snapshot of a table", () => {
      tableFloorContract(subject);
    });
    describe("merges", () => {
      mergesContract(subject);
    });
    describe("crowded days", () => {
      crowdedDaysContract(subject);
    });
    describe("unpublished days", () => {
      unpublishedDaysContract(subject);
    });
    describe("retention", () => {
      retentionContract(subject);
    });
    describe("extents pending deletion", () => {
      pendingDeletionContract(subject);
    });
    describe("dropped tables and databases", () => {
      dropsContract({ ...subject, catalog: () => opened.catalog });
    });
    describe("deletions of rows", () => {
      rowDeletionsContract({ ...subject, catalog: () => opened.catalog });
    });
    describe("records", () => {
      recordsContract({ ...subject, catalog: () => opened.catalog });
    });
    describe("staged objects", () => {
      stagedContract(subject);
    });
    describe("input positions", () => {
      inputPositionsContract({ ...subject, catalog: () => opened.catalog });
    });
  });

  it(`${name}: closing finishes what is under way and refuses what comes after`, async () => {
    const { catalog, close } = await open();
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const last = catalog.commit([aFlush(table)]);
    const checked = catalog.verify();
    await Promise.all([catalog.close(), catalog.close()]);
    expect(committed((await last)[0]).snapshot.id).toBe(1);
    await checked;
    const refusal = { code: "unavailable" };
    await expect(catalog.commit([aFlush(table)])).rejects.toMatchObject(refusal);
    await expect(catalog.head()).rejects.toMatchObject(refusal);
    await expect(catalog.extents(table.id, 1)).rejects.toMatchObject(refusal);
    await close();
  });
}
