import type { TableRecord } from "../catalog/catalog.ts";
import { isOpenLag } from "../catalog/new-columns.ts";
import { CliError, EXIT } from "../client/failure.ts";

/** The value of `--open-lag-secs` that leaves it to the configuration of the server. */
export const SERVERS_LAG = "server";

/** The value of `--open-lag-secs`. Throws `CliError` for one that no table may have; `alternative` is what else may be. */
export function parseOpenLagSecs(text: string, alternative = ""): number {
  const secs = /^\d{1,6}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (isOpenLag(secs)) return secs;
  const expected = `an integer from 0 to 86400${alternative}`;
  throw new CliError(`--open-lag-secs is ${JSON.stringify(text)}; expected ${expected}`, EXIT.usage);
}

/** When rows of the table are published for other programs, as the rest of a sentence about it. */
export function openLagText({ openLagSecs }: Pick<TableRecord, "openLagSecs">): string {
  if (openLagSecs === undefined) return "is published as the server's configuration says";
  return openLagSecs === 0 ? "is published at compaction's own pace" : `is published within ${openLagSecs} s`;
}
