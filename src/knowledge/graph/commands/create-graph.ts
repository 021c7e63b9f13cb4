import type { TableRecord } from "../../../catalog/catalog.ts";
import {
  CATALOG_FLAG,
  requireDatabase,
  requireTable,
  withCatalog,
  type CatalogFlags,
} from "../../../client/catalog.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { checkName, foldName } from "../../../core/names.ts";
import { nearest } from "../../../core/nearest.ts";
import { GRAPH_LIMITS } from "../limits.ts";
import { graphJson } from "./graph-json.ts";
import { DEFAULT_COLUMNS, GraphRegistry, isBuiltIn, type StoredGraph } from "../registry.ts";

type Options = CatalogFlags & {
  db: string;
  name: string;
  nodes: string;
  edges: string;
  idCol: string;
  labelCol: string;
  srcCol: string;
  dstCol: string;
  typeCol: string;
  realmCol?: string;
  description?: string;
  json?: true;
};

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("create-graph")
    .description(
      "Show two tables as a graph, unless it exists (talks to the catalog directly). Of several rows of one node or edge " +
        "the newest counts.",
    )
    .option("--db <name>", "database of the tables", "default")
    .requiredOption("--name <name>", "name of the graph")
    .requiredOption("--nodes <table>", "table with a row for each node")
    .requiredOption("--edges <table>", "table with a row for each edge")
    .option("--id-col <column>", "of nodes: what edges name them by", DEFAULT_COLUMNS.id)
    .option("--label-col <column>", "of nodes: a label, or a JSON array of labels", DEFAULT_COLUMNS.labels)
    .option("--src-col <column>", "of edges: the node where they begin", DEFAULT_COLUMNS.src)
    .option("--dst-col <column>", "of edges: the node where they end", DEFAULT_COLUMNS.dst)
    .option("--type-col <column>", "of edges: what they say", DEFAULT_COLUMNS.type)
    .option("--realm-col <column>", "of nodes, and of edges that have it: the realm (default: none)")
    .option("--description <text>", "for people and agents who choose among graphs")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "engine create-graph --name services --nodes services --edges calls",
    "engine create-graph --db crm --name people --nodes person --edges knows --id-col email --label-col role --type-col how",
  ]).action(context.action((options: Options) => createGraph(context, options)));
};

async function createGraph(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const name = checkGraphName(options.name);
  const description = (options.description ?? "").trim();
  if (description.length > GRAPH_LIMITS.descriptionChars || /\p{Cc}/u.test(description)) {
    const most = GRAPH_LIMITS.descriptionChars;
    throw new CliError(`--description is at most ${most} characters on one line`, EXIT.usage);
  }
  const { graph, created } = await withCatalog(context, options, "write", async (catalog) => {
    const found = await requireDatabase(catalog, database);
    const nodes = await requireTable(catalog, database, options.nodes);
    const edges = await requireTable(catalog, database, options.edges);
    const wanted: StoredGraph = {
      name,
      nodesTable: nodes.name,
      edgesTable: edges.name,
      columns: {
        id: columnOf(nodes, "--id-col", options.idCol),
        labels: columnOf(nodes, "--label-col", options.labelCol),
        src: columnOf(edges, "--src-col", options.srcCol),
        dst: columnOf(edges, "--dst-col", options.dstCol),
        type: columnOf(edges, "--type-col", options.typeCol),
        ...(options.realmCol !== undefined && { realm: columnOf(nodes, "--realm-col", options.realmCol) }),
      },
      description,
    };
    return await create(new GraphRegistry(catalog.records), found, wanted);
  });
  if (options.json === true) await context.writeJson({ database, ...graphJson(graph), created });
  else {
    const state = created ? "created" : "exists already";
    await context.writeLine(
      `graph ${database}.${graph.name} ${state}: nodes ${graph.nodesTable}, edges ${graph.edgesTable}`,
    );
  }
  return EXIT.ok;
}

/** Throws for a name that no graph over tables may have. */
function checkGraphName(name: string): string {
  checkName("graph", name);
  if (!isBuiltIn(foldName(name))) return name;
  throw new CliError(`the name ${name} is reserved: that graph is always there`, EXIT.usage);
}

/** The column as the table spells it. */
function columnOf(table: TableRecord, flag: string, wanted: string): string {
  const names = table.columns.map((column) => column.name);
  const found = names.find((name) => foldName(name) === foldName(wanted));
  if (found !== undefined) return found;
  const meant = nearest(wanted, names);
  const hint = meant === undefined ? `name one with ${flag}: ${names.join(", ")}` : `did you mean ${flag} ${meant}?`;
  throw new CliError(`the table ${table.name} has no column ${wanted}; ${hint}`);
}

/** Creating the same graph twice is no mistake; wanting another than there is is one. */
async function create(
  registry: GraphRegistry,
  database: { id: number; name: string },
  wanted: StoredGraph,
): Promise<{ graph: StoredGraph; created: boolean }> {
  if ((await registry.list(database)).length >= GRAPH_LIMITS.graphs) {
    throw new CliError(`the database ${database.name} has ${GRAPH_LIMITS.graphs} graphs, and may have no more`);
  }
  if (await registry.add(database, wanted)) return { graph: wanted, created: true };
  const graph = await registry.find(database, wanted.name);
  if (graph !== undefined && sameGraph(graph, wanted)) return { graph, created: false };
  throw new CliError(
    `the graph ${wanted.name} exists already with other tables, columns or description; \`engine drop-graph\` removes it, and no rows`,
  );
}

function sameGraph(a: StoredGraph, b: StoredGraph): boolean {
  return JSON.stringify(graphJson({ ...a, name: b.name })) === JSON.stringify(graphJson(b));
}
