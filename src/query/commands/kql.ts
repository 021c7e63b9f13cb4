import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { addQueryOptions, withQueryCommand, type QueryOptions } from "./sql/query-command.ts";
import { explainQuery, runQuery } from "./sql/run-query.ts";

type Options = QueryOptions & { explain?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("kql")
    .description("Run a query in KQL, the language of Kusto, and print its rows.")
    .argument("[text]", "the query; - reads it from standard input");
  withExamples(
    addQueryOptions(command).option("--explain", "print the SQL that the query becomes, and its plan, not its rows"),
    [
      "engine kql 'events | summarize count() by label'",
      "engine kql --db logs -o csv 'requests | where at > ago(1h) | take 10' > requests.csv",
      "engine kql --explain 'events | where at > ago(1h) | count'",
      "engine kql --timeout 5 -f report.kql",
    ],
  ).action(context.action((text: string | undefined, options: Options) => kql(context, text, options)));
};

function kql(context: CliContext, argument: string | undefined, options: Options): Promise<number> {
  const { explain, file } = options;
  if (argument === undefined && file === undefined && context.deps.stdin.isTTY === true) {
    throw new CliError("give a query, or - for standard input: engine kql 'events | take 10'", EXIT.usage);
  }
  return withQueryCommand(
    context,
    { command: "kql", argument, options, hasShell: false },
    async ({ run, text = "" }) => {
      const isPlain =
        explain === true && [options.output, options.format, options.json].every((it) => it === undefined);
      if (isPlain) await explainQuery(context, { ...run, language: "kql" }, text);
      else await runQuery(context, { ...run, language: "kql", ...(explain && { explain }) }, text);
      return EXIT.ok;
    },
  );
}
