import type { Command } from "commander";
import {
  callApi,
  deleteAt,
  fieldCell,
  fieldText,
  listIn,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const ENGINES = "/v1/admin/query-engines";

export const register: RegisterCommand = (program, context) => {
  const group = program
    .command("query-engine")
    .description("Register external query engines for large queries. Needs the role admin.");
  registerAdd(group, context);
  registerList(group, context);
  registerTest(group, context);
  registerRemove(group, context);
};

type AddFlags = ApiFlags & { kind: string; url: string; catalog: string; user?: string; credentialId?: string };

function registerAdd(group: Command, context: CliContext): void {
  const command = group
    .command("add")
    .description("Name a query engine.")
    .argument("<name>", "name to register it under")
    .option("--kind <kind>", "which program it is", "trino")
    .requiredOption("--url <url>", "its address, without a path; https where there is a credential")
    .requiredOption("--catalog <catalog>", "its catalog of the tables of this server; see engine open trino")
    .option("--user <user>", "user name to send (default: the credential's, else engine)")
    .option("--credential-id <id>", "stored credential to show there, of the kind basic, pat or api_key");
  withExamples(withApiFlags(command), [
    "engine query-engine add trino --url http://127.0.0.1:8080 --catalog lake",
    "engine query-engine add big --kind trino --url https://trino.example.com --catalog lake --credential-id ID",
  ]).action(
    context.action(async (name: string, flags: AddFlags) => {
      const { kind, url, catalog, user, credentialId: credential_id } = flags;
      const made = await callApi(context, flags, "POST", ENGINES, { name, kind, url, catalog, user, credential_id });
      if (flags.json) await context.writeJson(made);
      else await context.writeLine(visible(`query engine ${name} named; try it: engine query-engine test ${name}`));
      return EXIT.ok;
    }),
  );
}

function registerList(group: Command, context: CliContext): void {
  const command = withApiFlags(group.command("list").description("List the query engines."));
  withExamples(command, ["engine query-engine list"]).action(
    context.action(async (flags: ApiFlags) => {
      const all = listIn(await callApi(context, flags, "GET", ENGINES), "query_engines");
      const header = ["NAME", "KIND", "URL", "CATALOG", "USER", "CREDENTIAL"];
      if (flags.json) await context.writeJson(all);
      else if (all.length === 0) await context.writeLine("there are no query engines");
      else await context.writeLine(renderTable(header, all.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({ name, kind, url, catalog, user, credential_id: credential }: Json) {
  return [name, kind, url, catalog, user, credential].map(fieldCell);
}

function registerTest(group: Command, context: CliContext): void {
  const command = group
    .command("test")
    .description("Have a query engine answer SELECT 1.")
    .argument("<name>", "name of the query engine");
  withExamples(withApiFlags(command), ["engine query-engine test trino"]).action(
    context.action(async (name: string, flags: ApiFlags) => {
      const answer = await callApi(context, flags, "POST", `${pathOf(name)}/test`);
      if (flags.json) await context.writeJson(answer);
      else await context.writeLine(visible(`${name} answered in ${fieldText(answer["elapsed_ms"])} ms`));
      return EXIT.ok;
    }),
  );
}

function registerRemove(group: Command, context: CliContext): void {
  const command = group
    .command("remove")
    .description("Remove a query engine; queries already running on it continue.")
    .argument("<name>", "name of the query engine");
  withExamples(withApiFlags(command), ["engine query-engine remove trino"]).action(
    context.action(async (name: string, flags: ApiFlags) => {
      await deleteAt(context, await targetOf(context, flags), pathOf(name));
      if (flags.json) await context.writeJson({ name, removed: true });
      else await context.writeLine(visible(`query engine ${name} is removed`));
      return EXIT.ok;
    }),
  );
}

function pathOf(name: string): string {
  return `${ENGINES}/${encodeURIComponent(name)}`;
}
