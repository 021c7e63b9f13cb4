import type { Catalog, TableRecord } from "../catalog/catalog.ts";
import { unpublishedTotals, wideningSnapshots } from "../catalog/publishable.ts";
import { sleep, type Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { FINISHED_BYTES } from "./pick.ts";
import type { PublishRequests } from "./publish-requests.ts";

export type PublishNowPorts = {
  catalog: Pick<Catalog, "fileChanges" | "head" | "table" | "unpublishedDays">;
  requests: PublishRequests;
  clock: Clock;
};

export type PublishedNow = {
  /** The newest snapshot that other programs see. */
  snapshotId: number;
  /** Rows that waited when it was asked for. */
  rowsPublished: number;
  /** Rows that wait now: they came since, or are in finished files of an earlier version. */
  pendingRows: number;
};

/** A caller waits no longer, and merging goes on: many clients and proxies give up after a minute. */
const MOST_WAIT_MS = 45_000;
/** A process that was killed is followed by another within that time, and its lease is there meanwhile. */
const ALONE_MS = 10_000;
const REQUEST_TTL_MS = 3_600_000;
const FIRST_LOOK_MS = 100;
const MOST_LOOK_MS = 1_000;

/**
 * Has merged what a table has now that is not published, but for finished files, and waits for it. Throws `unavailable`
 * when that is not done in time, or cannot be; `table_not_found` when the table is dropped meanwhile.
 */
export async function publishNow(
  { catalog, requests, clock }: PublishNowPorts,
  table: TableRecord,
  signal: AbortSignal,
): Promise<PublishedNow> {
  const { id: tableId } = table;
  const upTo = (await catalog.head()).id;
  const left = () => unpublishedTotals(catalog, tableId, { belowBytes: FINISHED_BYTES, upTo });
  const before = await left();
  if (before.extents > 0) {
    await requests.ask({ tableId, whole: false, upTo }, REQUEST_TTL_MS);
    await untilNone();
  }
  const now = await catalog.table(table.database, table.name);
  if (now?.id !== tableId) {
    throw new EngineError("table_not_found", `table ${named(table)} was dropped before its rows were published`);
  }
  return {
    snapshotId: await newestChange(catalog, now, upTo),
    rowsPublished: before.rows,
    pendingRows: (await unpublishedTotals(catalog, tableId)).rows,
  };

  async function untilNone(): Promise<void> {
    const startedMs = clock.monotonicMs();
    let wasAnybodyThere = false;
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 1.5, MOST_LOOK_MS)) {
      await sleep(clock, waitMs, signal);
      const isOpen = await requests.isOpen({ tableId, whole: false });
      const waiting = await left();
      if (waiting.extents === 0) return;
      const what = `${waiting.rows} ${waiting.rows === 1 ? "row" : "rows"} of table ${named(table)}`;
      if (!isOpen) {
        throw unpublished(`${what} cannot be merged: the extents are damaged, or of a newer version of the program`);
      }
      wasAnybodyThere ||= await requests.isAnybodyThere();
      const waitedMs = clock.monotonicMs() - startedMs;
      if (!wasAnybodyThere && waitedMs >= ALONE_MS) {
        throw unpublished(
          `${what} cannot be merged, for no server merges: start one with the role compaction and ` +
            "ENGINE_COMPACTION_POLL_SECS other than 0",
        );
      }
      if (waitedMs >= MOST_WAIT_MS) {
        throw unpublished(`merging ${what} takes longer than ${MOST_WAIT_MS / 1_000} s; it goes on, so ask again`);
      }
    }
  }
}

/** The newest snapshot at which the files changed that other programs read; the head, where they never did. */
async function newestChange(catalog: Pick<Catalog, "fileChanges">, table: TableRecord, head: number): Promise<number> {
  const also = wideningSnapshots(table);
  const since = await catalog.fileChanges(table.id, head, also);
  const newest = since.at(-1) ?? (await catalog.fileChanges(table.id, -1, also)).at(-1);
  return newest?.id ?? head;
}

function unpublished(message: string): EngineError {
  return new EngineError("unavailable", message);
}

function named({ database, name }: TableRecord): string {
  return JSON.stringify(`${database}.${name}`);
}
