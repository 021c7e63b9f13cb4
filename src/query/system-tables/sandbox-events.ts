import type { RecordRow, RecordStore, RecordValue } from "../../db/records.ts";
import type { SystemRow } from "../../feature/system-table.ts";
import { nsOfMs } from "./values.ts";

/** Events that one statement reads: those of one page are in memory at a time. */
const PAGE_EVENTS = 1_000;
/** Of an event's data; none that the program writes has more. */
const MOST_DATA_BYTES = 100_000;

/**
 * The events of sandboxes for `system.sandbox_events`, oldest first: those of one tenant, or all. They are read as the
 * log grows: what comes meanwhile may be among them or not.
 */
export async function* sandboxEventRows(
  records: Pick<RecordStore, "rows">,
  tenant: string | undefined,
): AsyncGenerator<SystemRow> {
  let after: RecordValue[] = [-1, "", 0];
  for (;;) {
    const page = await records.rows(
      "SELECT at_ms, sandbox_id, seq, tenant, event_type, session_id, data FROM sandbox_events " +
        `WHERE ${tenant === undefined ? "" : "tenant = ? AND "}(at_ms, sandbox_id, seq) > (?, ?, ?) ` +
        "ORDER BY at_ms, sandbox_id, seq LIMIT ?",
      [...(tenant === undefined ? [] : [tenant]), ...after, PAGE_EVENTS],
    );
    for (const row of page) yield toRow(row);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_EVENTS) return;
    after = [Number(last["at_ms"]), String(last["sandbox_id"]), Number(last["seq"])];
  }
}

function toRow(row: RecordRow): SystemRow {
  const { session_id: session } = row;
  const data = String(row["data"]);
  return {
    at: nsOfMs(Number(row["at_ms"])),
    sandbox_id: String(row["sandbox_id"]),
    seq: Number(row["seq"]),
    tenant: String(row["tenant"]),
    event_type: String(row["event_type"]),
    session_id: typeof session === "string" ? session : undefined,
    data:
      Buffer.byteLength(data) > MOST_DATA_BYTES ? JSON.stringify({ cut: data.slice(0, MOST_DATA_BYTES / 8) }) : data,
  };
}
