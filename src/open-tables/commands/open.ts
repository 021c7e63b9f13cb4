import { Argument } from "commander";
import { callTarget, targetOf, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import type { RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { visible } from "../../client/text.ts";
import { CLIENTS, configurationOf, type Client, type ServerFacts } from "./client-texts.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("open")
    .description(
      "Print how another program is configured to read the tables of the server in place, through Iceberg's catalog " +
        "protocol. TOKEN stands for a token of the role read, KEY and SECRET for a key pair of the object store.",
    )
    .addArgument(new Argument("<client>", "the program").choices(CLIENTS));
  withExamples(withApiFlags(command), [
    "engine open duckdb",
    "engine open trino --server https://engine.example.com",
  ]).action(context.action((client: Client, flags: ApiFlags) => open(context, client, flags)));
};

async function open(context: CliContext, client: Client, flags: ApiFlags): Promise<number> {
  const target = await targetOf(context, flags);
  const { defaults } = await callTarget(context, target, "GET", "/iceberg/v1/config");
  const facts = factsOf(target.url, (defaults ?? {}) as Json);
  if (client === "clickhouse" && facts.s3 === undefined) {
    throw new CliError("ClickHouse reads Iceberg tables from S3 alone, and this server keeps them on a local disk");
  }
  const text = configurationOf(client, facts);
  if (flags.json) await context.writeJson({ client, text });
  else for (const line of text.split("\n")) await context.writeLine(visible(line));
  return EXIT.ok;
}

function factsOf(url: string, defaults: Json): ServerFacts {
  const { "s3.region": region, "s3.endpoint": endpoint, "s3.path-style-access": pathStyle } = defaults;
  const givesKeys = defaults["header.X-Iceberg-Access-Delegation"] === "vended-credentials";
  if (typeof region !== "string") return { url, givesKeys };
  const place = typeof endpoint === "string" ? { endpoint } : {};
  return { url, givesKeys, s3: { ...place, region, pathStyle: pathStyle === "true" } };
}
