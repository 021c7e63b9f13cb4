import type { TableRecord } from "../catalog/catalog.ts";
import { CliError, EXIT } from "../client/failure.ts";
import { nameText } from "./table-output.ts";

/** The value of `--cluster-by` that lifts it; a column of that name is written `"none"`. */
export const NO_COLUMNS = "none";

const NAME = /^\s*(?:"((?:[^"]|"")*)"|([^\s",](?:[^",]*[^\s",])?))\s*(,|$)/;

/**
 * Reads `--cluster-by`: names of columns separated by commas. A name in double quotes may hold anything (`""` is a
 * quote). Whether they are columns is for the catalog to say.
 * @throws CliError (exit code 2)
 */
export function parseClusterBy(text: string): string[] {
  const names: string[] = [];
  for (let rest = text; ;) {
    const found = NAME.exec(rest);
    if (found === null) {
      throw new CliError(`--cluster-by: expected a column's name at ${JSON.stringify(rest.trim())}`, EXIT.usage);
    }
    const [whole, quoted, bare = ""] = found;
    names.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    rest = rest.slice(whole.length);
    if (found[3] !== ",") return names;
  }
}

export function clusterByText(table: TableRecord): string {
  return table.clusterBy.map(nameText).join(", ");
}
