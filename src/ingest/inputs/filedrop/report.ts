import { visible } from "../../../core/visible.ts";
import {
  checkObjectKey,
  InvalidObjectKey,
  type ObjectInfo,
  type ObjectStore,
} from "../../../io/objectstore/objectstore.ts";
import { REPORT_SUFFIX } from "./drop-file.ts";
import type { Refusal } from "./drop-records.ts";

/** Writes why a file was rejected beside it. Without effect where its name leaves no room for that of a report. */
export async function writeReport(
  store: Pick<ObjectStore, "put">,
  { key, sizeBytes }: ObjectInfo,
  { refusal, rejectedAtMs }: { refusal: Refusal; rejectedAtMs: number },
): Promise<void> {
  const report = reportKey(key);
  if (report === undefined) return;
  const { reason, line, column } = refusal;
  const said = {
    key: visible(key),
    reason: visible(reason),
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column: visible(column) }),
    size_bytes: sizeBytes,
    rejected_at: new Date(rejectedAtMs).toISOString(),
  };
  await store.put(report, Buffer.from(`${JSON.stringify(said, undefined, 2)}\n`), { isBesideOthers: true });
}

/** Deletes the report about a file, if there is one. */
export async function deleteReport(store: Pick<ObjectStore, "delete">, key: string): Promise<void> {
  const report = reportKey(key);
  if (report !== undefined) await store.delete([report], { isBesideOthers: true });
}

function reportKey(key: string): string | undefined {
  try {
    return checkObjectKey(`${key}${REPORT_SUFFIX}`);
  } catch (error) {
    if (error instanceof InvalidObjectKey) return undefined;
    throw error;
  }
}
