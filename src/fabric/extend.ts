import { NOW } from "../db/records.ts";
import { EngineError } from "../core/errors.ts";
import { heldValues, IS_HELD, type Hold } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { leaseLost } from "./refusals.ts";

/** What a holder learns when it writes. */
export type HoldState = {
  /** The holder should stop soon: see `cancel`. */
  cancelRequested: boolean;
  leaseExpiresAtMs: number;
};

/** Lets the lease end `leaseMs` from now, or later where it does anyway. Rejects with `lease_lost`. */
export async function extend({ records }: FabricPorts, hold: Hold, leaseMs: number): Promise<HoldState> {
  const { min, max } = FABRIC_LIMITS.leaseMs;
  if (!(leaseMs >= min && leaseMs <= max)) {
    throw new EngineError("bad_request_body", `a lease is extended by ${min / 1_000} to ${max / 1_000} s`);
  }
  const until = { nowPlusMs: leaseMs };
  const [row] = await records.write({
    sql:
      "UPDATE jobs SET lease_expires_at_ms = CASE WHEN lease_expires_at_ms > ? THEN lease_expires_at_ms ELSE ? END, " +
      `updated_at_ms = ? WHERE ${IS_HELD} RETURNING lease_expires_at_ms, cancel_requested`,
    values: [until, until, NOW, ...heldValues(hold)],
  });
  return toHoldState(row, hold);
}

export function toHoldState(row: Record<string, unknown> | undefined, hold: Hold): HoldState {
  if (row === undefined) throw leaseLost(hold);
  return {
    cancelRequested: Number(row["cancel_requested"]) === 1,
    leaseExpiresAtMs: Number(row["lease_expires_at_ms"]),
  };
}
