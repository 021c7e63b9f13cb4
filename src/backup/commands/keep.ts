import { CliError, EXIT } from "../../client/failure.ts";

/** How many backups are kept. */
export function parseKeep(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new CliError(`--keep takes a number of backups, 1 at least, not ${JSON.stringify(text)}`, EXIT.usage);
}
