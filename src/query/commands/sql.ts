import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { isBinary } from "../../client/row-writers.ts";
import { addQueryOptions, withQueryCommand, type QueryOptions } from "./sql/query-command.ts";
import { runQuery, type QueryRun } from "./sql/run-query.ts";
import { inPlace, splitStatements } from "./sql/statements.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("sql")
    .description(
      "Run SQL queries and print their rows. Without a text, on a terminal, a shell: with history, completion by Tab, " +
        "statements of many lines, and commands that \\? lists; Ctrl-C cancels a query.",
    )
    .argument("[text]", "the query, or several with ; between; - reads them from standard input");
  addQueryOptions(command).option("--run-on <engine>", "a query engine to run them on, in its own SQL");
  withExamples(command, [
    "engine sql",
    "engine sql 'SELECT count(*) FROM events'",
    "engine sql --db logs -o csv 'SELECT * FROM requests LIMIT 10' > requests.csv",
    "engine sql --run-on trino 'SELECT approx_distinct(user_id) FROM requests'",
    "engine sql --timeout 5 -o parquet -f report.sql > report.parquet",
  ]).action(context.action((text: string | undefined, options: SqlOptions) => sql(context, text, options)));
};

type SqlOptions = QueryOptions & { runOn?: string };

function sql(context: CliContext, argument: string | undefined, options: SqlOptions): Promise<number> {
  const asked = { command: "sql", argument, options, hasShell: true };
  return withQueryCommand(context, asked, async ({ run: here, text, home }) => {
    const run = options.runOn === undefined ? here : { ...here, engine: options.runOn };
    if (text !== undefined) return await runAll(context, run, text);
    return await (await import("./sql/shell.ts")).runShell(context, run, home);
  });
}

/** The first that fails is the last. */
async function runAll(context: CliContext, run: QueryRun, text: string): Promise<number> {
  const { statements, rest } = splitStatements(text);
  const all = rest === undefined ? statements : [...statements, rest];
  if (all.length > 1 && isBinary(run.format)) {
    throw new CliError(`${run.format} takes the rows of one query, and these are ${all.length}`, EXIT.usage);
  }
  // What is wrong with a text that has no statement the server says.
  if (all.length === 0) await runQuery(context, run, text);
  for (const statement of all) {
    await runQuery(context, run, inPlace(text, statement));
    if (context.readerGone) break;
  }
  return EXIT.ok;
}
