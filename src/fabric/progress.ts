import { NOW } from "../db/records.ts";
import { toHoldState, type HoldState } from "./extend.ts";
import { heldValues, IS_HELD, type Hold } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { boundedJson } from "./refusals.ts";

/** Stores how far the holder is: any JSON value, in place of the one before. Rejects with `lease_lost`, `body_too_large`. */
export async function progress({ records }: FabricPorts, hold: Hold, snapshot: unknown): Promise<HoldState> {
  const text = boundedJson(snapshot, FABRIC_LIMITS.progressBytes, "the progress");
  const [row] = await records.write({
    sql: `UPDATE jobs SET progress = ?, updated_at_ms = ? WHERE ${IS_HELD} RETURNING lease_expires_at_ms, cancel_requested`,
    values: [text, NOW, ...heldValues(hold)],
  });
  return toHoldState(row, hold);
}
