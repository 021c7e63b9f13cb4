import type { OwnErrors } from "../../db/sqlite/thread-protocol.ts";
import { InvariantViolation } from "../invariants.ts";
import { ExtentPendingDeletion, LeaseLost } from "../refusals.ts";

type Wire =
  | { kind: "invariant"; invariant: string; detail: string }
  | { kind: "lease_lost"; lease: string }
  | { kind: "pending_deletion"; extentIds: readonly string[] };

/** The errors of the catalog between its threads. */
export const CATALOG_ERRORS: OwnErrors = { toWire, fromWire: (wire) => fromWire(wire as Wire) };

function toWire(error: unknown): Wire | undefined {
  if (error instanceof InvariantViolation) {
    return { kind: "invariant", invariant: error.invariant, detail: error.detail };
  }
  if (error instanceof LeaseLost) return { kind: "lease_lost", lease: error.lease };
  if (error instanceof ExtentPendingDeletion) return { kind: "pending_deletion", extentIds: error.extentIds };
  return undefined;
}

function fromWire(wire: Wire): Error {
  switch (wire.kind) {
    case "invariant":
      return new InvariantViolation(wire.invariant, wire.detail);
    case "lease_lost":
      return new LeaseLost(wire.lease);
    case "pending_deletion":
      return new ExtentPendingDeletion(wire.extentIds);
  }
}
