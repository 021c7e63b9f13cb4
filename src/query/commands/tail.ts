import { checkName } from "../../core/names.ts";
import type { RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { fieldText, splitRow, type Field } from "../../client/row.ts";
import { followTail, type TailAsked } from "./tail-follow.ts";
import { resolveTarget } from "../../client/target.ts";
import { harmless, visible } from "../../client/text.ts";

type Options = { db: string; where?: string; from: string; json?: true; server?: string; token?: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("tail")
    .description(
      "Print rows of a table as they are committed, each once, until it is interrupted. A connection that breaks is made " +
        "again, and the rows go on where they were.",
    )
    .argument("<table>", "table")
    .option("--db <name>", "database", "default")
    .option("--where <condition>", "only rows that this SQL condition is true of")
    .option("--from <snapshot>", "begin with what was committed after that snapshot", "now")
    .option("--json", "print each row as a line of JSON, as the server writes it")
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)");
  withExamples(command, [
    "engine tail events",
    "engine tail requests --db logs --where \"label = 'error'\"",
    "engine tail events --json --from 1200 > events.ndjson",
  ]).action(context.action((table: string, options: Options) => tail(context, table, options)));
};

async function tail(context: CliContext, table: string, options: Options): Promise<number> {
  const { db, where, from, json, server, token } = options;
  if (!/^(now|\d{1,15})$/.test(from)) throw new CliError("--from is now or the number of a snapshot", EXIT.usage);
  const target = await resolveTarget(context, await context.loadConfig({ serverUrl: server, token }));
  const database = checkName("database", db);
  const asked: TailAsked = { database, table: checkName("table", table), from, ...(where && { where }) };
  const isTerminal = context.deps.stdout.isTTY === true;
  for await (const row of followTail(context, target, asked)) {
    await context.writeLine(json === true ? (isTerminal ? harmless(row) : row) : lineOf(row));
    if (context.readerGone) break;
  }
  return EXIT.ok;
}

/** The time of the row, then what else it has. */
function lineOf(row: string): string {
  const fields = splitRow(row).filter(({ raw }) => raw !== "null");
  const time = fields.find(({ name }) => name === "at");
  const others = fields.filter((field) => field !== time).map(fieldOf);
  return visible([...(time === undefined ? [] : [fieldText(time.raw) ?? ""]), ...others].join(" "));
}

/** A text without spaces or marks stands as it is; everything else as JSON. */
function fieldOf({ name, raw }: Field): string {
  const text = fieldText(raw) ?? "";
  return `${name}=${/^[\w.:/@+-]+$/.test(text) ? text : raw}`;
}
