import { z } from "zod";
import type { Caller } from "../../auth/caller.ts";
import { foldName } from "../../core/names.ts";
import type { JobKind } from "../../fabric/kinds.ts";
import { DREAMING_LIMITS } from "./limits.ts";

/** `deep` also goes over old memories. */
export const DREAM_MODES = ["incremental", "deep"] as const;
export type DreamMode = (typeof DREAM_MODES)[number];

export const focusField = z
  .string()
  .max(DREAMING_LIMITS.focusChars)
  .refine((text) => text.isWellFormed() && !text.includes("\0"), "accepted is Unicode text without NUL");

export const dreamPayload = z.strictObject({
  run_id: z.string(),
  mode: z.enum(DREAM_MODES),
  focus: focusField.nullable(),
});

export const DREAM_JOB: JobKind = {
  name: "dreaming",
  payload: dreamPayload,
  enqueue: "nobody",
  claim: "both",
  needsAdmission: true,
  needsDatabase: true,
  maxAttempts: DREAMING_LIMITS.attempts,
  backoffMs: 5_000,
};

/** One dream per database at a time, whoever asks for it. */
export const DREAM_KEY = "dream";

/** Dreams are the database's own: whoever asks for one lends it no rights, and it sees no other database. */
export function dreamerOf(database: string): Caller {
  return { subject: "dreaming", kind: "internal", role: "read", databases: [foldName(database)] };
}

const SOURCE_PREFIX = "dreaming run ";

/** The source of what a run writes, and who invalidates in its name. */
export function sourceOf(runId: string): string {
  return `${SOURCE_PREFIX}${runId}`;
}

export function isDreamSource(source: string | undefined): boolean {
  return source?.startsWith(SOURCE_PREFIX) === true;
}
