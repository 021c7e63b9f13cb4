import type { Command } from "commander";
import { listInputPositions, resetInputPosition, type InputPosition } from "../../catalog/input-positions.ts";
import type { CatalogDatabase } from "../../catalog/catalog-database.ts";
import { CATALOG_FLAG, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { renderTable, textCell } from "../../client/table.ts";

type Options = CatalogFlags & { reset?: string; json?: true };

/** Positions are read so many at a time. */
const PER_PAGE = 1_000;

/** Adds `engine ingest positions`: see `catalog/input-positions.ts`. */
export function registerPositions(group: Command, context: CliContext): void {
  const command = group
    .command("positions")
    .description(
      "List how far inputs that can be read again (partitions of Kafka, dropped files) are in the catalog, or have one " +
        "begin anew (talks to the catalog directly).",
    )
    .option("--reset <source>", "forget the position of this source: it is read from its beginning, and stored again")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, ["engine ingest positions", "engine ingest positions --reset kafka:orders:3"]).action(
    context.action((options: Options) => positions(context, options)),
  );
}

async function positions(context: CliContext, options: Options): Promise<number> {
  const { reset } = options;
  if (reset !== undefined) {
    const found = await withCatalog(context, options, "write", ({ records }) => resetInputPosition(records, reset));
    if (!found) throw new CliError(`there is no position of ${reset}; \`engine ingest positions\` lists them`);
    if (options.json) await context.writeJson({ source: reset, reset: true });
    else await context.writeLine(`${reset} begins anew`);
    return EXIT.ok;
  }
  const found = await withCatalog(context, options, "read", readAll);
  if (options.json) await context.writeJson(found.map(positionJson));
  else if (found.length === 0) await context.writeLine("no input has a position");
  else {
    const header = ["SOURCE", "POSITION", "SNAPSHOT", "MOVED AT"];
    const rows = found.map((one) => [one.source, one.position, String(one.snapshotId), movedAt(one)].map(textCell));
    await context.writeLine(renderTable(header, rows, context.style));
  }
  return EXIT.ok;
}

async function readAll({ records }: CatalogDatabase): Promise<InputPosition[]> {
  const all: InputPosition[] = [];
  for (;;) {
    const page = await listInputPositions(records, { after: all.at(-1)?.source ?? "", limit: PER_PAGE });
    all.push(...page);
    if (page.length < PER_PAGE) return all;
  }
}

function positionJson(one: InputPosition) {
  return { source: one.source, position: one.position, snapshot_id: String(one.snapshotId), moved_at: movedAt(one) };
}

function movedAt({ movedAtMs }: InputPosition): string {
  return new Date(movedAtMs).toISOString();
}
