import { messageOf } from "../../core/errors.ts";
import type { Lease } from "../catalog.ts";
import {
  deletionsConserveRows,
  liveExtentsAreNotForgotten,
  mergesConserveRows,
  readableExtentsAreNotForgotten,
} from "../invariants.ts";
import { CondemnedExtent, LeaseLost } from "../refusals.ts";
import { RAISED, sqlStateOf } from "./errors.ts";

/** A lease as functions of the catalog take it. */
export function leaseParameter(lease: Lease | undefined): string | null {
  return lease === undefined ? null : JSON.stringify(lease);
}

/** What a function of the catalog found wrong, as its callers know it; any other error as it is. */
export function toRefusal(error: unknown, lease: Lease | undefined): unknown {
  switch (sqlStateOf(error)) {
    case RAISED.leaseLost:
      return new LeaseLost(lease?.name ?? "");
    case RAISED.condemned:
      return new CondemnedExtent(JSON.parse(messageOf(error)) as string[]);
    case RAISED.notForgettable:
      return violationOf(() => {
        const { id, end, oldest } = JSON.parse(messageOf(error)) as NotForgettable;
        const endSnapshot = end ?? undefined;
        liveExtentsAreNotForgotten(id, endSnapshot);
        readableExtentsAreNotForgotten(id, endSnapshot, oldest);
      });
    case RAISED.rowsDiffer:
      return violationOf(() => {
        const { inputRows, outputRows } = JSON.parse(messageOf(error)) as { inputRows: number; outputRows: number };
        mergesConserveRows(inputRows, outputRows);
      });
    case RAISED.rowsLeft:
      return violationOf(() => {
        const { inputRows, outputRows, deletedRows } = JSON.parse(messageOf(error)) as RowsLeft;
        deletionsConserveRows(inputRows, outputRows, deletedRows);
      });
    case undefined:
    default:
      return error;
  }
}

type RowsLeft = { inputRows: number; outputRows: number; deletedRows: number };
type NotForgettable = { id: string; end: number | null; oldest: number };

function violationOf(check: () => void): unknown {
  try {
    check();
  } catch (violation) {
    return violation;
  }
  return new Error("the database saw an invariant broken that holds");
}
