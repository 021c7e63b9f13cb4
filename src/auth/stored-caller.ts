import type { CallerRole } from "../config/kinds.ts";
import { isCallerRole, type Scope } from "./caller.ts";

/** Roles and scopes as columns of records hold them: only this program wrote them. */

/** Throws for a text that is no role. */
export function storedRole(value: unknown): CallerRole {
  if (isCallerRole(value)) return value;
  throw new Error(`a stored role is ${String(value)}`);
}

/** A JSON array of folded names; NULL for all databases. */
export function scopeToColumn(scope: Scope): string | null {
  return scope === undefined ? null : JSON.stringify(scope);
}

export function scopeOfColumn(value: unknown): Scope {
  return typeof value === "string" ? (JSON.parse(value) as string[]) : undefined;
}
