import { CliError, EXIT } from "../client/failure.ts";

const MAX_RETENTION_DAYS = 36_500;

/** The value of `--retention-days`. Throws `CliError` for one that no table may have; `alternative` is what else may be. */
export function parseRetentionDays(text: string, alternative = ""): number {
  const days = /^\d{1,6}$/.test(text.trim()) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_RETENTION_DAYS) return days;
  const expected = `an integer from 1 to ${MAX_RETENTION_DAYS}${alternative}`;
  throw new CliError(`--retention-days is ${JSON.stringify(text)}; expected ${expected}`, EXIT.usage);
}
