import { EngineError } from "../core/errors.ts";
import type { Hold } from "./job.ts";

/** The writer no longer holds the job: its lease has ended, somebody else has it, or it is finished. */
export function leaseLost({ jobId, fence }: Pick<Hold, "jobId"> & Partial<Hold>): EngineError {
  const which = fence === undefined ? "" : ` with fence ${fence}`;
  return new EngineError("lease_lost", `the lease of job ${jobId}${which} is not, or no longer, yours`);
}

export function jobNotFound(id: string): EngineError {
  return new EngineError("not_found", `there is no job ${id}`);
}

export function isLeaseLost(error: unknown): boolean {
  return error instanceof EngineError && error.code === "lease_lost";
}

/** The compact JSON text of a value. Throws `body_too_large`. */
export function boundedJson(value: unknown, maxBytes: number, what: string): string {
  const text = JSON.stringify(value) ?? "null";
  if (Buffer.byteLength(text) <= maxBytes) return text;
  throw new EngineError("body_too_large", `${what} is larger than ${maxBytes} bytes`);
}

/** As much of a text as is kept, without the character that PostgreSQL refuses. */
export function boundedText(text: string, maxChars: number): string {
  return text.replaceAll("\0", "\u{fffd}").slice(0, maxChars).toWellFormed();
}
