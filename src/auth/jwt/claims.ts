import { isCallerRole, roleIncludes, scopeOf, type Scope } from "../caller.ts";
import type { CallerRole } from "../../config/kinds.ts";

/** The highest role that a claim names, as text or an array of texts; other values in it are someone else's roles. */
export function roleIn(claim: unknown): CallerRole | undefined {
  const roles = (Array.isArray(claim) ? (claim as unknown[]) : [claim]).filter(isCallerRole);
  return roles.reduce<CallerRole | undefined>(
    (highest, role) => (highest === undefined || roleIncludes(role, highest) ? role : highest),
    undefined,
  );
}

/**
 * The databases that a claim lists, as an array of texts or as one text with commas; undefined without the claim, which
 * is no limit. `malformed` is a limit that cannot be read.
 */
export function scopeIn(claim: unknown): Scope | "malformed" {
  if (claim === undefined) return undefined;
  if (typeof claim !== "string" && !Array.isArray(claim)) return "malformed";
  const items: unknown[] = typeof claim === "string" ? claim.split(",") : claim;
  if (!items.every((item) => typeof item === "string")) return "malformed";
  return scopeOf(items.map((item) => item.trim()).filter((item) => item !== ""));
}

const SUBJECT_CHARS = 255;

/** Text that may stand in logs and lists: not empty, bounded (OpenID Connect Core §2), no control characters. */
export function nameIn(claim: unknown): string | undefined {
  if (typeof claim !== "string" || claim.length > SUBJECT_CHARS) return undefined;
  return /^[^\p{C}\p{Z}]+( [^\p{C}\p{Z}]+)*$/u.test(claim) ? claim : undefined;
}

/** A member of an object claim, as `app_metadata` of identity providers is. */
export function memberOf(claim: unknown, name: string): unknown {
  if (typeof claim !== "object" || claim === null || !Object.hasOwn(claim, name)) return undefined;
  return (claim as Record<string, unknown>)[name];
}
